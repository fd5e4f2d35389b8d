"""Damaged stores are told apart from failed samples, named, and left as they are."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.errors import RunCorrupt, RunStateError
from coreeval.graph.run import resume, retry
from tests.graph.kit import Lab, Undisturbed, assert_whole

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
