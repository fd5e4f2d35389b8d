"""Progress: calm lines on a pipe, one line that never wraps on a terminal, nothing on stdout."""

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coreeval.cli.progress import watching
from coreeval.graph.progress import Progress
from tests.cli.kit import Shell

COUNTS = {"accepted": 123456, "label_unrecoverable": 98765, "no_knowledge": 87654, "unsafe": 7}


def read_all(descriptor: int) -> str:
    """Read a terminal's other end until nobody writes to it any more."""
    said = b""
    try:
        while chunk := os.read(descriptor, 65536):
            said += chunk
    except OSError:  # how Linux says that the writing end is closed
        pass
    return said.decode()


def test_a_line_when_something_changes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 14.0, 14.0, 15.0, 15.0, 16.0, 16.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with watching("emotion") as watch:
        watch(Progress(stage="plan"))
        watch(Progress(stage="plan"))  # nothing new, and too early
        watch(Progress(stage="refresh", done=1, total=9, counts={"unsafe": 1, "accepted": 0}))
        watch(Progress(stage="refresh", done=2, total=9))  # eleven seconds later
        watch(Progress(stage="refresh", done=9, total=9))
        watch(Progress(stage="evaluate", note="openai:\x1b[31mx", counts=COUNTS))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "emotion: plan",
        "emotion: refresh 1/9: accepted 0, unsafe 1",
        "emotion: refresh 2/9",
        "emotion: refresh 9/9",
        "emotion: evaluate: openai:�[31mx",
    ]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_bar_that_stays_on_its_line(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with watching("emotion") as watch:
            watch(Progress(stage="refresh", done=5, total=400000, counts=COUNTS))
            watch(Progress(stage="refresh", done=309882, total=400000, counts=COUNTS))
            watch(Progress(stage="stopping", note="[red]no markup[/red] \x1b[2J" + "long " * 40))
        monkeypatch.undo()
    said = read_all(master)
    os.close(master)
    assert "\x1b[1A" not in said  # a bar that takes two lines moves the cursor up to redraw
    assert "\x1b[2J" not in said
    assert "stopping" in said
    if columns == 200:
        assert "[red]no markup[/red]" in said
    else:
        assert "…" in said


def test_a_terminal_gets_the_bar_and_stdout_only_the_result(shell: Shell) -> None:
    program = Path(sys.executable).parent / "coreeval"
    config = shell.config()
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [program, "refresh", config, "--limit", "2", "--run-dir", shell.folder / "r", "--json"],
        stdout=subprocess.PIPE,
        stderr=slave,
        env=environment,
    ) as process:
        os.close(slave)
        shown = read_all(master)
        assert process.stdout is not None
        result = json.loads(process.stdout.read())
    os.close(master)
    assert process.returncode == 0
    assert result["counts"]["total"] == 2
    assert "━" in shown
    assert "2/2" in shown.splitlines()[-2]  # still there when the last stage is over
