"""Files of pairs: every line is either a pair or a bad line with its reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.pcr import Pair, Pairs, read_pairs
from tests.evaluation.pcr.kit import RECORD, pair


def read(path: Path, *lines: str | bytes | dict[str, Any]) -> Pairs:
    """Return what is read from a file of these lines."""
    raw = [
        line if isinstance(line, bytes) else line.encode() if isinstance(line, str)
        else json.dumps(line).encode()
        for line in lines
    ]  # fmt: skip
    path.write_bytes(b"\n".join(raw) + b"\n")
    return read_pairs(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the pairs of a test are."""
    return tmp_path / "pairs.jsonl"


def test_a_whole_record(path: Path) -> None:
    options = {"A": "one", "B": "two"}
    full = RECORD | {
        "original_choice": "A",
        "modified_choice": "",
        "original_options": options,
        "modified_options": ["two", "one"],
        "original_status": "answered",
        "modified_status": "truncated",
        "cluster": "report 7",
        "model": "a model",
        "comment": "not ours",
    }
    assert read(path, full).good == (
        Pair(
            split="train",
            id="1",
            reference="yes",
            original_output="yes",
            modified_output="no",
            original_choice="A",
            modified_choice="",
            original_options=options,
            modified_options={"A": "two", "B": "one"},
            original_status="answered",
            modified_status="truncated",
            cluster="report 7",
            model="a model",
        ),
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({**RECORD, "id": None}, "id is missing"),
        ({**RECORD, "id": " "}, "id is empty"),
        ({**RECORD, "original_status": "failed"}, "original_status is none of answered, refused"),
        ({**RECORD, "cluster": 7}, "cluster is no text but int"),
        ({**RECORD, "id": True}, "id is no text but bool"),
        ({**RECORD, "id": 1.5}, "id is no text but float"),
        ({**RECORD, "split": ""}, "split is empty"),
        ({**RECORD, "reference": 3}, "reference is no text but int"),
        ({**RECORD, "reference": "\ud800"}, "reference holds half a character"),
        ({**RECORD, "original_output": ["a"]}, "original_output is no text but list"),
        ({**RECORD, "modified_output": None}, "one side: there is no modified_output"),
        ({k: v for k, v in RECORD.items() if k != "original_output"}, "no original_output"),
        ({"split": "train", "id": "1", "reference": ""}, "original_output is missing"),
        ({**RECORD, "original_choice": 1}, "original_choice is no text but int"),
        ({**RECORD, "original_options": "A B"}, "neither an object of texts by letter nor a list"),
        ({**RECORD, "modified_options": {"A": 1}}, "an option of modified_options is no text"),
        ({**RECORD, "modified_options": ["x"] * 27}, "more options than there are letters"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('["a", "b"]', "JSON, but no object"),
        (b'{"id": "\xff"}', "the line is not UTF-8"),
    ],
)
def test_a_line_that_is_no_pair_is_kept_with_its_reason(
    path: Path, line: str | bytes | dict[str, Any], reason: str
) -> None:
    found = read(path, {**RECORD, "id": "a"}, line, {**RECORD, "id": "b"})
    assert [each.id for each in found.good] == ["a", "b"]
    (bad,) = found.bad
    assert (bad.file, bad.line) == ("pairs.jsonl", 2)
    assert reason in bad.reason and len(bad.text) <= 200


def test_an_id_counts_once_in_a_split_and_again_in_another(path: Path) -> None:
    lines = (
        RECORD,
        {**RECORD, "split": "test"},
        {**RECORD, "reference": "no"},
        {**RECORD, "id": 1},
    )
    found = read(path, *lines)
    assert [(each.split, each.reference) for each in found.good] == [
        ("train", "yes"),
        ("test", "yes"),
    ]
    assert [bad.reason for bad in found.bad] == [
        "the id '1' is there twice in 'train', first in line 1"
    ] * 2


def test_blank_lines_and_line_separators_inside_a_text(path: Path) -> None:
    found = read(path, "", {**RECORD, "reference": "a\u2028b"}, "  ")
    assert [each.reference for each in found.good] == ["a\u2028b"] and not found.bad


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be read"):
        read_pairs(path)


def test_the_right_letter_moves_with_its_text() -> None:
    first, second = {"A": "one", "B": "two"}, {"A": "two", "B": "one"}
    assert pair(reference="A", options=(first, second)).modified_reference == "B"
    assert pair(reference="two", options=(first, second)).modified_reference == "two"
    assert pair(reference="A").modified_reference == "A"
    assert pair(reference="A", options=(first, {"A": "three"})).modified_reference == ""
