"""Tables that are made to harm whoever opens them."""

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.arrow import read_parquet_records


def test_a_table_that_is_nested_too_deeply_is_told_with_its_file(tmp_path: Path) -> None:
    deep: object = "x"
    kind = pa.string()
    for _ in range(90):
        deep, kind = [deep], pa.list_(kind)
    path = tmp_path / "test.parquet"
    pq.write_table(pa.table({"text": pa.array([deep], kind)}), path)
    with pytest.raises(DatasetError, match="too deeply nested") as caught:
        list(read_parquet_records(path))
    assert caught.value.where == str(path)
