"""A run that is killed goes on where it stood: no sample lost, no answered call asked again."""

import os
import signal

import pytest

from coreeval.graph.state import SAMPLE_NODES
from tests.graph.kit import Lab, Undisturbed, assert_whole, ended
from tests.support.answers import SHAPE_OF

CONCURRENCY = 4
AFTER = [f"after:{node}:2" for node in SAMPLE_NODES]
BEFORE = [f"before:{node}:2" for node in ("judge_original", "retrieve", "compose", "reflect")]
STAGES = ["at:plan", "at:assemble", "at:report"]


def killed(lab: Lab, undisturbed: Undisturbed, die: str) -> set[str]:
    """Start a run that dies; return what it had in its call store then."""
    assert ended(lab.child("refresh", die=die)) == -signal.SIGKILL
    assert lab.manifest.status == "running"
    return lab.answered() if lab.workspace.calls.exists() else set()


def assert_resumes(lab: Lab, undisturbed: Undisturbed, answered: set[str]) -> None:
    """Resume, and hold what was asked against what had been answered."""
    before = set(lab.asked())
    lab.forget()
    lab.resume()
    again = lab.asked()
    assert not answered & set(again)
    assert len(again) == len(set(again))
    assert len(before & set(again)) <= 2 * CONCURRENCY, "more than what was in flight"
    assert before | set(again) == undisturbed.asked
    assert_whole(lab, undisturbed)


@pytest.mark.parametrize("die", [*AFTER, *BEFORE, *STAGES])
def test_killed_at_a_boundary(lab: Lab, undisturbed: Undisturbed, die: str) -> None:
    answered = killed(lab, undisturbed, die)
    assert_resumes(lab, undisturbed, answered)


@pytest.mark.parametrize("shape", SHAPE_OF.values())
def test_killed_while_a_model_is_asked(lab: Lab, undisturbed: Undisturbed, shape: str) -> None:
    child = lab.child("refresh")

    def kill() -> None:
        assert child.pid
        os.kill(child.pid, signal.SIGKILL)

    trap = lab.trap(shape, 3, kill)
    assert ended(child) == -signal.SIGKILL
    assert trap.sprung.is_set()
    answered = lab.answered()
    assert answered < undisturbed.asked
    assert_resumes(lab, undisturbed, answered)
