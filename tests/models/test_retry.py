"""Retries are bounded, patient where they are told to be, and never hopeless."""

import asyncio
from datetime import UTC, datetime

import pytest

from coreeval.models.failures import CallFailure, FailureKind
from coreeval.models.retry import Retry
from coreeval.tools.http import parse_retry_after
from tests.support.virtual_time import fall_asleep, in_virtual_time

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class Flaky:
    """Fails a number of times, then answers; remembers how long it was waited for."""

    def __init__(self, *failures: CallFailure) -> None:
        self.failures = list(failures)
        self.calls = 0
        self.waits: list[float] = []

    async def __call__(self) -> str:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def failures(count: int, kind: FailureKind = "transient") -> list[CallFailure]:
    return [CallFailure(kind, f"failure {number}") for number in range(count)]


async def test_waits_double_up_to_a_limit() -> None:
    call = Flaky(*failures(7))
    retry = Retry(attempts=8, first_s=1, longest_s=10, sleep=call.sleep, jitter=lambda: 1.0)
    assert await retry.run(call) == "answer"
    assert call.waits == [1, 2, 4, 8, 10, 10, 10]


async def test_jitter_halves_a_wait_at_most() -> None:
    call = Flaky(*failures(2))
    await Retry(sleep=call.sleep, jitter=lambda: 0.0).run(call)
    assert call.waits == [0.5, 1.0]


async def test_eight_attempts_and_no_more() -> None:
    call = Flaky(*failures(99))
    with pytest.raises(CallFailure, match="failure 7"):
        await Retry(sleep=call.sleep).run(call)
    assert call.calls == 8


async def test_a_third_web_page_ends_the_tries() -> None:
    call = Flaky(*failures(2), *failures(99, "web_page"))
    with pytest.raises(CallFailure, match="failure 0"):
        await Retry(sleep=call.sleep).run(call)
    assert call.calls == 3


def test_by_default_a_wait_ends_at_half_a_minute_and_the_tries_at_ten() -> None:
    retry = Retry()
    assert (retry.longest_s, retry.total_s, retry.retry_after_cap_s) == (30, 600, 120)


async def test_no_attempt_after_the_time_is_up() -> None:
    call = Flaky(*failures(99))
    retry = Retry(attempts=99, total_s=7.5, sleep=call.sleep, jitter=lambda: 1.0)
    with pytest.raises(CallFailure):
        await retry.run(call)
    assert call.waits == [1, 2, 4]


@pytest.mark.parametrize(
    "kind", ["credential", "unknown", "quota", "unsupported", "declined", "rejected"]
)
async def test_what_cannot_succeed_is_not_tried_again(kind: FailureKind) -> None:
    call = Flaky(*failures(1, kind))
    with pytest.raises(CallFailure):
        await Retry(sleep=call.sleep).run(call)
    assert call.calls == 1


async def test_a_bad_end_after_a_passing_failure_ends_it() -> None:
    call = Flaky(*failures(2), *failures(1, "rejected"))
    with pytest.raises(CallFailure) as caught:
        await Retry(sleep=call.sleep).run(call)
    assert (caught.value.kind, call.calls) == ("rejected", 3)


async def test_each_failure_before_another_try_is_noted() -> None:
    call, noted = Flaky(*failures(2, "throttled")), list[str]()
    assert await Retry(sleep=call.sleep).run(call, noted.append) == "answer"
    assert noted == ["failure 0", "failure 1"]
    with pytest.raises(CallFailure):
        await Retry(attempts=3, sleep=call.sleep).run(Flaky(*failures(9)), noted.append)
    assert noted == ["failure 0", "failure 1"] * 2, "the last failure is no try, it is the end"


class Slow(Flaky):
    """Takes its time to fail; its clock is that of the virtual loop."""

    async def __call__(self) -> str:
        await asyncio.sleep(100)
        return await super().__call__()


def test_the_time_runs_from_the_start_of_the_first_attempt() -> None:
    call = Slow(*failures(99))

    async def work() -> None:
        with pytest.raises(CallFailure):
            await Retry(attempts=99, total_s=250, first_s=0.0, longest_s=0.0).run(call)

    in_virtual_time(work())
    assert call.calls == 3


def test_a_try_that_would_begin_when_the_time_is_up_is_not_made() -> None:
    call = Flaky(*failures(99))

    async def work() -> None:
        with pytest.raises(CallFailure):
            await Retry(total_s=0.0, first_s=0.0).run(call)

    in_virtual_time(work())
    assert call.calls == 1


def test_an_hour_asleep_is_no_time_to_give_up_in() -> None:
    call = Slow(*failures(1))

    async def work() -> None:
        asyncio.get_running_loop().call_later(50, fall_asleep, 3600)
        assert await Retry(total_s=250, first_s=0.0, longest_s=0.0).run(call) == "answer"

    in_virtual_time(work())
    assert call.calls == 2


async def test_a_bug_is_not_retried() -> None:
    calls = 0

    async def bug() -> str:
        nonlocal calls
        calls += 1
        raise KeyError("bug")

    with pytest.raises(KeyError):
        await Retry().run(bug)
    assert calls == 1


@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7.25), (0.0, 0.25), (9999.0, 120.25)])
async def test_retry_after_is_honoured_and_capped(asked: float, waited: float) -> None:
    call = Flaky(CallFailure("transient", "busy", retry_after=asked))
    await Retry(sleep=call.sleep, jitter=lambda: 0.25).run(call)
    assert call.waits == [waited]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("12", 12.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("nan", None),
        ("inf", None),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("Sun, 01 Mar 2026 14:00:30 +0200", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("soon", None),
    ],
)
def test_retry_after_header(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, now=NOW) == seconds
