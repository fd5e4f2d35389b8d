"""A checkpoints.db that somebody else wrote: it runs no code, and the user is told what to do."""

import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import ormsgpack
import pytest

from coreeval.errors import RunCorrupt
from tests.graph.conftest import moved
from tests.graph.kit import Lab, Undisturbed, assert_whole

RESUME = """
import sys
import langgraph.graph  # before coreeval, so that its settings are those of the environment
from coreeval.errors import CoreEvalError
from coreeval.graph.run import resume
for run in sys.argv[1:]:
    try:
        resume(run)
        print("no error")
    except CoreEvalError as error:
        print(error)
"""
CONSTRUCTORS: dict[str, tuple[int, Callable[[str], object]]] = {
    "one argument": (0, lambda code: ("builtins", "exec", code)),
    "positional": (1, lambda code: ("builtins", "exec", (code,))),
    "method": (3, lambda code: ("builtins", "__class__", code, "exec")),
    "pydantic": (5, lambda code: ("subprocess", "Popen", {"args": code}, "model_construct")),
}
"""How LangGraph's msgpack names what it calls: extension code and what the extension holds."""


class Bomb:
    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, (self.code,)


def put(file: Path, table: str, column: str, kind: str, value: bytes) -> None:
    """Put a value into each row of a table of the checkpoints."""
    with closing(sqlite3.connect(file)) as db, db:
        changed = db.execute(f"UPDATE {table} SET type = ?, {column} = ?", [kind, value])
        assert changed.rowcount > 0


def resumed(labs: Sequence[Lab], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Resume runs in a process that imported langgraph first and asks it to be careless."""
    return subprocess.run(
        [sys.executable, "-c", RESUME, *(str(lab.files.root) for lab in labs)],
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "false"},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_row_that_names_code_does_not_run_it(halted: Lab, tmp_path: Path) -> None:
    labs = list[Lab]()
    for constructor, (code, packed) in CONSTRUCTORS.items():
        [lab] = moved(halted, tmp_path / constructor)
        payload = ormsgpack.packb(packed(f"open({str(lab.folder / 'code-ran')!r}, 'w')"))
        hostile = ormsgpack.packb({"v": ormsgpack.Ext(code, payload)})
        put(lab.files.checkpoints, "checkpoints", "checkpoint", "msgpack", hostile)
        labs.append(lab)
    done = resumed(labs, Path.cwd())
    assert done.returncode == 0, done.stderr
    assert "no error" not in done.stdout
    told = "checkpoints.db contains a row that CoreEval did not write"
    assert done.stdout.count(told) == done.stdout.count("to do: delete it") == len(labs)
    for lab in labs:
        assert not (lab.folder / "code-ran").exists()
        assert str(lab.files.checkpoints) in done.stdout


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("msgpack", b"\xc1"),
        ("msgpack", ormsgpack.packb(5)),
        ("msgpack", ormsgpack.packb({"v": 4, "id": "1", "ts": "", "channel_values": 5})),
        ("json", b'{"lc": 2, "type": "constructor", "id": ["builtins", "exec"], "args": ["1"]}'),
        ("pickle", pickle.dumps(Bomb("raise SystemExit(99)"))),
        ("unheard of", b""),
    ],
)
def test_a_row_of_another_kind_is_refused(stopped: Lab, kind: str, value: bytes) -> None:
    put(stopped.files.checkpoints, "checkpoints", "checkpoint", kind, value)
    with pytest.raises(RunCorrupt, match="a row that CoreEval did not write") as caught:
        stopped.resume()
    assert caught.value.where == str(stopped.files.checkpoints)
    assert caught.value.hint.startswith("delete it")
    assert stopped.manifest.counts["failed"] == 0


def test_metadata_that_is_not_json_is_refused(stopped: Lab) -> None:
    with closing(sqlite3.connect(stopped.files.checkpoints)) as db, db:
        assert db.execute("UPDATE checkpoints SET metadata = x'7b22'").rowcount > 0
    with pytest.raises(RunCorrupt, match="a row that CoreEval did not write"):
        stopped.resume()


def test_the_hint_helps(stopped: Lab, undisturbed: Undisturbed) -> None:
    put(stopped.files.checkpoints, "checkpoints", "checkpoint", "pickle", b"")
    with pytest.raises(RunCorrupt, match="not read"):
        stopped.resume()
    for file in stopped.files.root.glob("checkpoints.db*"):
        file.unlink()
    stopped.resume()
    assert_whole(stopped, undisturbed)
