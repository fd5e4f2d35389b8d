"""How many requests are in flight: as many as an endpoint bears, found out with few refusals."""

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest

from coreeval.models.failures import CallFailure
from coreeval.models.rate_limit import CLOSED_S, LONGEST_DOUBLED_S, RANK, RateLimiter
from tests.support.virtual_time import in_virtual_time, now

ANSWER_S = 0.2
REFUSAL_S = 0.002


class Endpoint:
    """Answers so many requests at a time, as its rule says for each second."""

    def __init__(self, at_once: Callable[[float], int], *, faults: float = 0.0) -> None:
        self._at_once = at_once
        self._faults, self._random = faults, random.Random(7)
        self.answered = list[float]()
        self.refused = list[float]()
        self._now = 0

    async def __call__(self) -> bool:
        """Tell whether a request was answered."""
        if self._now >= self._at_once(now()):
            await asyncio.sleep(REFUSAL_S)
            self.refused.append(now())
            return False
        self._now += 1
        await asyncio.sleep(ANSWER_S)
        self._now -= 1
        answered = self._random.random() >= self._faults
        (self.answered if answered else self.refused).append(now())
        return answered

    def between(self, first: float, last: float) -> tuple[int, int]:
        """Return how many requests were answered and refused between two seconds."""
        return sum(first <= at < last for at in self.answered), sum(
            first <= at < last for at in self.refused
        )


def asked_for(seconds: float, endpoint: Endpoint, *, clients: int = 64) -> tuple[RateLimiter, int]:
    """Let some ask again and again; return their pace and the most refusals in a row of anyone."""

    async def work() -> tuple[RateLimiter, int]:
        pace, most = RateLimiter(most=clients, clock=now), 0

        async def client(number: int) -> None:
            nonlocal most
            chance, refusals, rank = random.Random(number), 0, number
            while now() < seconds:
                RANK.set(rank)
                async with pace.acquire(0) as turn:
                    answered = await endpoint()
                    if answered:
                        turn.record_answer({}, 0)
                    else:
                        turn.record_failure(CallFailure("throttled", "busy", retry_after=1.0))
                refusals = 0 if answered else refusals + 1
                most = max(most, refusals)
                rank += clients if answered else 0
                if not answered:
                    await asyncio.sleep(1 + chance.random())

        await asyncio.gather(*(client(number) for number in range(clients)))
        return pace, most

    return in_virtual_time(work())


# -- endpoints ----------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 3, 8, 11, 20, 40, 60])
def test_an_endpoint_that_bears_few_is_used_to_the_full_and_seldom_asked_in_vain(
    at_once: int,
) -> None:
    endpoint = Endpoint(lambda _now: at_once)
    _, most_in_a_row = asked_for(60, endpoint)
    answered, refused = endpoint.between(10, 60)
    assert answered >= 0.95 * 50 * at_once / ANSWER_S
    assert refused <= 0.1 * answered
    assert most_in_a_row < 8  # else a question would have been given up


def test_it_is_found_out_that_an_endpoint_bears_more() -> None:
    endpoint = Endpoint(lambda at: 4 if at < 30 else 40)
    asked_for(60, endpoint)
    answered, _ = endpoint.between(40, 60)
    assert answered >= 0.9 * 20 * 40 / ANSWER_S


def test_it_is_found_out_that_an_endpoint_bears_less() -> None:
    endpoint = Endpoint(lambda at: 40 if at < 30 else 4)
    asked_for(60, endpoint)
    answered, refused = endpoint.between(40, 60)
    assert answered >= 0.95 * 20 * 4 / ANSWER_S
    assert refused <= 0.1 * answered


def test_random_faults_of_one_in_twenty_do_not_slow_it_down() -> None:
    endpoint = Endpoint(lambda _now: 64, faults=0.05)
    pace, _ = asked_for(60, endpoint, clients=64)
    answered, refused = endpoint.between(0, 60)
    assert pace.slots.limit == 64
    waited = 1.5 * refused  # each for a second and a half, on the average
    assert (answered + refused) * ANSWER_S + waited >= 0.99 * 64 * 60


# -- one slot -----------------------------------------------------------------------------------


def begun(ends: Sequence[float | bool | None], *, most: int = 2) -> list[float]:
    """Return when requests began whose ends are given, while another one is long in flight.

    An end is True for an answer, None for a refusal, seconds for one that asks for so many.
    """

    async def work() -> list[float]:
        pace, at = RateLimiter(most=most, clock=now), list[float]()
        async with pace.acquire(0):
            for end in ends:
                async with pace.acquire(0) as turn:
                    at.append(now())
                    if end is True:
                        turn.record_answer({}, 0)
                    else:
                        turn.record_failure(CallFailure("throttled", "busy", retry_after=end))
        return at

    return in_virtual_time(work())


def test_a_refused_slot_is_closed_for_as_long_as_the_endpoint_asks() -> None:
    assert begun([3.0, True]) == [0, 3]
    assert begun([None, True]) == begun([0.0, True]) == [0, CLOSED_S]


def test_one_whose_trial_is_refused_is_closed_for_twice_as_long_up_to_a_limit() -> None:
    assert begun([None] * 7) == [0, 1, 3, 7, 15, 23, 31]
    assert begun([20.0, 20.0, True]) == [0, 20, 40]
    assert LONGEST_DOUBLED_S == 8


def test_one_whose_trial_is_answered_is_a_slot_like_any_other() -> None:
    assert begun([None, None, True, True, None, True]) == [0, 1, 3, 3, 3, 4]


def test_the_others_stay_open() -> None:
    assert begun([None, 5.0, True, True, True], most=4) == [0, 0, 0, 0, 0]


def test_the_last_slot_is_never_closed_for_long() -> None:
    async def work() -> None:
        pace = RateLimiter(most=1, clock=now)
        for second in range(5):
            async with pace.acquire(0) as turn:
                assert now() == second * CLOSED_S
                turn.record_failure(CallFailure("throttled", "busy", retry_after=30.0))

    in_virtual_time(work())
