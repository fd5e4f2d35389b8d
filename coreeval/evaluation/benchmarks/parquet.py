"""Parquet files, read batch by batch; pyarrow is imported only when one is opened."""

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.columns import Columns, columns_of
from coreeval.evaluation.benchmarks.item_files import Record
from coreeval.evaluation.benchmarks.lines import digest_of, shown
from coreeval.evaluation.benchmarks.places import located
from coreeval.evaluation.benchmarks.rows import Rows, Source, bad_row
from coreeval.schema import Task

BATCH = 1024
SUFFIX = ".parquet"
Values = dict[str, object]


class _Batch(Protocol):
    num_rows: int

    def to_pylist(self) -> list[Values]: ...

    def slice(self, offset: int, length: int) -> "_Batch": ...


class _Schema(Protocol):
    names: list[str]


class _File(Protocol):
    schema_arrow: _Schema

    def iter_batches(self, *, batch_size: int) -> Iterator[_Batch]: ...


def _opened(path: Path) -> _File:
    module = importlib.import_module("pyarrow.parquet")
    invalid: type[Exception] = importlib.import_module("pyarrow").ArrowInvalid
    try:
        file: _File = module.ParquetFile(path)
    except invalid as error:
        raise DatasetError(f"this is no Parquet file: {error}", where=str(path)) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise DatasetError(f"the Parquet file cannot be read: {error}", where=str(path)) from None
    return file


def _files(config: DatasetConfig, split: str) -> list[Path]:
    return located(config, SUFFIX)[split]


def _open_rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    tables = []
    for path in _files(config, split):
        file = _opened(path)
        tables.append((path, columns_of(config, task, file.schema_arrow.names, where=str(path))))
    return _rows(config, tables)


def _rows(config: DatasetConfig, tables: list[tuple[Path, Columns]]) -> Rows:
    number = 0
    for path, columns in tables:
        file = shown(path, config)
        for record in parquet_records(path):
            number += 1
            if record.defect:
                yield bad_row(file, record.line, record.defect, "")
                continue
            values, line = record.values, record.line
            yield columns.row(values, file=file, line=line, number=number, raw=_shown(values))


def parquet_records(path: Path) -> Iterator[Record]:
    """Yield the rows of a file as they are, numbered from 1."""
    for line, values in enumerate(_values(path), start=1):
        defect = "a text of the row is not UTF-8" if values is None else ""
        yield Record(line, values or {}, defect)


def _values(path: Path) -> Iterator[Values | None]:
    """Yield the rows of a file; None for one that cannot be decoded."""
    arrow_error: type[Exception] = importlib.import_module("pyarrow").ArrowException
    try:
        for batch in _opened(path).iter_batches(batch_size=BATCH):
            try:
                yield from batch.to_pylist()
            except UnicodeDecodeError:
                yield from (_one(batch.slice(row, 1)) for row in range(batch.num_rows))
    except (arrow_error, OSError) as error:
        raise DatasetError(f"the file is damaged: {error}", where=str(path)) from None


def _one(batch: _Batch) -> Values | None:
    try:
        return batch.to_pylist()[0]
    except UnicodeDecodeError:
        return None


def _shown(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


SOURCE = Source(
    splits=lambda config: sorted(located(config, SUFFIX)),
    rows=_open_rows,
    digest=digest_of(_files),
)
