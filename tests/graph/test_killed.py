"""A run that is killed goes on where it stood: no sample lost, no answered call asked again."""

import os
import random
import signal
import threading
from collections.abc import Sequence

import pytest

from tests.graph.kit import CONCURRENCY, Lab, Undisturbed, assert_whole, ended

DEATHS = {
    "after the early nodes": (
        "after:extract:2",
        "after:judge_original:2",
        "after:reword:2",
        "after:judge_semantic:2",
        "after:retrieve:2",
    ),
    "after the late nodes": (
        "after:replace:2",
        "after:compose:2",
        "after:check:2",
        "after:reflect:2",
    ),
    "before a node": ("before:judge_original:2", "before:compose:2", "before:reflect:2"),
    "while a model is asked": (
        "in:extraction:2",
        "in:label:2",
        "in:rewrite:2",
        "in:plan:2",
        "in:composition:2",
        "in:fact_check:2",
    ),
    "between stages": ("at:plan", "at:assemble", "at:report"),
}
"""What kills a run, the run resumed after it, the run resumed after that, and so on."""


@pytest.mark.parametrize("deaths", DEATHS.values(), ids=DEATHS.keys())
def test_killed_again_and_again(lab: Lab, undisturbed: Undisturbed, deaths: Sequence[str]) -> None:
    asked, answered = set[str](), set[str]()
    for number, death in enumerate(deaths):
        die(lab, "resume" if number else "refresh", death)
        assert lab.manifest.status == "running"
        asked |= new_questions(lab, asked, answered)
        answered = lab.answered()
        assert answered <= undisturbed.asked
    lab.resume()
    asked |= new_questions(lab, asked, answered)
    assert asked == undisturbed.asked
    assert_whole(lab, undisturbed)


@pytest.mark.parametrize(("seed", "slow"), [(1, ""), (2, "run.db")])
def test_killed_at_random_moments(lab: Lab, undisturbed: Undisturbed, seed: int, slow: str) -> None:
    """Also where the disk is so slow that what was done last is not written yet."""
    chance = random.Random(seed)
    asked, answered = set[str](), set[str]()
    for number in range(5):
        after, wait_s = chance.randint(1, 20), chance.uniform(0, 0.1)
        die_soon(lab, "resume" if number else "refresh", after, wait_s, slow)
        asked |= new_questions(lab, asked, answered)
        answered = lab.answered()
        assert answered <= undisturbed.asked
    lab.resume()
    asked |= new_questions(lab, asked, answered)
    assert asked == undisturbed.asked
    assert_whole(lab, undisturbed)


def die_soon(lab: Lab, command: str, after: int, wait_s: float, slow: str) -> None:
    """Run a command until it is killed, a while after the server got so many requests."""

    def soon() -> None:
        threading.Timer(wait_s, lambda: os.kill(child.pid or 0, signal.SIGKILL)).start()

    trap = lab.trap("", after, soon)
    child = lab.child(command, slow=slow)
    assert ended(child) == -signal.SIGKILL
    assert trap.sprung.is_set()


def die(lab: Lab, command: str, death: str) -> None:
    """Run a command until it is killed: by itself, or by the server that it asks."""
    if not death.startswith("in:"):
        assert ended(lab.child(command, die=death)) == -signal.SIGKILL
        return
    _, shape, count = death.split(":")
    trap = lab.trap(shape, int(count), lambda: os.kill(child.pid or 0, signal.SIGKILL))
    child = lab.child(command)
    assert ended(child) == -signal.SIGKILL
    assert trap.sprung.is_set()


def new_questions(lab: Lab, asked: set[str], answered: set[str]) -> set[str]:
    """Return what the last process asked; all that may have been asked before was in flight."""
    now = lab.asked()
    lab.forget()
    assert not answered & set(now), "an answer that was kept was asked for again"
    assert len(now) == len(set(now))
    assert len(asked & set(now)) <= 2 * CONCURRENCY, "more than what was in flight"
    return set(now)
