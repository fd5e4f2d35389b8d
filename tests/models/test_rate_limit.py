"""How fast a model is asked: by rank, as much as the endpoint bears, no faster than allowed."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from coreeval.models.failures import LONGEST_WAIT_S, CallFailure, FailureKind
from coreeval.models.rate_limit import (
    RANK,
    WINDOW,
    Allowance,
    RateLimiter,
    parse_allowances,
)
from tests.support.virtual_time import in_virtual_time, now

OK, BUSY = False, True
PATIENCE_S = 3600.0
"""Virtual seconds; only what hangs takes so long."""


def paced(
    *, most: int = 1000, requests: float | None = None, tokens: float | None = None
) -> RateLimiter:
    """Return a pace that goes by the clock of the running loop."""
    return RateLimiter(most=most, requests_per_minute=requests, tokens_per_minute=tokens, clock=now)


async def ask(
    pace: RateLimiter,
    *,
    seconds: float = 0.0,
    about: int = 0,
    took: int = 0,
    headers: Mapping[str, str] | None = None,
    fails: FailureKind | None = None,
) -> float:
    """Take a turn; return when it began."""
    async with pace.acquire(about) as turn:
        began = now()
        await asyncio.sleep(seconds)
        if fails:
            turn.record_failure(CallFailure(fails, "no"))
        else:
            turn.record_answer(headers or {}, took)
    return began


async def all_of(*asked: Awaitable[float]) -> list[float]:
    """Return when each of several turns began, the first first."""
    async with asyncio.timeout(PATIENCE_S):
        return sorted(await asyncio.gather(*asked))


async def outcomes(pace: RateLimiter, throttled: Sequence[bool]) -> None:
    """Tell a pace how requests ended, each sent after the one before had ended."""
    for one in throttled:
        await ask(pace, fails="throttled" if one else None)


# -- turns --------------------------------------------------------------------------------------


def test_no_more_are_in_flight_than_may_be_and_all_are_served() -> None:
    async def work() -> None:
        pace, most = paced(most=3), 0

        async def one() -> None:
            nonlocal most
            async with pace.acquire(0):
                most = max(most, pace.slots.in_flight)
                await asyncio.sleep(1)

        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(one() for _ in range(10)))
        assert (most, pace.slots.in_flight, now()) == (3, 0, 4)

    in_virtual_time(work())


def test_turns_go_by_rank_and_then_by_arrival() -> None:
    async def work() -> None:
        pace, served = paced(most=1), list[str]()

        async def ranked(rank: int, name: str) -> None:
            RANK.set(rank)
            async with pace.acquire(0):
                served.append(name)
                await asyncio.sleep(1)

        asked = [(9, "first there"), (5, "b"), (1, "a"), (7, "c"), (5, "later b")]
        tasks = [asyncio.create_task(ranked(rank, name)) for rank, name in asked]
        await asyncio.sleep(1.5)  # "a" has its turn: one of less rank is in nobody's way
        tasks.append(asyncio.create_task(ranked(0, "newcomer")))
        await asyncio.gather(*tasks)
        assert served == ["first there", "a", "newcomer", "b", "later b", "c"]

    in_virtual_time(work())


def test_a_turn_ends_with_its_block_whatever_happens_in_it() -> None:
    async def work() -> None:
        pace = paced(most=1)
        for error in (ValueError, asyncio.CancelledError):
            with pytest.raises(error):
                async with pace.acquire(0):
                    raise error
        assert pace.slots.in_flight == 0

    in_virtual_time(work())


def test_whoever_is_cancelled_while_waiting_leaves_no_gap() -> None:
    async def work() -> None:
        pace = paced(most=1)
        first, second, third = (asyncio.create_task(ask(pace, seconds=1)) for _ in range(3))
        await asyncio.sleep(0.5)
        second.cancel()
        assert await all_of(first, third) == [0, 1]
        assert second.cancelled() and pace.slots.in_flight == 0

    in_virtual_time(work())


def test_a_turn_that_is_given_to_one_who_is_gone_goes_to_the_next() -> None:
    async def work() -> None:
        pace = paced(most=1)
        waiting = list[asyncio.Task[float]]()
        async with pace.acquire(0):
            waiting += [asyncio.create_task(ask(pace)) for _ in range(3)]
            await asyncio.sleep(1)
        for one in waiting[:2]:  # the first was let in a moment ago and has not run yet
            one.cancel()
        assert await all_of(waiting[2]) == [1]
        assert [one.cancelled() for one in waiting] == [True, True, False]
        assert pace.slots.in_flight == 0

    in_virtual_time(work())


# -- congestion ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("throttled", "limit"),
    [
        ([BUSY], 32),
        ([BUSY] * (WINDOW - 1), 32),
        ([BUSY] * WINDOW, 16),
        ([OK] * 12 + [BUSY] * 4, 16),
        ([OK] * 13 + [BUSY] * 3, 32),
        ([BUSY, *[OK] * 19] * 50, 32),
        ([BUSY, *[OK] * 7] * 50, 32),
        ([BUSY] * WINDOW * 9, 1),
    ],
    ids=["one", "few", "all", "a quarter", "less", "one in 20", "one in 8", "for ever"],
)
def test_only_a_fair_share_of_throttled_requests_halves_the_number_in_flight(
    throttled: Sequence[bool], limit: int
) -> None:
    async def work() -> None:
        pace = paced(most=32)
        await outcomes(pace, throttled)
        assert pace.slots.limit == limit

    in_virtual_time(work())


@pytest.mark.parametrize("kind", ["transient", "unreachable", "rejected", "quota"])
def test_other_failures_are_no_congestion(kind: FailureKind) -> None:
    async def work() -> None:
        pace = paced(most=32)
        for _ in range(3 * WINDOW):
            await ask(pace, fails=kind)
        assert pace.slots.limit == 32

    in_virtual_time(work())


def test_what_was_sent_before_a_change_says_nothing_about_it() -> None:
    async def work() -> None:
        pace = paced(most=64)
        await all_of(*(ask(pace, seconds=1, fails="throttled") for _ in range(64)))
        assert pace.slots.limit == 32
        await all_of(*(ask(pace, seconds=1, fails="throttled") for _ in range(32)))
        assert pace.slots.limit == 16

    in_virtual_time(work())


def test_the_halved_number_is_kept_to() -> None:
    async def work() -> None:
        pace = paced(most=32)
        await outcomes(pace, [BUSY] * WINDOW)
        began = await all_of(*(ask(pace, seconds=1) for _ in range(20)))
        assert began.count(0) == 16

    in_virtual_time(work())


def test_it_grows_back_by_an_eighth_for_a_round_of_successes_and_no_further_than_it_was() -> None:
    async def work() -> None:
        pace, seen = paced(most=32), list[int]()
        await outcomes(pace, [BUSY] * WINDOW)
        for _ in range(9):
            await outcomes(pace, [OK] * (pace.slots.limit - 1))
            before = pace.slots.limit
            await outcomes(pace, [OK])
            seen.append(pace.slots.limit - before)
        assert seen == [2, 2, 2, 2, 3, 3, 2, 0, 0]
        assert pace.slots.limit == 32

    in_virtual_time(work())


def test_a_throttled_request_begins_the_round_anew() -> None:
    async def work() -> None:
        pace = paced(most=32)
        await outcomes(pace, [BUSY] * WINDOW + [OK] * 15 + [BUSY] + [OK] * 15)
        assert pace.slots.limit == 16
        await outcomes(pace, [OK])
        assert pace.slots.limit == 18

    in_virtual_time(work())


def test_a_model_that_bears_one_request_only_can_recover() -> None:
    async def work() -> None:
        pace = paced(most=8)
        await outcomes(pace, [BUSY] * WINDOW * 5)
        assert pace.slots.limit == 1
        await outcomes(pace, [OK] * 40)
        assert pace.slots.limit == 8

    in_virtual_time(work())


# -- so many a minute ---------------------------------------------------------------------------


def test_requests_per_minute() -> None:
    async def work() -> None:
        pace = paced(requests=60)
        began = await all_of(*(ask(pace) for _ in range(90)))
        assert began[59] == 0
        assert began[60:] == pytest.approx(range(1, 31), abs=0.1)

    in_virtual_time(work())


def test_less_than_one_request_a_minute() -> None:
    async def work() -> None:
        pace = paced(requests=0.5)
        first, second = await all_of(ask(pace), ask(pace))
        assert second - first == pytest.approx(120, abs=0.1)

    in_virtual_time(work())


def test_what_is_not_used_in_a_minute_is_not_saved_up() -> None:
    async def work() -> None:
        pace = paced(requests=3)
        await asyncio.sleep(600)
        began = await all_of(*(ask(pace) for _ in range(4)))
        assert began == pytest.approx([600, 600, 600, 620], abs=0.1)

    in_virtual_time(work())


def test_tokens_per_minute_with_one_request_overdrawn_at_most() -> None:
    async def work() -> None:
        pace = paced(tokens=6000)
        began = await all_of(*(ask(pace, about=3000, took=3000) for _ in range(6)))
        assert began == pytest.approx([0, 0, 0, 30, 60, 90], abs=0.1)

    in_virtual_time(work())


@pytest.mark.parametrize(
    ("about", "took", "fails", "next_at"),
    [
        (12000, 12000, None, 60),
        (0, 12000, None, 60),
        (12000, 3000, None, 0),
        (12000, 0, "rejected", 0),
    ],
    ids=["as estimated", "longer", "shorter", "failed"],
)
def test_an_estimate_is_put_right_when_the_tokens_are_counted(
    about: int, took: int, fails: FailureKind | None, next_at: float
) -> None:
    async def work() -> None:
        pace = paced(tokens=6000)
        await ask(pace, about=about, took=took, fails=fails)
        assert await ask(pace) == pytest.approx(next_at, abs=0.1)

    in_virtual_time(work())


def test_one_who_gives_up_waiting_for_the_minute_holds_nobody_up() -> None:
    async def work() -> None:
        pace = paced(requests=2)
        tasks = [asyncio.create_task(ask(pace)) for _ in range(4)]
        await asyncio.sleep(10)
        tasks[2].cancel()
        assert await all_of(tasks[3]) == pytest.approx([30], abs=0.1)

    in_virtual_time(work())


def test_what_was_taken_for_one_who_is_gone_is_put_back() -> None:
    async def work() -> None:
        pace = paced(most=1, requests=3, tokens=6000)
        async with pace.acquire(0):
            gone = asyncio.create_task(ask(pace, about=12000))
            left = asyncio.create_task(ask(pace))
            await asyncio.sleep(1)
        gone.cancel()  # it was let in a moment ago and has not run yet
        last = ask(pace)
        assert await all_of(left, last) == pytest.approx([1, 1], abs=0.1)
        assert gone.cancelled()

    in_virtual_time(work())


# -- pauses that headers ask for ----------------------------------------------------------------


def told(remaining: int, reset: str) -> dict[str, str]:
    return {
        "x-ratelimit-remaining-requests": str(remaining),
        "x-ratelimit-reset-requests": reset,
    }


@pytest.mark.parametrize(
    ("remaining", "reset", "next_at"),
    [(0, "20s", 20), (1, "20s", 0), (0, "1h", LONGEST_WAIT_S), (0, "soon", 0), (0, "0s", 0)],
)
def test_where_nothing_is_left_the_next_request_waits(
    remaining: int, reset: str, next_at: float
) -> None:
    async def work() -> None:
        pace = paced()
        await ask(pace, headers=told(remaining, reset))
        assert await ask(pace) == pytest.approx(next_at, abs=0.01)

    in_virtual_time(work())


def test_a_pause_holds_for_those_who_wait_already_and_a_shorter_one_does_not_end_it() -> None:
    async def work() -> None:
        pace = paced(most=2)
        early = ask(pace, seconds=1, headers=told(0, "30s"))
        other = ask(pace, seconds=2, headers=told(0, "5s"))
        began = await all_of(early, other, *(ask(pace) for _ in range(3)))
        assert began == pytest.approx([0, 0, 30, 30, 30], abs=0.01)

    in_virtual_time(work())


def test_a_pause_counts_from_when_the_request_came_in() -> None:
    async def work() -> None:
        pace = paced()
        await ask(pace, seconds=15, headers=told(0, "20s"))
        assert await ask(pace) == pytest.approx(20, abs=0.01)
        full_at = datetime.now(UTC) + timedelta(seconds=20)
        moment = {
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": full_at.isoformat(),
        }
        began = now()
        await ask(pace, headers=moment)
        assert await ask(pace) == pytest.approx(began + 20, abs=1)

    in_virtual_time(work())


def test_the_longest_of_several_limits_counts() -> None:
    async def work() -> None:
        pace = paced()
        tokens = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7s"}
        await ask(pace, headers=told(0, "3s") | tokens)
        assert await ask(pace) == pytest.approx(7, abs=0.01)

    in_virtual_time(work())


NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def openai(remaining: str, reset: str, of: str = "requests") -> dict[str, str]:
    return {f"x-ratelimit-remaining-{of}": remaining, f"x-ratelimit-reset-{of}": reset}


def anthropic(remaining: str, reset: str, of: str = "input-tokens") -> dict[str, str]:
    name = f"anthropic-ratelimit-{of}"
    return {f"{name}-remaining": remaining, f"{name}-reset": reset}


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("1s", 1),
        ("20ms", 0.02),
        ("6m0s", 360),
        ("1h2m3s", 3723),
        ("2d", 172800),
        ("2m59.56s", 179.56),
        ("0s", 0),
    ],
)
def test_durations(reset: str, seconds: float) -> None:
    (found,) = parse_allowances(openai("7", reset), now=NOW)
    assert found.remaining == 7
    assert found.reset_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("2026-03-01T12:00:30Z", 30),
        ("2026-03-01T13:00:30+01:00", 30),
        ("2026-03-01T12:00:30", 30),
        ("2026-03-01T11:00:00Z", 0),
    ],
)
def test_moments(reset: str, seconds: float) -> None:
    assert parse_allowances(anthropic("0", reset), now=NOW) == [Allowance(0, seconds)]


def test_each_limit_has_its_own_reset() -> None:
    headers = openai("0", "1s") | openai("9", "5s", of="tokens") | anthropic("3", NOW.isoformat())
    found = parse_allowances(headers, now=NOW)
    assert set(found) == {Allowance(0, 1), Allowance(9, 5), Allowance(3, 0)}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-limit-requests": "60", "x-ratelimit-reset-requests": "1s"},
        {"x-ratelimit-remaining-requests": "0"},
        {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "1s"},
        {"anthropic-ratelimit-requests-remaining": "0"},
        *[openai(number, "1s") for number in ("", "many", "-1", "1.5", "\u00b2", "9" * 5000)],
        *[openai("0", reset) for reset in ("", "soon", "12", "1s!", "1x", "s", "1 s", "-1s")],
        *[anthropic("0", reset) for reset in ("", "soon", "12s", "2026-13-01T00:00:00Z")],
    ],
    ids=lambda headers: " ".join(headers.values())[:30],
)
def test_what_cannot_be_read_says_nothing(headers: Mapping[str, str]) -> None:
    assert parse_allowances(headers, now=NOW) == []


def test_one_that_cannot_be_read_does_not_hide_another() -> None:
    assert parse_allowances(openai("x", "1s") | openai("0", "2s", of="tokens")) == [Allowance(0, 2)]
