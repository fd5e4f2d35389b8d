"""The pool of samples: what it does about the garbage collector."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coreeval.graph.pool import OBJECTS_BETWEEN_ROUNDS, Stop, work_through


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
