"""The elements of a list in one JSON document, read piece by piece. All files are made by hand."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import json_elements
from coreeval.evaluation.benchmarks.json_elements import iter_json_elements
from tests.evaluation.benchmarks.kit import put

VALUES = [1.5, -2e-3, 123456, {"a": ["ä\u2028", {"b": None}]}, 'a "quoted"\ttext', True]


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("key", [None, "data"])
def test_wherever_a_piece_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, key: str | None
) -> None:
    monkeypatch.setattr(json_elements, "CHUNK", piece)
    document = VALUES if key is None else {"version": 1.25, "more": {"data": [0]}, "data": VALUES}
    for indent in (None, 2):
        text = json.dumps(document, ensure_ascii=False, indent=indent)
        path = put(tmp_path / "one.json", f"\ufeff{text}\n")
        assert [found.value for found in iter_json_elements(path, key)] == VALUES


def test_an_element_has_the_line_on_which_it_begins(tmp_path: Path) -> None:
    path = put(tmp_path / "one.json", '{\n"data": [{"a":\n1},\n\n{"b": 2}, 3\n]}')
    assert [found.line for found in iter_json_elements(path, "data")] == [2, 5, 5]


def test_a_packed_file_is_unpacked(tmp_path: Path) -> None:
    path = put(tmp_path / "one.json.gz", gzip.compress(b"[1, 2]"))
    assert [found.value for found in iter_json_elements(path)] == [1, 2]


def collect(path: Path, found: list[object]) -> None:
    for element in iter_json_elements(path):
        found.append(element.value)


@pytest.mark.parametrize(
    ("text", "good", "reason"),
    [
        (b"[1, 2", 2, "it is truncated"),
        (b'[1, {"a": "b', 1, "Unterminated string"),
        (b"[1, 2] 3", 2, "the file continues after the list"),
        (b"[1 2]", 1, "expected ',' but found '2'"),
        (b"[1,]", 1, "Expecting value"),
        (b'[1, "\xff"]', 0, "it is not UTF-8"),
        (b"[" * 100_000, 0, "nested too deep"),
        (b"{}", 0, "contains no JSON list"),
        (b"", 0, "contains no JSON list"),
    ],
)
def test_a_file_that_is_no_list_says_why(
    tmp_path: Path, text: bytes, good: int, reason: str
) -> None:
    path, found = put(tmp_path / "one.json", text), list[object]()
    with pytest.raises(DatasetError, match=reason):
        collect(path, found)
    assert len(found) == good


@pytest.mark.parametrize("text", ["[1]", '{"other": [1]}', '{"data": {"a": [1]}}', "3", "{"])
def test_a_document_without_the_key_says_so(tmp_path: Path, text: str) -> None:
    path = put(tmp_path / "one.json", text)
    with pytest.raises(DatasetError, match="no list 'data'"):
        list(iter_json_elements(path, "data"))


def test_a_value_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_elements, "MOST_LINE_BYTES", 1 << 20)
    path = put(tmp_path / "one.json", '["' + "x" * (6 << 20) + '"]')
    with pytest.raises(DatasetError, match="longer than 1 MiB"):
        list(iter_json_elements(path))


def test_one_element_is_in_memory_at_a_time(tmp_path: Path) -> None:
    text = json.dumps([{"text": "word " * 10_000}] * 400)
    path = put(tmp_path / "one.json", text)
    assert len(text) > 16 << 20
    tracemalloc.start()
    try:
        assert sum(1 for _ in iter_json_elements(path)) == 400
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
