"""The pool of samples: how many are open, how they begin, and the garbage collector."""

import asyncio
import gc
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

import pytest

from coreeval.graph.pool import OBJECTS_BETWEEN_ROUNDS, Stop, run_pool
from tests.graph.kit import SAMPLES, Lab, Undisturbed, assert_whole, ended
from tests.support.llm_server import Reply
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
        asyncio.run(run_pool(["a"], work, concurrency=2, stop=Stop()))
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
    in_virtual_time(run_pool(range(100), watched.work, concurrency=concurrency, stop=Stop()))
    assert watched.most_open == most
    assert len(watched.begun) == 100


def test_samples_begin_one_after_the_other() -> None:
    watched = Watched(seconds=60)
    in_virtual_time(run_pool(range(40), watched.work, concurrency=32, stop=Stop()))
    assert len(set(watched.begun)) == 40
    assert watched.begun[-1] - watched.begun[0] < 1


def test_nobody_waits_for_workers_that_have_nothing_to_do() -> None:
    watched = Watched(seconds=0)

    async def took() -> float:
        await run_pool(range(3), watched.work, concurrency=1024, stop=Stop())
        return now()

    assert in_virtual_time(took()) < 0.1


HELD_S = 30.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_steps_in_flight_finish(
    lab: Lab, undisturbed: Undisturbed, number: signal.Signals
) -> None:
    lab.trap("", 12, lambda: os.kill(child.pid or 0, number))
    child = lab.child("refresh")
    assert ended(child) == 130
    assert_interrupted(lab)
    answered, asked = lab.answered(), lab.asked()
    assert set(asked) == answered, "a step in flight was not finished"
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert answered | set(lab.asked()) == undisturbed.asked
    assert_whole(lab, undisturbed)


def test_the_second_signal_stops_at_once(lab: Lab, undisturbed: Undisturbed) -> None:
    """A model that hangs must not keep anybody waiting who has asked twice."""

    def hang() -> Reply:
        os.kill(child.pid or 0, signal.SIGINT)
        threading.Thread(target=ask_again, args=(child,)).start()
        return Reply(delay_s=HELD_S)

    lab.trap("composition", 1, hang)
    child = lab.child("refresh")
    began = time.monotonic()
    assert ended(child) == 130
    assert time.monotonic() - began < HELD_S / 2
    assert_interrupted(lab)
    answered = lab.answered()
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert_whole(lab, undisturbed)


def ask_again(child: BaseProcess) -> None:
    time.sleep(0.5)  # time enough to drain all but the request that hangs
    os.kill(child.pid or 0, signal.SIGINT)


def assert_interrupted(lab: Lab) -> None:
    """Assert that the manifest and what was printed tell the same, and that it adds up."""
    manifest, counts = lab.manifest, dict(lab.manifest.counts)
    assert (manifest.status, bool(manifest.ended_at)) == ("interrupted", True)
    assert counts.pop("total") == SAMPLES == sum(counts.values())
    assert 0 < counts["pending"] <= SAMPLES
    assert counts["failed"] == 0
    assert not lab.files.dataset.exists()
    assert f'"status": "{manifest.status}"' in lab.out.read_text()
    assert json.dumps(lab.manifest.counts["pending"]) in lab.out.read_text()
