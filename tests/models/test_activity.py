"""What calls wait for, and how fast answers come, as a run's progress tells it."""

import asyncio

import pytest

from coreeval.errors import ModelCallError
from coreeval.models import ModelPool, Retry
from coreeval.models.activity import ActiveCalls, limit_sample_time, pause_sample_clock
from coreeval.models.budget import Budget
from coreeval.models.rate_limit import RateLimiter
from coreeval.tools.catalogs import FREE
from coreeval.tools.stores.call_store import CallStore
from coreeval.tools.stores.heartbeat import RoleSpeed, Wait
from tests.models.kit import GOOD, ask, config_of
from tests.support.llm_server import LLMServer, Request, refused, script
from tests.support.virtual_time import fall_asleep, in_virtual_time, now

PATIENCE_S = 20.0
Told = list[tuple[str, int, str]]


class Gate:
    """Answers nobody until it is open."""

    is_open = False

    async def __call__(self, _request: Request) -> str:
        while not self.is_open:
            await asyncio.sleep(0.01)
        return GOOD


class Followed:
    """An exchange whose traffic is looked at; what is to be sent again waits to be told so."""

    def __init__(
        self, store: CallStore, *, attempts: int = 3, budget_usd: float | None = None
    ) -> None:
        self.active_calls, self.rested = ActiveCalls(), asyncio.Event()
        self.exchange = ModelPool(
            store,
            Budget(store.ledger, {}, budget_usd=budget_usd),
            in_flight=8,
            retry=Retry(attempts=attempts, sleep=self._rest),
            env={},
            active_calls=self.active_calls,
        )

    async def _rest(self, _seconds: float) -> None:
        await self.rested.wait()

    def waits(self) -> Told:
        """Return cause, number and reason of what is waited for."""
        found = sorted(self.active_calls.waits(), key=lambda wait: wait.cause)
        return [(wait.cause, wait.number, wait.reason) for wait in found]

    async def until(self, expected: Told) -> None:
        """Wait until this is waited for."""
        async with asyncio.timeout(PATIENCE_S):
            while self.waits() != expected:
                await asyncio.sleep(0.01)


async def test_who_waits_for_an_answer_and_who_for_a_turn(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = gate = Gate()
    followed = Followed(store)
    client = followed.exchange.open_client(config_of(server, max_in_flight=2), "composer")
    asked = [asyncio.ensure_future(ask(client, str(number))) for number in range(5)]
    await followed.until([("answer", 2, ""), ("turn", 3, "")])
    assert followed.active_calls.in_flight == 2
    moved, gate.is_open = followed.active_calls.moved_at, True
    await asyncio.gather(*asked)
    assert followed.waits() == []
    assert followed.active_calls.moved_at > moved
    (speed,) = followed.active_calls.speeds()
    assert (speed.role, speed.model, speed.answers) == ("composer", "openai:stub", 5)
    await ask(client, "0")
    assert followed.active_calls.speeds() == (speed,), "what the store had was no request"


@pytest.mark.parametrize(("status", "cause"), [(429, "throttled"), (500, "resting")])
async def test_why_a_request_is_sent_again_later(
    store: CallStore, server: LLMServer, status: int, cause: str
) -> None:
    server.answers = script(refused(status, "come back later"), GOOD)
    followed = Followed(store)
    client = followed.exchange.open_client(config_of(server), "composer")
    asked = asyncio.ensure_future(ask(client))
    async with asyncio.timeout(PATIENCE_S):
        while "come back later" not in str(followed.waits()):
            await asyncio.sleep(0.01)
    assert [(told, number) for told, number, _ in followed.waits()] == [(cause, 1)]
    followed.rested.set()
    await asked
    server.answers = gate = Gate()
    asked = asyncio.ensure_future(ask(client, "another"))
    await followed.until([("answer", 1, "")])  # without the trouble that is over
    gate.is_open = True
    await asked


async def test_a_call_that_was_given_up_is_no_answer(store: CallStore, server: LLMServer) -> None:
    server.answers = script(refused(500, "no disk"))
    followed = Followed(store, attempts=1)
    moved = followed.active_calls.moved_at
    with pytest.raises(ModelCallError):
        await ask(followed.exchange.open_client(config_of(server), "composer"))
    assert followed.waits() == []
    assert (followed.active_calls.speeds(), followed.active_calls.moved_at) == ((), moved)


async def test_who_waits_for_money(store: CallStore, server: LLMServer) -> None:
    server.answers = gate = Gate()
    followed = Followed(store, budget_usd=0.15)
    price = FREE.model_dump() | {"output": 1000.0}
    client = followed.exchange.open_client(
        config_of(server, price=price, max_tokens=100), "composer"
    )
    asked = [asyncio.ensure_future(ask(client, str(number))) for number in range(2)]
    await followed.until([("answer", 1, ""), ("budget", 1, "")])
    gate.is_open = True
    await asyncio.gather(*asked)


def test_the_longest_wait_is_told_and_waiting_for_a_turn_makes_no_role_slow() -> None:
    second = 0.0
    active_calls = ActiveCalls(clock=lambda: second)
    with (
        active_calls.track("composer", "m") as first,
        active_calls.track("fact_judge", "m") as other,
    ):
        second = 5.0
        first.move_to("resting")
        second = 7.0
        first.move_to("turn")
        assert active_calls.waits() == [Wait(cause="turn", who="m", number=2, seconds=7.0)]
        first.move_to("answer")
        other.move_to("answer")
        second = 10.0
        assert active_calls.waits() == [Wait(cause="answer", who="m", number=2, seconds=3.0)]
        other.move_to("turn")
        second = 11.0
        other.move_to("answer")
        second = 12.0
    assert active_calls.speeds() == (
        RoleSpeed(role="composer", model="m", answers=1, mean_s=5.0),
        RoleSpeed(role="fact_judge", model="m", answers=1, mean_s=1.0),
    )


async def take_a_turn(pace: RateLimiter, seconds: float) -> None:
    async with pace.acquire(1):
        await asyncio.sleep(seconds)


def test_waiting_for_a_turn_does_not_count() -> None:
    async def scene() -> float:
        pace = RateLimiter(most=1, clock=now)
        first = asyncio.create_task(take_a_turn(pace, 1000))
        await asyncio.sleep(1)
        async with limit_sample_time(10):
            await asyncio.gather(*(take_a_turn(pace, 3) for _ in range(3)))  # each waits for all
        await first
        return now()

    assert in_virtual_time(scene()) == pytest.approx(1009)


@pytest.mark.parametrize("waits_s", [0.0, 500.0])
def test_what_it_does_itself_counts(waits_s: float) -> None:
    async def scene() -> float:
        with pytest.raises(TimeoutError):
            async with limit_sample_time(10):
                await asyncio.sleep(4)
                with pause_sample_clock():
                    await asyncio.sleep(waits_s)
                await asyncio.sleep(7)
        return now()

    assert in_virtual_time(scene()) == pytest.approx(10 + waits_s)


def test_a_request_may_outlive_its_sample() -> None:
    async def late() -> None:
        await asyncio.sleep(5)
        with pause_sample_clock():
            await asyncio.sleep(5)

    async def scene() -> None:
        async with limit_sample_time(1):
            task = asyncio.create_task(late())
            await asyncio.sleep(0)
        await task

    in_virtual_time(scene())


def test_whoever_has_no_clock_just_waits() -> None:
    async def scene() -> None:
        with pause_sample_clock():
            await asyncio.sleep(1)

    in_virtual_time(scene())


@pytest.mark.parametrize("waits", [False, True])
def test_an_hour_asleep_does_not_count(waits: bool) -> None:
    async def scene() -> float:
        with pytest.raises(TimeoutError):
            async with limit_sample_time(10):
                await asyncio.sleep(4)
                if waits:
                    with pause_sample_clock():
                        fall_asleep(3600)
                        await asyncio.sleep(2)
                else:
                    fall_asleep(3600)
                await asyncio.sleep(3)
                await asyncio.sleep(7)
        return now()

    took = in_virtual_time(scene())
    assert took == pytest.approx(3610 + 2 * waits, abs=1.5)  # it wakes between two ticks
