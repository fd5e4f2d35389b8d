"""Damaged stores are told apart from failed samples, named, and left as they are."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.errors import RunCorrupt, RunStateError
from coreeval.graph.run import resume, retry
from tests.graph.conftest import MakeLab
from tests.graph.kit import Lab, Undisturbed, assert_whole, ended

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
            (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [name]).fetchone()
        whole = bytearray(file.read_bytes())
        whole[(root - 1) * PAGE : root * PAGE] = NOISE * PAGE
        file.write_bytes(whole)

    damage.__name__ = f"in_{name}"
    return damage


Damage = Callable[[Path], None]
ANY: list[Damage] = [overwritten, truncated, no_database]


@pytest.fixture(scope="module")
def half_done(make_lab: MakeLab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Return a killed run; its databases are whole and in one file each."""
    lab = make_lab(tmp_path_factory.mktemp("half-done"))
    lab.forget()
    ended(lab.child("refresh", die="after:reflect:3"))
    for file in (lab.files.store, lab.files.checkpoints, lab.workspace.calls):
        with closing(sqlite3.connect(file)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return lab


@pytest.fixture
def lab(half_done: Lab, tmp_path: Path, undisturbed: Undisturbed) -> Lab:
    """Return a copy of the killed run, workspace and all."""
    shutil.copytree(half_done.folder, tmp_path, dirs_exist_ok=True)
    lab = Lab(folder=tmp_path, server=half_done.server, answers=half_done.answers)
    manifest = lab.files.manifest.read_text()
    lab.files.manifest.write_text(manifest.replace(str(half_done.folder), str(tmp_path)))
    lab.forget()
    return lab


@pytest.mark.parametrize("damage", ANY)
def test_a_damaged_run_store(lab: Lab, damage: Damage) -> None:
    damage(lab.files.store)
    before = lab.files.store.read_bytes()
    for again in (resume, retry):
        with pytest.raises(RunCorrupt, match=r"run\.db is damaged") as caught:
            again(lab.files.root)
        assert caught.value.where == str(lab.files.store)
        assert "restore" in caught.value.hint
        assert lab.files.store.read_bytes() == before


@pytest.mark.parametrize("table", ["samples", "results", "steps", "evidence"])
def test_damage_that_shows_only_on_the_way(lab: Lab, table: str) -> None:
    """It stops the run; it does not make failed samples, nor a story with holes."""
    in_table(table)(lab.files.store)
    with pytest.raises(RunCorrupt, match=r"run\.db is damaged") as caught:
        lab.resume()
    assert caught.value.where == str(lab.files.store)
    assert "restore" in caught.value.hint
    assert NOISE * PAGE in lab.files.store.read_bytes()
    assert lab.manifest.status != "complete"
    assert not lab.files.dataset.exists()


def test_a_run_store_that_is_gone_is_not_made_anew(lab: Lab) -> None:
    lab.files.store.unlink()
    for again in (resume, retry):
        with pytest.raises(RunCorrupt, match=r"run\.db is missing"):
            again(lab.files.root)
        assert not lab.files.store.exists()


@pytest.mark.parametrize("damage", [*ANY, in_table("checkpoints"), in_table("writes")])
def test_damaged_checkpoints(lab: Lab, undisturbed: Undisturbed, damage: Damage) -> None:
    """They may be deleted: what was answered is in the call store."""
    damage(lab.files.checkpoints)
    before = lab.files.checkpoints.read_bytes()
    with pytest.raises(RunCorrupt, match=r"checkpoints\.db is damaged") as caught:
        lab.resume()
    assert "delete it" in caught.value.hint
    assert lab.files.checkpoints.read_bytes() == before
    lab.files.checkpoints.unlink()
    answered = lab.answered()
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert_whole(lab, undisturbed)


@pytest.mark.parametrize("damage", [*ANY, in_table("calls")])
def test_a_damaged_call_store(lab: Lab, damage: Damage) -> None:
    damage(lab.workspace.calls)
    before = lab.workspace.calls.read_bytes()
    with pytest.raises(RunCorrupt, match="call store") as caught:
        lab.resume()
    assert caught.value.where == str(lab.workspace.calls)
    assert lab.workspace.calls.read_bytes() == before
    assert lab.manifest.counts["failed"] == 0


def test_an_answer_that_is_damaged_is_asked_for_again(
    lab: Lab, undisturbed: Undisturbed
) -> None:
    answered = lab.answered()
    with closing(sqlite3.connect(lab.workspace.calls)) as db, db:
        db.execute("UPDATE calls SET response = x'00' WHERE role = 'label_judge'")
    damaged = answered - lab.answered()
    lab.files.checkpoints.unlink()
    lab.forget()
    lab.resume()
    assert damaged
    assert answered & set(lab.asked()) <= damaged
    assert_whole(lab, undisturbed)


def test_a_directory_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunStateError, match=r"no manifest\.json"):
        resume(tmp_path)
    (tmp_path / "manifest.json").write_text('{"version": 1')
    with pytest.raises(RunStateError, match="manifest is damaged"):
        resume(tmp_path)
