"""The campaign can be run, and sees what does not hold: its cheapest kill, and its clock."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from benchmarks.chaos import kills, works
from benchmarks.chaos.cases import Score
from benchmarks.chaos.commands import Answering, Place
from benchmarks.chaos.moved_clock import YEAR_S, MovedClock, obstacle
from tests.support.llm_server import LLMServer, empty_objects
from tests.support.mirror_server import MirrorServer


def test_a_sync_is_killed_and_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "place"
    root.mkdir()
    at = Place(root, LLMServer(empty_objects), Answering(empty_objects))
    with MirrorServer().running() as mirror:
        mirror.delay_s = 0.005
        work = works.syncing(at, mirror)
        alone = kills.left_alone(at, work)
        score = Score()
        kills.killed(at, work, alone, Random(1), score)
        assert score.tried == 1 and score.broken == []
        (root / "news" / ".report.html.0.tmp").touch()
        other = replace(alone, came_to="something else")
        problems = kills.gone_on(at, work, other, score)
    assert problems == ["it came to something else", "left behind: news/.report.html.0.tmp"]


@pytest.mark.skipif(bool(obstacle()), reason=obstacle() or "a clock can be moved here")
def test_a_process_believes_its_clock(tmp_path: Path) -> None:
    clock = MovedClock.made_in(tmp_path)
    clock.move(YEAR_S, 3600)
    said = "import time; print(time.time(), time.monotonic())"
    before = time.time() + YEAR_S, time.monotonic() + 3600
    out = subprocess.check_output([sys.executable, "-c", said], env=clock.environment, text=True)
    moved = [float(each) for each in out.split()]
    after = time.time() + YEAR_S, time.monotonic() + 3600
    assert all(a <= b <= c for a, b, c in zip(before, moved, after, strict=True))
