"""Benchmarks that Arrow holds: Parquet files, and datasets of the Hugging Face hub.

Parquet is read batch by batch. The hub's datasets are streamed by the `datasets` package (extra
`hf`). Both packages are imported only when something is opened.
"""

import hashlib
import importlib
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
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
from coreeval.tools.endpoints import import_for_hub
from coreeval.tools.extras import require_extra

BATCH = 1024
SUFFIX = ".parquet"
Values = dict[str, object]


class _Batch(Protocol):
    num_rows: int

    def to_pylist(self) -> list[Values]: ...

    def slice(self, offset: int, length: int) -> "_Batch": ...


class _Schema(Protocol):
    names: list[str]


class _ParquetFile(Protocol):
    schema_arrow: _Schema

    def iter_batches(self, *, batch_size: int) -> Iterator[_Batch]: ...


def _open_parquet(path: Path) -> _ParquetFile:
    module = importlib.import_module("pyarrow.parquet")
    invalid: type[Exception] = importlib.import_module("pyarrow").ArrowInvalid
    try:
        file: _ParquetFile = module.ParquetFile(path)
    except invalid as error:
        raise DatasetError(f"this is no Parquet file: {error}", where=str(path)) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise DatasetError(f"the Parquet file cannot be read: {error}", where=str(path)) from None
    return file


def _files(config: DatasetConfig, split: str) -> list[Path]:
    return locate_files(config, SUFFIX)[split]


def _open_parquet_rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    tables = []
    for path in _files(config, split):
        file = _open_parquet(path)
        tables.append((path, find_columns(config, task, file.schema_arrow.names, where=str(path))))
    return _parquet_rows(config, tables)


def _parquet_rows(config: DatasetConfig, tables: list[tuple[Path, TableColumns]]) -> Rows:
    number = 0
    for path, columns in tables:
        file = display_path(path, config)
        for record in read_parquet_records(path):
            number += 1
            if record.defect:
                yield make_bad_row(file, record.line, record.defect, "")
                continue
            values, line = record.values, record.line
            yield columns.row(values, file=file, line=line, number=number, raw=_row_text(values))


def read_parquet_records(path: Path) -> Iterator[ItemRecord]:
    """Yield the rows of a file unchanged, numbered from 1."""
    for line, values in enumerate(_values(path), start=1):
        defect = "a text of the row is not UTF-8" if values is None else ""
        yield ItemRecord(line, values or {}, defect)


def _values(path: Path) -> Iterator[Values | None]:
    """Yield the rows of a file, or None for a row that cannot be decoded."""
    arrow_error: type[Exception] = importlib.import_module("pyarrow").ArrowException
    try:
        for batch in _open_parquet(path).iter_batches(batch_size=BATCH):
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


def _row_text(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


PARQUET = BenchmarkFormat(
    splits=lambda config: sorted(locate_files(config, SUFFIX)),
    rows=_open_parquet_rows,
    digest=make_digest(_files),
)


HubRecords = Iterable[Mapping[str, object]]
PEEKED = 50
"""The number of rows whose keys count as columns if a dataset does not declare them."""


_REFUSALS = (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError)
"""The errors that the packages raise if a network, a response or a dataset is unusable; for
incomplete responses, they raise Python's own errors."""


def _import_datasets() -> ModuleType:
    with import_for_hub(os.environ), require_extra("hf", "the format hf", error=DatasetError):
        return importlib.import_module("datasets")


def _hub_place(config: DatasetConfig) -> str:
    return f"{config.path} ({config.subset})" if config.subset else config.path


def _hub_error(config: DatasetConfig, error: Exception) -> DatasetError:
    return DatasetError(
        f"the hub's dataset cannot be opened: {error}",
        where=_hub_place(config),
        hint="check dataset.path, dataset.subset and the network",
    )


def _hub_splits(config: DatasetConfig) -> list[str]:
    package = _import_datasets()
    try:
        names: list[str] = package.get_dataset_split_names(config.path, config.subset)
    except _REFUSALS as error:
        raise _hub_error(config, error) from None
    return sorted(names)


def _hub_records(config: DatasetConfig, split: str) -> HubRecords:
    package = _import_datasets()
    try:
        records: HubRecords = package.load_dataset(
            config.path, config.subset, split=split, streaming=True
        )
    except _REFUSALS as error:
        raise _hub_error(config, error) from None
    return records


def _open_hub_rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    records = _hub_records(config, split)
    declared: list[str] | None = getattr(records, "column_names", None)
    rows = iter(records)
    first = [] if declared else list(islice(rows, PEEKED))
    names = declared or list(dict.fromkeys(key for record in first for key in record))
    columns = find_columns(config, task, names, where=_hub_place(config))
    return _hub_rows(config, chain(first, rows), columns)


def _hub_rows(config: DatasetConfig, records: HubRecords, columns: TableColumns) -> Rows:
    for number, record in enumerate(records, start=1):
        raw = ", ".join(f"{name}={value}" for name, value in record.items())
        yield columns.row(record, file=config.path, line=number, number=number, raw=raw)


def _hub_digest(config: DatasetConfig, split: str) -> str:
    """Hash the rows themselves, because the hub's files are not available locally."""
    digest = hashlib.sha256()
    for record in _hub_records(config, split):
        digest.update(repr(sorted(record.items())).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


HUB = BenchmarkFormat(splits=_hub_splits, rows=_open_hub_rows, digest=_hub_digest)
