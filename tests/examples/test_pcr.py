import runpy
from pathlib import Path

import pytest

from coreeval.evaluation.pcr import read_pairs

SCRIPT = Path(__file__).parents[2] / "examples" / "pcr.py"


def test_the_made_up_model_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPT))["main"](tmp_path / "pairs.jsonl")
    assert (
        "fine_tuned: from test to train, performance changes by +37.3 (" in capsys.readouterr().out
    )
    read = read_pairs(tmp_path / "pairs.jsonl")
    assert len(read.good) == 300 and not read.bad
