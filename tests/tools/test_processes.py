"""Signals that are held back while a process is started."""

import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from coreeval.tools.files import flush
from coreeval.tools.processes import hold_signals

STOPPING = {signal.SIGINT, signal.SIGTERM}


def blocked() -> set[signal.Signals]:
    """Return the stop signals that this thread blocks."""
    return STOPPING & set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))


def test_blocks_that_overlap_unblock_when_the_last_one_ends() -> None:
    first, second = ExitStack(), ExitStack()
    first.enter_context(hold_signals())
    second.enter_context(hold_signals())
    first.close()
    assert blocked() == STOPPING
    second.close()
    assert not blocked()
    with hold_signals():
        assert blocked() == STOPPING
    assert not blocked()


def test_windows_blocks_no_signals_and_flushes_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delattr(signal, "pthread_sigmask")
    with hold_signals(), hold_signals():
        flush(tmp_path / "folder that Windows does not open")
