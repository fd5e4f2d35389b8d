"""Benchmarks in Parquet files, read batch by batch; Arrow is imported when a file is opened."""

import importlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import display_path, make_digest
from coreeval.evaluation.benchmarks.item_records import ItemRecord
from coreeval.evaluation.benchmarks.rows import (
    BenchmarkFormat,
    Rows,
    TableColumns,
    find_columns,
    make_bad_row,
)
from coreeval.evaluation.benchmarks.tables import locate_files
from coreeval.schema import Task
from coreeval.tools.files import MOST_ROW_BYTES, measure_rows, open_parquet_bounded, read_batches
from coreeval.tools.short_floats import list_arrow_rows

BATCH = 1024
SUFFIX = ".parquet"
Values = dict[str, object]


class _Batch(Protocol):
    num_rows: int

    def slice(self, offset: int, length: int) -> "_Batch": ...


class _Schema(Protocol):
    names: list[str]


class _ParquetFile(Protocol):
    schema_arrow: _Schema


def _open_parquet(path: Path, columns: Collection[str]) -> _ParquetFile:
    invalid: type[Exception] = importlib.import_module("pyarrow").ArrowInvalid
    try:
        file: _ParquetFile = open_parquet_bounded(path, columns)
    except invalid as error:
        raise DatasetError(f"this is not a Parquet file: {error}", where=str(path)) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise DatasetError(f"cannot read the Parquet file: {error}", where=str(path)) from None
    return file


def _files(config: DatasetConfig, split: str) -> list[Path]:
    return locate_files(config, SUFFIX)[split]


def _open_parquet_rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    tables = []
    for path in _files(config, split):
        file = _open_parquet(path, ())
        tables.append((path, find_columns(config, task, file.schema_arrow.names, where=str(path))))
    return _parquet_rows(config, tables)


def _parquet_rows(config: DatasetConfig, tables: list[tuple[Path, TableColumns]]) -> Rows:
    number = 0
    for path, columns in tables:
        file = display_path(path, config)
        for record in read_parquet_records(path, columns=columns.names):
            number += 1
            if record.defect:
                yield make_bad_row(file, record.line, record.defect, "")
                continue
            values, line = record.values, record.line
            yield columns.row(values, file=file, line=line, number=number, raw=_row_text(values))


def read_parquet_records(path: Path, *, columns: Collection[str]) -> Iterator[ItemRecord]:
    """Yield the rows of a file, numbered from 1, with the requested columns that exist.

    Other columns are not read: a time in nanoseconds, for example, has no value in Python.
    """
    file = _open_parquet(path, columns)
    present = [name for name in file.schema_arrow.names if name in columns]
    arrow_error: type[Exception] = importlib.import_module("pyarrow").ArrowException
    try:
        batches: Iterator[_Batch] = read_batches(file, BATCH, present)
        records = (record for batch in batches for record in _batch_records(batch))
        for line, (values, defect) in enumerate(records, start=1):
            yield ItemRecord(line, values, defect)
    except (arrow_error, OSError) as error:
        raise DatasetError(f"the file is damaged: {error}", where=str(path)) from None


_NO_VALUE = (ValueError, OverflowError, LookupError)
"""The errors of Arrow for a value that Python cannot represent: a text that is not UTF-8, a date
after the year 9999, an unknown time zone."""


def _batch_records(batch: _Batch) -> Iterator[tuple[Values, str]]:
    """Yield the values of each row, or none and the reason why it cannot be decoded."""
    sizes = measure_rows(batch)
    try:
        if sum(sizes) <= MOST_ROW_BYTES:
            yield from ((values, "") for values in list_arrow_rows(batch))
            return
    except _NO_VALUE:
        pass
    for row, size in enumerate(sizes):
        if size > MOST_ROW_BYTES:
            yield {}, f"the row has more than {MOST_ROW_BYTES >> 20} MiB of values"
        else:
            yield _one_record(batch.slice(row, 1))


def _one_record(batch: _Batch) -> tuple[Values, str]:
    try:
        return list_arrow_rows(batch)[0], ""
    except UnicodeDecodeError:
        return {}, "a text of the row is not UTF-8"
    except _NO_VALUE as error:
        return {}, f"a value of the row cannot be read: {error}"


def _row_text(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


PARQUET = BenchmarkFormat(
    splits=lambda config: sorted(locate_files(config, SUFFIX)),
    rows=_open_parquet_rows,
    digest=make_digest(_files),
    kind=None,
)
