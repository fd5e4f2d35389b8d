"""Tables that are made to harm whoever opens them."""

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.arrow import read_parquet_records
from coreeval.evaluation.overlap.sources import ReadOptions, read_texts
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
