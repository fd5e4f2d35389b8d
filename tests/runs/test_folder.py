"""The folder of a run: where a new run may be, and what of it may be deleted."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.errors import RunStateError
from coreeval.runs.folder import delete_run_files, refuse_used_folder
from coreeval.tools.workspace import Workspace


def fill(folder: Path, *names: str) -> Path:
    """Write files into a folder."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    return folder


def test_a_run_gets_a_new_or_empty_folder(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / ".coreeval")
    killed = (
        "run.lock",
        "config.yaml",
        "task.yaml",
        "series.json",
        ".manifest.json.0.tmp",
        "run.db",
        "control/run.db-wal",
    )
    good = [tmp_path / "new", fill(tmp_path / "empty"), fill(tmp_path / "killed", *killed)]
    for folder in (*good, workspace.runs / "n" / "start"):
        refuse_used_folder(folder, workspace)
    bad = {
        "not empty": [
            fill(tmp_path / "a", ".gitkeep"),
            fill(tmp_path / "b", "config.yaml"),
            fill(tmp_path / "c", *killed, "src/run.py"),
            fill(tmp_path / "d", *killed, "dataset/mine.csv"),
        ],
        "the workspace": [tmp_path, workspace.root, workspace.runs],
    }
    for reason, folders in bad.items():
        for folder in folders:
            with pytest.raises(RunStateError, match=reason):
                refuse_used_folder(folder, workspace)


@pytest.mark.parametrize("usd", [0.0, 0.25, None])
def test_the_store_of_a_replay_stays_if_its_answers_were_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usd: float | None
) -> None:
    monkeypatch.chdir(tmp_path)
    run = fill(tmp_path / "run", "run.lock", "manifest.json", "cassette/task.yaml")
    store = run / "cassette" / "workspace" / "calls.db"
    store.parent.mkdir()
    with closing(sqlite3.connect(store)) as file:
        file.execute("CREATE TABLE calls (usd FLOAT)")
        file.execute("INSERT INTO calls VALUES (?)", (usd,))
        file.commit()
    assert delete_run_files(run, None) == ([] if usd == 0.0 else [store])
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == ([] if usd == 0.0 else [store])
