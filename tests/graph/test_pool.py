"""The pool of samples: how many are open, how they begin, and the garbage collector."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coreeval.graph.pool import OBJECTS_BETWEEN_ROUNDS, Stop, work_through
from tests.support.virtual_time import in_virtual_time, now


@contextmanager
def threshold(objects: int) -> Iterator[None]:
    """Let the collector make a round after so many new objects."""
    usual = gc.get_threshold()
    gc.set_threshold(objects)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@pytest.mark.parametrize("usual", [700, 10 * OBJECTS_BETWEEN_ROUNDS])
def test_rounds_of_the_collector_are_seldom_while_samples_are_worked_on(usual: int) -> None:
    meanwhile = list[int]()

    async def work(_sample: str) -> None:
        meanwhile.append(gc.get_threshold()[0])

    with threshold(usual):
        asyncio.run(work_through(["a"], work, concurrency=2, stop=Stop()))
        after = gc.get_threshold()[0]

    assert meanwhile == [max(usual, OBJECTS_BETWEEN_ROUNDS)]
    assert after == usual


class Watched:
    """Counts the samples that are open."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begun = list[float]()
        self.open = self.most_open = 0

    async def work(self, _sample: int) -> None:
        """Be open for some time."""
        self.begun.append(now())
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        await asyncio.sleep(self.seconds)
        self.open -= 1


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (4, 5), (32, 40)])
def test_a_quarter_more_are_open_than_may_ask(concurrency: int, most: int) -> None:
    watched = Watched(seconds=60)
    in_virtual_time(work_through(range(100), watched.work, concurrency=concurrency, stop=Stop()))
    assert watched.most_open == most
    assert len(watched.begun) == 100


def test_samples_begin_one_after_the_other() -> None:
    watched = Watched(seconds=60)
    in_virtual_time(work_through(range(40), watched.work, concurrency=32, stop=Stop()))
    assert len(set(watched.begun)) == 40
    assert watched.begun[-1] - watched.begun[0] < 1


def test_nobody_waits_for_workers_that_have_nothing_to_do() -> None:
    watched = Watched(seconds=0)

    async def took() -> float:
        await work_through(range(3), watched.work, concurrency=1024, stop=Stop())
        return now()

    assert in_virtual_time(took()) < 0.1
