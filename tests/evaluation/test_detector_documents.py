"""Documents of detectors that another version wrote, or that are damaged: one message each."""

import json
from pathlib import Path
from typing import Any

import pytest

from coreeval.errors import RunCorrupt
from coreeval.evaluation.detectors import DOCUMENTED
from coreeval.evaluation.detectors.documents import read_document, read_documents, write_document
from coreeval.evaluation.recitation import RecitationItem, halve_text, judge_recitation
from coreeval.tools.workspace import RunFiles

BARE = {"target": "openai:m", "reason": "because"}


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    """Return the files of a run without documents."""
    (tmp_path / "detectors").mkdir()
    return RunFiles(tmp_path)


def write(files: RunFiles, detector: str, entry: dict[str, Any]) -> Path:
    """Write a document with one target, and return its path."""
    path = files.detector_document(detector)
    document = {"detector": detector, "question": "?", "targets": [entry]}
    path.write_text(json.dumps(document))
    return path


def recitation_entry() -> dict[str, Any]:
    """Return a finding of recitation."""
    halves = halve_text(" ".join(f"word{n}" for n in range(16)))
    assert halves is not None
    item = RecitationItem("x", {"original": halves, "semantic": halves})
    found = judge_recitation([item], {("x", arm): ("answered", halves.rest) for arm in item.texts})
    return BARE | found.model_dump(mode="json")


@pytest.mark.parametrize("detector", sorted(DOCUMENTED))
def test_a_document_without_what_its_tables_show_is_one_error(
    files: RunFiles, detector: str
) -> None:
    verdict = next(iter(DOCUMENTED[detector].verdicts))
    path = write(files, detector, BARE | {"verdict": verdict})
    with pytest.raises(RunCorrupt, match="is damaged or from another version") as caught:
        read_documents(files)
    assert caught.value.where == str(path)
    assert DOCUMENTED[detector].command in caught.value.hint
    assert "\n" not in str(caught.value.args[0])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"twins": {"semantic": {}}}, "'items' is missing"),
        ({"twins": []}, "AttributeError"),
        ({"verdict": "odd"}, "recitation has no verdict 'odd'"),
        ({"target": 1, "reason": 2}, "TypeError"),
        ({"caveat": 3}, "TypeError"),
    ],
)
def test_what_is_wrong_is_told(files: RunFiles, change: dict[str, Any], told: str) -> None:
    write(files, "recitation", recitation_entry() | change)
    with pytest.raises(RunCorrupt, match=told):
        read_document(files, DOCUMENTED["recitation"])


def test_a_field_of_the_wrong_kind_is_told_on_one_line(files: RunFiles) -> None:
    entry = recitation_entry()
    entry["twins"]["semantic"]["overlap"] = {"estimate": "much"}
    write(files, "recitation", entry)
    with pytest.raises(RunCorrupt, match="estimate: Input should be a valid number") as caught:
        read_document(files, DOCUMENTED["recitation"])
    assert "\n" not in str(caught.value.args[0])


def test_what_is_written_is_read(files: RunFiles) -> None:
    written = write_document(files, DOCUMENTED["recitation"], {"openai:m": recitation_entry()})
    assert read_document(files, DOCUMENTED["recitation"]) == written
