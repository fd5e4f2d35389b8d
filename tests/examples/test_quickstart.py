import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "quickstart.py"


def test_the_quickstart_runs_offline_and_shows_an_updated_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(SCRIPT))["main"](tmp_path)
    printed = capsys.readouterr().out
    assert "emotion.yaml: ready to run" in printed
    assert "of demo-emotion: complete" in printed
    assert "rewritten with recent facts" in printed
    assert "replaced facts: " in printed
    assert "http" in printed
