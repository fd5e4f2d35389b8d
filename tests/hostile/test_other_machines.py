"""A run on a medium that cannot be written, and one that was moved, or its workspace was."""

import asyncio
import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from coreeval.errors import RunError
from coreeval.tools.clock import utc_now
from coreeval.tools.files import is_locked
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.heartbeat import COPYING, open_readonly
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_triggers import RUN_SCHEMA
from coreeval.tools.stores.sqlite import open_store
from coreeval.tools.workspace import find_workspace, leads_elsewhere
from tests.cli.conftest import finished, shell  # noqa: F401 - fixtures
from tests.cli.kit import Shell
from tests.tools.stores.call_samples import record


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


def test_an_older_store_that_cannot_be_written_says_that_it_is_older(
    run_db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = RUN_SCHEMA.version
    newer = replace(RUN_SCHEMA, version=here + 1, migrations={here: lambda _connection: None})
    forbid_writing(monkeypatch)
    with pytest.raises(RunError, match=r"run\.db was written by an older CoreEval") as caught:
        open_store(run_db, newer, what="run.db")
    assert "to a place where you may write" in caught.value.hint


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


def paid_in(workspace: Path, payer: str) -> Path:
    """Make a workspace in which a run has paid for an answer."""
    with closing(open_calls(workspace / "calls.db", payer)) as calls:
        asyncio.run(calls.put(record("a question", "an answer")))
    return workspace


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("recorded", ["gone", "there"])
def test_a_moved_workspace_is_found_by_where_the_run_lies(
    tmp_path: Path, inside: bool, recorded: str
) -> None:
    (tmp_path / "there").mkdir()
    home = tmp_path / ".coreeval"
    run = home / "runs" / "name" / "start" if inside else tmp_path / "run"
    run.mkdir(parents=True)
    home.mkdir(exist_ok=True)
    assert find_workspace(tmp_path / recorded, run, "r@now") == home


def test_a_copied_workspace_is_that_of_the_runs_in_it_and_beside_it(tmp_path: Path) -> None:
    original, copy = (paid_in(tmp_path / name / ".coreeval", "r@now") for name in ("old", "new"))
    assert find_workspace(original, copy / "runs" / "name" / "start", "r@now") == copy
    assert find_workspace(original, copy.parent / "run", "r@now") == copy
    assert find_workspace(original, copy.parent / "run", "another@now") == original


def test_no_call_store_is_opened_for_a_run_that_lies_in_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = paid_in(tmp_path / ".coreeval", "r@now")
    opened = list[object]()
    monkeypatch.setattr(
        "coreeval.tools.workspace.open_readonly", lambda *given, **_: opened.append(given)
    )
    assert find_workspace(home, home / "runs" / "name" / "start", "r@now") == home
    assert not opened, "calls gc would wait ten seconds for each run"


def test_a_folder_called_runs_makes_no_workspace(tmp_path: Path) -> None:
    recorded = paid_in(tmp_path / "home", "r@now")
    run = tmp_path / "runs" / "name" / "start"
    assert find_workspace(recorded, run, "r@now") == recorded


def test_the_workspace_that_is_named_comes_before_one_that_knows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, named = paid_in(tmp_path / "there", "r@now"), tmp_path / "named"
    assert find_workspace(there, tmp_path / "run", "r@now") == there
    named.mkdir()
    monkeypatch.setenv("COREEVAL_HOME", str(named))
    assert find_workspace(there, tmp_path / "run", "r@now") == there  # it paid there
    assert find_workspace(there, tmp_path / "run", "forged@now") == named
    assert find_workspace(tmp_path / "gone", tmp_path / "run", "r@now") == named


def test_the_workspace_that_is_named_comes_before_another_if_only_it_knows_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, around = paid_in(tmp_path / "old", "r@now"), tmp_path / "new" / ".coreeval"
    run = around / "runs" / "name" / "start"
    run.mkdir(parents=True)
    assert find_workspace(named, run, "r@now") == around
    monkeypatch.setenv("COREEVAL_HOME", str(named))
    assert find_workspace(named, run, "r@now") == named
    assert find_workspace(named, run, "another@now") == around
    assert find_workspace(named, run, "r@now") == named
    paid_in(around, "r@now")
    assert find_workspace(named, run, "r@now") == around


def test_only_a_workspace_that_knows_a_run_need_not_be_near(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    elsewhere, run = paid_in(tmp_path / "else" / ".coreeval", "r@now"), tmp_path / "x" / "run"
    assert leads_elsewhere(elsewhere, run, "forged@now")
    assert not leads_elsewhere(elsewhere, run, "r@now")
    assert not leads_elsewhere(run.parent / ".coreeval", run, "forged@now")
    monkeypatch.chdir(elsewhere.parent)
    assert not leads_elsewhere(elsewhere, run, "forged@now")


@pytest.fixture
def copied(shell: Shell, finished: Path) -> tuple[Path, Path]:  # noqa: F811
    """Return a run in a workspace, and the same in a copy of it."""
    lab = shell.folder / "lab"
    run = Path(shutil.copytree(finished, lab / ".coreeval" / "runs" / "trial" / "start"))
    rename_workspace(run, lab / ".coreeval")
    copy = Path(shutil.copytree(lab, shell.folder / "copy"))
    return run, copy / run.relative_to(lab)


def rename_workspace(run: Path, workspace: Path) -> None:
    """Write another workspace into a manifest."""
    manifest = run / "manifest.json"
    told = json.loads(manifest.read_text("utf-8")) | {"workspace": str(workspace)}
    manifest.write_text(json.dumps(told), encoding="utf-8")


@pytest.mark.parametrize("listed_in", ["original", "copy"])
def test_a_release_of_a_copied_run_stays_in_the_copy_and_respects_both_lists(
    shell: Shell,  # noqa: F811
    copied: tuple[Path, Path],
    listed_in: str,
) -> None:
    original, copy = (run.parents[2] for run in copied)
    (original if listed_in == "original" else copy).joinpath("takedown.txt").write_text("Nobody\n")
    assert shell("release", copied[1], "--version", "1").code == 0
    assert not (original / "releases").exists()
    (made,) = (copy / "releases").glob("*/1/release.json")
    assert json.loads(made.read_text("utf-8"))["takedown"]["entries"] == 1


@pytest.mark.parametrize(
    ("named", "there", "code"), [("x/.coreeval", True, 2), ("x/new", False, 2), ("x", True, 0)]
)
def test_a_manifest_does_not_say_where_a_release_is_written(
    shell: Shell,  # noqa: F811
    finished: Path,  # noqa: F811
    named: str,
    there: bool,
    code: int,
) -> None:
    run, victim = shell.folder / "got" / "run", shell.folder / named
    shutil.copytree(finished, run)
    if there:
        victim.mkdir(parents=True)
    rename_workspace(run, victim)
    said = shell("release", run, "--version", "1")
    assert said.code == code
    assert not code or ("--out DIR" in said.err and "COREEVAL_HOME=DIR" in said.err)
    assert not (victim / "releases").exists()
    assert shell("release", run, "--version", "2", "--out", shell.folder / "out").code == 0


def test_a_manifest_does_not_name_a_benchmark_that_leads_elsewhere(
    shell: Shell,  # noqa: F811
    copied: tuple[Path, Path],
) -> None:
    manifest = copied[0] / "manifest.json"
    told = json.loads(manifest.read_text("utf-8")) | {"name": "../../out"}
    manifest.write_text(json.dumps(told), encoding="utf-8")
    said = shell("release", copied[0], "--version", "1")
    assert said.code == 2 and "the manifest is damaged: name" in said.err
    assert not (shell.folder / "lab" / "out").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"status": "../../x"},
        {"models": []},
        {"models": {}},
        {"models": {"default": 3}},
        {"cost": {"by_model": 3}},
        {"cost": {"by_model": [3]}},
        {"cost": {"by_model": [{}]}},
        {"cost": {"budget_usd": []}},
        {"control": 3},
        {"created_at": 3},
        {"workspace": None},
    ],
    ids=str,
)
def test_status_says_what_is_wrong_with_a_manifest(
    shell: Shell,  # noqa: F811
    finished: Path,  # noqa: F811
    change: dict[str, object],
) -> None:
    run = Path(shutil.copytree(finished, shell.folder / "run"))
    manifest = run / "manifest.json"
    told = json.loads(manifest.read_text("utf-8")) | change
    manifest.write_text(json.dumps(told), encoding="utf-8")
    said = shell("status", run)
    assert said.code == 2, said.err
    assert "the manifest is damaged" in said.err and f"where: {manifest}" in said.err


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

    monkeypatch.setattr("coreeval.runs.status.read_status", refuse)
    said = shell("status", ".")
    assert said.code == 1
    assert "where: place" in said.err and "to do: " in said.err
