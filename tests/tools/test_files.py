"""Files that are either whole or not there, and what a killed writer leaves."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coreeval.tools.files import replacing, write_text

DIES = """
import os, signal, sys
from pathlib import Path
from coreeval.tools.files import replacing
with replacing(Path(sys.argv[1])) as draft:
    draft.write_text("half of it")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_drafts_of_killed_writers_do_not_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for _ in range(3):
        died = subprocess.run([sys.executable, "-c", DIES, path], check=False)
        assert died.returncode == -signal.SIGKILL
    assert not path.exists() and len(list(tmp_path.iterdir())) == 1
    write_text(path, "all")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "all"


def test_a_draft_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with replacing(path) as slow:
        slow.write_text("slow")
        write_text(path, "fast")
        assert (path.read_text(), slow.read_text()) == ("fast", "slow")
    assert path.read_text() == "slow"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_many_writers_of_one_file_at_once(tmp_path: Path) -> None:
    path, texts = tmp_path / "state.json", [str(number) * 5000 for number in range(10)]
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda text: write_text(path, text), texts * 10):
            assert path.read_text() in texts
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


def test_trouble_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_text(path, "before")
    with pytest.raises(OSError) as caught, replacing(path) as draft:
        draft.write_text("half")
        raise OSError(28, os.strerror(28))
    assert caught.value.filename == str(path)
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_without_locks_each_process_has_a_draft_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    path = tmp_path / "report.html"
    with replacing(path) as draft:
        assert str(os.getpid()) in draft.name
        draft.write_text("all")
    assert path.read_text() == "all"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
