"""Reports of earlier versions lack what was added since; they are read all the same."""

import json
from pathlib import Path

from coreeval.evaluation.report.reading import read_report
from coreeval.tools.workspace import RunFiles


def test_a_report_from_before_targets_were_ranked_has_no_order(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    files.report_json.write_text(json.dumps({"arms": {"targets": [], "draws": 9}}))
    assert read_report(files) == {
        "arms": {"targets": [], "draws": 9, "ranking": None},
        "pcr": None,
        "numleak": None,
        "decomposition": {"targets": []},
    }
