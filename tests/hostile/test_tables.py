"""Tables that are made to harm whoever opens them."""

import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import DatasetError, ReleaseError
from coreeval.evaluation.benchmarks import files, rows, tables
from coreeval.evaluation.benchmarks.arrow import read_parquet_records
from coreeval.evaluation.benchmarks.files import read_records
from coreeval.evaluation.benchmarks.items import load_items
from coreeval.evaluation.benchmarks.table_guess import guess_items, guess_table
from coreeval.evaluation.overlap.sources import ReadOptions, read_texts
from coreeval.releases.release import read_samples
from coreeval.tools.files import ALLOWED_ROWS
from tests.evaluation.benchmarks.kit import read, reasons

UNREADABLE = {
    "an unknown zone": pa.array([17, None, 18], pa.timestamp("us", "Mars/Phobos")),
    "a date after 9999": pa.array([2**30, None, 2**30], pa.date32()),
    "a long duration": pa.array([2**62, None, 2**62], pa.duration("s")),
}
"""Columns with two values that Python cannot hold."""


def write(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_column_beside_the_task_does_no_harm(tmp_path: Path, kind: str) -> None:
    path = write(
        tmp_path / "x.parquet", text=["a", "b", "c"], label=[0, 1, 2], extra=UNREADABLE[kind]
    )
    found = read("parquet", path)
    assert len(found.samples) == 3 and not found.bad_rows
    texts = read_texts(str(path), ReadOptions(fields=("text",)))
    assert len(texts.entries) == 3 and not texts.bad_rows


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_value_that_python_cannot_hold_is_a_bad_row(tmp_path: Path, kind: str) -> None:
    path = write(
        tmp_path / "x.parquet", cluster=UNREADABLE[kind], text=["a", "b", "c"], label=[0, 1, 2]
    )
    found = read("parquet", path)
    assert [sample.fields["text"] for sample in found.samples] == ["b"]
    assert [line for line, _ in reasons(found.bad_rows)] == [1, 3]
    assert all("a value of the row cannot be read: " in row.reason for row in found.bad_rows)


def test_a_table_that_is_nested_too_deeply_is_told_with_its_file(tmp_path: Path) -> None:
    deep: object = "x"
    kind = pa.string()
    for _ in range(90):
        deep, kind = [deep], pa.list_(kind)
    path = tmp_path / "test.parquet"
    pq.write_table(pa.table({"text": pa.array([deep], kind)}), path)
    with pytest.raises(DatasetError, match="too deeply nested") as caught:
        list(read_parquet_records(path, columns={"text"}))
    assert caught.value.where == str(path)


def test_a_column_of_a_type_that_is_not_read_matters_only_to_its_task(tmp_path: Path) -> None:
    odd = pa.array([["a"]], pa.list_view(pa.string()))
    path = write(tmp_path / "x.parquet", text=["a"], label=[0], extra=odd)
    assert len(read("parquet", path).samples) == 1
    path = write(tmp_path / "y.parquet", text=odd, label=[0])
    with pytest.raises(DatasetError, match="the column 'text' has the type list_view<") as caught:
        read("parquet", path)
    assert caught.value.where == str(path)


READERS: dict[str, Callable[[Path], object]] = {
    "samples": lambda path: read("jsonl", path),
    "items": lambda path: load_items("jsonl", path, "test"),
    "records": lambda path: read_records(path, dict, key=id, twice=lambda *_: "twice"),
}


@pytest.mark.parametrize("kind", READERS)
def test_a_packed_file_does_not_swell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(files, "ALLOWED_BYTES", 100_000)
    path = tmp_path / "test.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "a", "label": 0}\n' + b"\n" * 1_000_000))
    assert 100 * path.stat().st_size < 1_000_000
    with pytest.raises(DatasetError, match="the file unpacks to more than 100 times its size"):
        READERS[kind](path)


@pytest.mark.parametrize("kind", READERS)
def test_bad_rows_without_end_are_not_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(rows, "MOST_BAD", 50)
    path = tmp_path / "test.jsonl"
    good = {"text": "a", "label": 0, "input": "a", "output": "b"}
    path.write_text(f"{json.dumps(good)}\n" + "x\n" * 1_000)
    with pytest.raises(DatasetError, match="51 of the first 52 rows cannot be used") as caught:
        READERS[kind](path)
    assert "in line 2 of test.jsonl, not JSON" in str(caught.value.hint)


def test_a_file_of_mostly_good_rows_may_have_bad_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_BAD", 2)
    path = tmp_path / "test.jsonl"
    path.write_text('{"text": "a", "label": 0}\nx\n' * 9)
    assert len(read("jsonl", path).bad_rows) == 9


def test_columns_are_not_sought_beyond_the_bad_rows_that_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_BAD", 50)
    path = tmp_path / "test.jsonl"
    path.write_text("x\n" * 50 + '{"text": "a", "label": 0}\n')
    with pytest.raises(DatasetError, match="no line of the file is a JSON object"):
        read("jsonl", path)


def test_a_table_whose_rows_have_columns_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "wide.jsonl"
    lines = ({f"k{row}-{place}": "a" for place in range(20)} for row in range(10_000))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    before = time.process_time()
    assert guess_items(path) is None
    with pytest.raises(DatasetError, match="the label column is unclear") as caught:
        guess_table(path)
    assert time.process_time() - before < 30  # with every row read for each column: minutes
    assert "and 199,900 more" in str(caught.value.hint)


@pytest.mark.parametrize(
    "open_file", [read_samples, lambda path: read_parquet_records(path, columns={"id"})]
)
def test_a_table_with_more_rows_than_bytes_is_not_read(
    tmp_path: Path, open_file: Callable[[Path], object]
) -> None:
    path = write(tmp_path / "x.parquet", id=pa.repeat("s1", ALLOWED_ROWS + 1))
    assert path.stat().st_size < ALLOWED_ROWS
    with pytest.raises((ReleaseError, DatasetError), match="it declares 100,001 rows"):
        list(open_file(path))  # type: ignore[call-overload]
