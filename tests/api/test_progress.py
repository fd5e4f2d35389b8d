"""Progress: calm lines on a pipe, one line that never wraps on a terminal, nothing on stdout."""

import json
import os
import pty
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import coreeval.api.progress as progress_module
from coreeval.api.progress import show_progress, show_progress_to_viewer
from coreeval.graph.monitor import Progress
from coreeval.tools.stores.heartbeat import ProgressSnapshot, RoleSpeed, Spend, Wait
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


def at(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
    """Let the clock show these times, one after the other."""
    clock = iter(seconds)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))


def test_a_line_when_something_changes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, 0, 1, 2, 3, 14, 15, 16, 17)
    with show_progress("emotion") as watch:
        watch(Progress(stage="plan"))
        watch(Progress(stage="plan"))  # nothing new, and too early
        watch(Progress(stage="refresh", done=1, total=9, counts={"unsafe": 1, "accepted": 0}))
        watch(Progress(stage="refresh", done=2, total=9))  # eleven seconds later
        watch(Progress(stage="refresh", done=9, total=9))
        watch(Progress(stage="refresh", done=9, total=9))  # a heartbeat: nothing new
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


def test_lines_become_rarer_in_a_long_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    beats = range(0, 36_000, 5)
    at(monkeypatch, 0, *beats)
    with show_progress() as watch:
        for second in beats:
            watch(Progress(stage="refresh", done=second, total=99_999))
    assert 100 < len(capsys.readouterr().err.splitlines()) < 200  # ten hours


def test_a_line_says_how_it_goes_and_that_it_does_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, 0, 1, 2, 3, 4)
    spend = Spend(billed_usd=0.4, reserved_usd=0.02, unpriced=0, budget_usd=5.0)
    slowest = RoleSpeed(role="composer", model="openai:x", answers=9, mean_s=4.13)
    rates = ProgressSnapshot(stage="refresh", per_minute=14.25, left_s=2940, sent=8)
    pulse = replace(rates, roles=(slowest,), spend=spend)
    throttled = Wait(
        cause="throttled", who="openai:x", number=8, seconds=71, reason="HTTP 429\x1b[2J"
    )
    stalled = replace(pulse, idle_s=72.0, waits=(throttled,))
    where = Progress(stage="refresh", done=5, total=9, counts={"accepted": 5})
    with show_progress() as watch:
        watch(replace(where, pulse=pulse))
        watch(replace(where, pulse=stalled))
        watch(replace(where, pulse=stalled))  # said already
        watch(replace(where, pulse=pulse))
    goes, does_not, *again = capsys.readouterr().err.splitlines()
    assert goes == (
        "refresh 5/9: accepted 5; 14.2/min, 49 minutes left, 8 in flight, slowest: composer 4.1 s,"
        " 0.42 of 5 USD"
    )
    assert does_not == (
        "refresh 5/9: accepted 5; no progress for 72 s;"
        " openai:x: throttled by its endpoint, 8 requests waiting, "
        "the longest for 71 s: HTTP 429�[2J"
    )
    assert again == [goes]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_bar_that_stays_on_its_line(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with show_progress("emotion") as watch:
            watch(Progress(stage="refresh", done=5, total=400000, counts=COUNTS))
            pulse = ProgressSnapshot(stage="refresh", per_minute=1234, left_s=99_999, sent=1024)
            watch(Progress(stage="refresh", done=309882, total=400000, counts=COUNTS, pulse=pulse))
            watch(Progress(stage="stopping", note="[red]no markup[/red] \x1b[2J" + "long " * 40))
        monkeypatch.undo()
    said = read_all(master)
    os.close(master)
    assert "\x1b[1A\x1b[2K\x1b[1A" not in said  # a line that wraps takes a third to redraw
    assert "1234/min, 28 hours left"[: columns - 3] in said
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
    assert "2/2" in "".join(shown.splitlines()[-3:])  # still there when the last stage is over


class Handle:
    """What IPython returns of a display that is replaced later."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def update(self, drawn: str) -> None:
        """Keep what is shown instead."""
        self.shown.append(drawn)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Pretend that this process is a notebook's kernel; return what its cell shows over time."""
    shown: list[str] = []

    def display(drawn: str, *, display_id: bool) -> Handle:
        assert display_id
        shown.append(drawn)
        return Handle(shown)

    package, displays = ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    displays.HTML, displays.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    return shown


def test_a_notebook_shows_a_bar_without_widgets(notebook: list[str]) -> None:
    with show_progress_to_viewer() as watch:
        watch(Progress(stage="extract", done=3, total=9, counts={"accepted": 2}))
        watch(Progress(stage="extract", done=4, total=9, note="<script>\x1b[31m"))
    assert len(notebook) == 2  # at its start and at its end: the changes came too soon
    assert all(each.startswith("<pre") for each in notebook)
    assert "extract" in notebook[-1] and ">4/9<" in notebook[-1]
    assert "<script" not in notebook[-1] and "\x1b" not in notebook[-1]


def test_the_bar_of_a_notebook_follows_the_run(
    notebook: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "REDRAW_S", 0.0)
    with show_progress_to_viewer() as watch:
        for done in range(3):
            watch(Progress(stage="extract", done=done, total=9, counts={"accepted": done}))
    assert len(notebook) == 1 + 3 + 1
    assert "accepted 1" in notebook[2]


def test_nothing_is_shown_if_nobody_watches_or_wants_it(
    notebook: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with show_progress_to_viewer(wanted=False) as watch:
        watch(Progress(stage="extract", done=9, total=9))
    monkeypatch.delitem(sys.modules, "IPython")
    with show_progress_to_viewer() as watch:
        watch(Progress(stage="extract", done=9, total=9))
    assert notebook == []
    assert capsys.readouterr() == ("", "")
