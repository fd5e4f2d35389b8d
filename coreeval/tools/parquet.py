"""Parquet files written row by row, in bounded memory."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from coreeval.tools.files import replacing

ROW_GROUP = 5000
Columns = Mapping[str, Literal["string", "int64", "strings"]]
"""Kind of each column; `strings` is a list of them."""
Row = dict[str, Any]


def write_parquet(
    path: Path, columns: Columns, rows: Iterable[Row], *, metadata: Mapping[str, str] = {}
) -> int:
    """Stream rows into one file that appears only when it is whole; return their number."""
    import pyarrow as pa  # type: ignore[import-untyped]  # slow to import
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    types = {"string": pa.string(), "int64": pa.int64(), "strings": pa.list_(pa.string())}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    schema, count = schema.with_metadata(dict(metadata)), 0
    with replacing(path) as draft, pq.ParquetWriter(draft, schema) as writer:
        for chunk in _row_groups(rows):
            writer.write_table(pa.Table.from_pylist(chunk, schema=schema))
            count += len(chunk)
    return count


def read_parquet(path: Path) -> Iterator[Row]:
    """Stream the rows of a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no Parquet file, or damaged.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROW_GROUP):
            yield from batch.to_pylist()


def read_some(
    path: Path, *, columns: Sequence[str] | None = None, ids: Sequence[str] | None = None
) -> list[Row]:
    """Return some columns, all if None, of the rows with these ids, all if None, in their order.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no Parquet file, damaged, or has other columns.
    """
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]
    import pyarrow.parquet as pq

    chosen = None if ids is None else pc.field("id").isin(pa.array(ids, pa.string()))
    named = None if columns is None else list(columns)
    table = pq.read_table(path, columns=named, filters=chosen, partitioning=None)
    rows: list[Row] = table.to_pylist()
    return rows


def _row_groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while chunk := list(itertools.islice(iterator, ROW_GROUP)):
        yield chunk
