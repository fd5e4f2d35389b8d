"""A run on a medium that cannot be written, and one that was moved, or its workspace was."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.errors import RunError
from coreeval.tools.clock import utc_now
from coreeval.tools.files import is_locked
from coreeval.tools.stores.heartbeat import COPYING, open_readonly
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import found_workspace
from tests.cli.conftest import finished, shell  # noqa: F401 - fixtures
from tests.cli.kit import Shell


def forbid_writing(patch: pytest.MonkeyPatch) -> None:
    """Let this process write nothing, by what the system tells: root may write any folder."""
    really = os.access
    patch.setattr(
        "coreeval.tools.stores.heartbeat.os.access",
        lambda path, mode: mode != os.W_OK and really(path, mode),
    )


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def run_db(tmp_path: Path) -> Path:
    """A store that was closed, in a folder of its own."""
    path = tmp_path / "run" / "run.db"
    path.parent.mkdir()
    RunStore.open(path, now=utc_now).close()
    return path


def test_a_store_that_cannot_be_written_is_read_and_nothing_is_made_beside_it(
    run_db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(run_db.parent)
    forbid_writing(monkeypatch)
    store = RunStore.open(run_db, now=utc_now)
    try:
        assert list(store.sample_results()) == []
        assert names(run_db.parent) == before
        with pytest.raises(RunError, match="readonly database"):
            store.finish_stage("assemble", {})
    finally:
        store.close()
    with open_readonly(run_db, what="run.db") as seen:
        assert seen.execute("SELECT count(*) FROM samples").fetchone()[0] == 0
        assert names(run_db.parent) == before


def test_what_another_process_has_not_yet_moved_out_of_its_log_is_read(
    run_db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(run_db)) as other:
        other.execute("INSERT INTO bad_rows VALUES (1, 'f', 1, 'r', 't')")
        other.commit()
        forbid_writing(monkeypatch)
        with open_readonly(run_db, what="run.db") as seen:
            assert seen.execute("SELECT count(*) FROM bad_rows").fetchone()[0] == 1


def test_a_store_whose_log_cannot_be_read_says_what_to_copy(
    run_db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coreeval.tools.stores.sqlite.reading_uri", lambda _path: "file:/nowhere/run.db?mode=ro"
    )
    forbid_writing(monkeypatch)
    with pytest.raises(RunError, match="cannot be opened") as caught:
        RunStore.open(run_db, now=utc_now)
    assert caught.value.hint == COPYING


def test_a_lock_that_cannot_be_written_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, really = tmp_path / "run.lock", os.open
    lock.touch()

    def refuse(path: Path, flags: int) -> int:
        if flags & os.O_RDWR:
            raise OSError(30, "Read-only file system", str(path))
        return really(path, flags)

    monkeypatch.setattr("coreeval.tools.files.os.open", refuse)
    assert not is_locked(lock)


# -- moved ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [True, False])
def test_a_moved_workspace_is_found_by_where_the_run_lies(tmp_path: Path, inside: bool) -> None:
    home = tmp_path / ".coreeval"
    run = home / "runs" / "name" / "start" if inside else tmp_path / "run"
    run.mkdir(parents=True)
    home.mkdir(exist_ok=True)
    assert found_workspace(tmp_path / "gone", run) == home


def test_a_workspace_that_is_there_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, named = tmp_path / "there", tmp_path / "named"
    there.mkdir()
    named.mkdir()
    monkeypatch.setenv("COREEVAL_HOME", str(named))
    assert found_workspace(there, tmp_path / "run") == there
    assert found_workspace(tmp_path / "gone", tmp_path / "run") == named


def test_a_run_without_its_workspace_is_looked_at_but_pays_nothing_twice(
    shell: Shell,  # noqa: F811
    finished: Path,  # noqa: F811
) -> None:
    shutil.copytree(finished, shell.folder / "run")
    manifest = shell.folder / "run" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(str(finished.parent), "/nowhere"))
    with closing(sqlite3.connect(shell.folder / "run" / "run.db")) as store:
        columns = [row[1] for row in store.execute("PRAGMA table_info(calls)")]
        marks = ",".join("?" for _ in columns)
        store.execute(f"INSERT INTO calls VALUES ({marks})", [1 for _ in columns])
        store.commit()
    assert shell("status", "run").code == 0
    said = shell("resume", "run")
    assert said.code == 2
    assert "calls.db" in said.err and "/nowhere/.coreeval" in said.err
    assert "COREEVAL_HOME=DIR" in said.err
    (shell.folder / ".coreeval").mkdir()
    assert "workspace" not in shell("resume", "run").err


@pytest.mark.parametrize("number", [13, 28, 30])
def test_what_the_system_refuses_has_a_way_on(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number), "place")

    monkeypatch.setattr("coreeval.releases.live.live", refuse)
    said = shell("status", "run")
    assert said.code == 1
    assert "where: place" in said.err and "to do: " in said.err
