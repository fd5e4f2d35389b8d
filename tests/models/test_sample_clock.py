"""The time that a sample may take: what it waits for its turn is no part of it."""

import asyncio

import pytest

from coreeval.models.pace import Pace
from coreeval.models.sample_clock import bounded, waiting
from tests.support.virtual_time import fall_asleep, in_virtual_time, now


async def take_a_turn(pace: Pace, seconds: float) -> None:
    async with pace.turn(1):
        await asyncio.sleep(seconds)


def test_waiting_for_a_turn_does_not_count() -> None:
    async def scene() -> float:
        pace = Pace(most=1, clock=now)
        first = asyncio.create_task(take_a_turn(pace, 1000))
        await asyncio.sleep(1)
        async with bounded(10):
            await asyncio.gather(*(take_a_turn(pace, 3) for _ in range(3)))  # each waits for all
        await first
        return now()

    assert in_virtual_time(scene()) == pytest.approx(1009)


@pytest.mark.parametrize("waits_s", [0.0, 500.0])
def test_what_it_does_itself_counts(waits_s: float) -> None:
    async def scene() -> float:
        with pytest.raises(TimeoutError):
            async with bounded(10):
                await asyncio.sleep(4)
                with waiting():
                    await asyncio.sleep(waits_s)
                await asyncio.sleep(7)
        return now()

    assert in_virtual_time(scene()) == pytest.approx(10 + waits_s)


def test_a_request_may_outlive_its_sample() -> None:
    async def late() -> None:
        await asyncio.sleep(5)
        with waiting():
            await asyncio.sleep(5)

    async def scene() -> None:
        async with bounded(1):
            task = asyncio.create_task(late())
            await asyncio.sleep(0)
        await task

    in_virtual_time(scene())


def test_whoever_has_no_clock_just_waits() -> None:
    async def scene() -> None:
        with waiting():
            await asyncio.sleep(1)

    in_virtual_time(scene())


@pytest.mark.parametrize("waits", [False, True])
def test_an_hour_asleep_does_not_count(waits: bool) -> None:
    async def scene() -> float:
        with pytest.raises(TimeoutError):
            async with bounded(10):
                await asyncio.sleep(4)
                if waits:
                    with waiting():
                        fall_asleep(3600)
                        await asyncio.sleep(2)
                else:
                    fall_asleep(3600)
                await asyncio.sleep(3)
                await asyncio.sleep(7)
        return now()

    took = in_virtual_time(scene())
    assert took == pytest.approx(3610 + 2 * waits, abs=1.5)  # it wakes between two ticks
