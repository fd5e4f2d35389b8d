"""A run that is killed goes on where it stood: no sample lost, no answered call asked again."""

import json
import os
import random
import signal
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.errors import RunCorrupt, RunStateError
from coreeval.graph.run import resume, retry
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
    for number in range(3):
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


PAGE = 4096
NOISE = b"\xa5"


def overwritten(file: Path) -> None:
    """Leave the first page and put noise over all others."""
    whole = file.read_bytes()
    file.write_bytes(whole[:PAGE] + NOISE * (len(whole) - PAGE))


def truncated(file: Path) -> None:
    """Keep the first half, cut inside a page."""
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2 + 100])


def no_database(file: Path) -> None:
    file.write_text("These are my notes, not a database.\n" * 200)


def in_table(name: str) -> Callable[[Path], None]:
    """Return a damage of one table only, which is not seen before it is read."""

    def damage(file: Path) -> None:
        with closing(sqlite3.connect(file)) as db:
            (root,) = db.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = ?", [name]
            ).fetchone()
        whole = bytearray(file.read_bytes())
        whole[(root - 1) * PAGE : root * PAGE] = NOISE * PAGE
        file.write_bytes(whole)

    damage.__name__ = f"in_{name}"
    return damage


Damage = Callable[[Path], None]
ANY: list[Damage] = [overwritten, truncated, no_database]


@pytest.mark.parametrize("damage", ANY)
def test_a_damaged_run_store(killed: Lab, damage: Damage) -> None:
    damage(killed.files.store)
    before = killed.files.store.read_bytes()
    for again in (resume, retry):
        with pytest.raises(RunCorrupt, match=r"run\.db is damaged") as caught:
            again(killed.files.root)
        assert caught.value.where == str(killed.files.store)
        assert "restore" in caught.value.hint
        assert killed.files.store.read_bytes() == before


@pytest.mark.parametrize("table", ["samples", "results", "steps", "evidence"])
def test_damage_that_shows_only_on_the_way(killed: Lab, table: str) -> None:
    """It stops the run; it does not make failed samples, nor a story with holes."""
    in_table(table)(killed.files.store)
    with pytest.raises(RunCorrupt, match=r"run\.db is damaged") as caught:
        killed.resume()
    assert caught.value.where == str(killed.files.store)
    assert "restore" in caught.value.hint
    assert NOISE * PAGE in killed.files.store.read_bytes()
    assert killed.manifest.status != "complete"
    assert not killed.files.dataset.exists()


def test_a_run_store_that_is_gone_is_not_made_anew(killed: Lab) -> None:
    killed.files.store.unlink()
    for again in (resume, retry):
        with pytest.raises(RunCorrupt, match=r"run\.db is missing"):
            again(killed.files.root)
        assert not killed.files.store.exists()


@pytest.mark.parametrize("damage", [*ANY, in_table("checkpoints")])
def test_damaged_checkpoints(stopped: Lab, damage: Damage) -> None:
    damage(stopped.files.checkpoints)
    before = stopped.files.checkpoints.read_bytes()
    with pytest.raises(RunCorrupt, match=r"checkpoints\.db is damaged") as caught:
        stopped.resume()
    assert caught.value.where == str(stopped.files.checkpoints)
    assert "delete it" in caught.value.hint
    assert stopped.manifest.counts["failed"] == 0
    if damage in ANY:
        assert stopped.files.checkpoints.read_bytes() == before


def test_checkpoints_may_be_deleted(stopped: Lab, undisturbed: Undisturbed) -> None:
    """What was answered is in the call store, so that beginning anew costs nothing."""
    stopped.files.checkpoints.unlink()
    answered = stopped.answered()
    stopped.resume()
    assert answered.isdisjoint(stopped.asked())
    assert_whole(stopped, undisturbed)


@pytest.mark.parametrize("damage", [*ANY, in_table("calls")])
def test_a_damaged_call_store(killed: Lab, damage: Damage) -> None:
    damage(killed.workspace.calls)
    before = killed.workspace.calls.read_bytes()
    with pytest.raises(RunCorrupt, match="call store") as caught:
        killed.resume()
    assert caught.value.where == str(killed.workspace.calls)
    assert killed.workspace.calls.read_bytes() == before
    assert killed.manifest.counts["failed"] == 0


def test_an_answer_that_is_damaged_is_asked_for_again(
    killed: Lab, undisturbed: Undisturbed
) -> None:
    answered = killed.answered()
    with closing(sqlite3.connect(killed.workspace.calls)) as db, db:
        db.execute("UPDATE calls SET response = x'00' WHERE role = 'label_judge'")
    damaged = answered - killed.answered()
    killed.files.checkpoints.unlink()
    killed.forget()
    killed.resume()
    assert damaged
    assert answered & set(killed.asked()) <= damaged
    assert_whole(killed, undisturbed)


def test_a_directory_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunStateError, match=r"no manifest\.json"):
        resume(tmp_path)
    (tmp_path / "manifest.json").write_text('{"version": 1')
    with pytest.raises(RunStateError, match="manifest is damaged"):
        resume(tmp_path)


FULL = ["calls.db:40", "run.db:60"]
"""Files that may have so many pages and no more."""
MOST = 2 * CONCURRENCY
"""Calls that may be in flight: a sample is reworded while its news is looked for."""


@pytest.mark.parametrize("full", FULL)
def test_a_full_disk(lab: Lab, undisturbed: Undisturbed, full: str) -> None:
    assert ended(lab.child("refresh", full=full)) == 1
    told(lab, full)
    assert not lab.files.dataset.exists()
    once, answered = lab.asked(), lab.answered()
    assert len(once) <= len(answered) + MOST
    shared = [shape for shape in lab.asked_shapes() if shape == "labels"]
    assert len(once) - len(set(once)) <= len(shared), "a lost batch is asked by its next sample"

    lab.forget()
    assert ended(lab.child("resume", full=full)) == 1
    told(lab, full)
    assert answered.isdisjoint(lab.asked()) and answered <= lab.answered()

    answered = lab.answered()
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert_whole(lab, undisturbed)


def told(lab: Lab, full: str) -> None:
    """Assert that the last process said what is wrong, once, and blamed no sample for it."""
    said = lab.out.read_text()
    error = json.loads(said[said.index('{\n  "error"') :])["error"]
    assert "disk is full" in error["message"] and "resume" in error["hint"]
    assert error["where"].endswith(full.partition(":")[0])
    assert said.count("disk is full") == 1 and "Traceback" not in said
    assert lab.manifest.status == "stopped"
    assert lab.manifest.counts["failed"] == 0
