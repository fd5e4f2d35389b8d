"""`coreeval detect drop`: what the report says, again, and plain words where it says nothing."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from coreeval import cli
from coreeval.evaluation.report.report_document import write_report
from coreeval.tools.workspace import RunFiles
from tests.evaluation.report.kit import TARGET, found_in, says

MODELS = {"default": "offline", "targets": [TARGET]}


@pytest.fixture
def reported(tmp_path: Path) -> RunFiles:
    """Return a run of six samples with a report on one target."""
    said = [says(number, arm, "joy") for number in (1, 2) for arm in ("original", "updated")]
    found = found_in(tmp_path, models=MODELS, said=said)
    (manifest,) = tmp_path.rglob("manifest.json")
    files = RunFiles(tmp_path / "reported")
    files.root.mkdir()
    shutil.copy(manifest, files.manifest)
    write_report(found, files)
    return files


def document(capsys: pytest.CaptureFixture[str], *given: object, code: int = 0) -> dict[str, Any]:
    assert cli.main(["detect", "drop", *map(str, given), "--json"]) == code
    read: dict[str, Any] = json.loads(capsys.readouterr().out)
    return read


def test_the_document_is_that_of_the_report(
    reported: RunFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    report = json.loads(reported.report_json.read_text())
    assert document(capsys, reported.root) == {"run": str(reported.root), **report["decomposition"]}
    assert cli.main(["detect", "drop", str(reported.root)]) == 0
    said = capsys.readouterr().out
    assert f"{TARGET}: too few" in said and "run.control_window" in said
    assert "panel too small: 0 of 5" in said and "decomposition cannot tell" in said


def test_the_table_of_samples_is_copied(
    reported: RunFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document(capsys, reported.root, "--items", tmp_path / "table.csv")
    copied = (tmp_path / "table.csv").read_text()
    assert copied == reported.items.read_text() and copied.startswith("target,id,label,original_1")
    refused = document(capsys, reported.root, "--items", tmp_path / "no" / "table.csv", code=2)
    assert "cannot be copied" in refused["error"]["message"]


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        (None, "no report yet", 2),
        ('{"arms": {"targets": []}}', "nobody was asked", 2),
        ('{"arms": {"targets": [1]}}', "from before drops were taken apart", 2),
        ("{", "damaged", 1),
    ],
)
def test_a_run_without_drops_says_what_to_do(
    reported: RunFiles,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    said: str,
    code: int,
) -> None:
    reported.report_json.unlink()
    if text is not None:
        reported.report_json.write_text(text)
    error = document(capsys, reported.root, code=code)["error"]
    assert said in error["message"] and "coreeval" in error["hint"]
