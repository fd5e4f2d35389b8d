"""Benchmarks that Arrow holds: Parquet files, and datasets of the Hugging Face hub.

Parquet is read batch by batch. The hub's datasets are streamed by the `datasets` package (extra
`hf`). Both packages are imported only when something is opened.
"""

import csv
import hashlib
import importlib
import lzma
import os
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import Protocol

import yaml

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
from coreeval.tools.files import MOST_ROW_BYTES, measure_rows, open_parquet_bounded

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

    def iter_batches(self, *, batch_size: int, columns: list[str] | None) -> Iterator[_Batch]: ...


def _open_parquet(path: Path) -> _ParquetFile:
    invalid: type[Exception] = importlib.import_module("pyarrow").ArrowInvalid
    try:
        file: _ParquetFile = open_parquet_bounded(path)
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
        for record in read_parquet_records(path, columns=columns.names):
            number += 1
            if record.defect:
                yield make_bad_row(file, record.line, record.defect, "")
                continue
            values, line = record.values, record.line
            yield columns.row(values, file=file, line=line, number=number, raw=_row_text(values))


def read_parquet_records(path: Path, *, columns: Collection[str]) -> Iterator[ItemRecord]:
    """Yield the rows of a file, numbered from 1, with those of the columns that it has.

    Others are not read: a time in nanoseconds, for example, has no value in Python.
    """
    file = _open_parquet(path)
    present = [name for name in file.schema_arrow.names if name in columns]
    arrow_error: type[Exception] = importlib.import_module("pyarrow").ArrowException
    try:
        batches = file.iter_batches(batch_size=BATCH, columns=present)
        records = (record for batch in batches for record in _batch_records(batch))
        for line, (values, defect) in enumerate(records, start=1):
            yield ItemRecord(line, values, defect)
    except (arrow_error, OSError) as error:
        raise DatasetError(f"the file is damaged: {error}", where=str(path)) from None


_NO_VALUE = (ValueError, OverflowError, LookupError)
"""The errors of Arrow for a value that Python cannot hold: a text that is not UTF-8, a date after
the year 9999, an unknown time zone."""


def _batch_records(batch: _Batch) -> Iterator[tuple[Values, str]]:
    """Yield the values of each row, or none and the reason that it cannot be decoded."""
    sizes = measure_rows(batch)
    try:
        if sum(sizes) <= MOST_ROW_BYTES:
            yield from ((values, "") for values in batch.to_pylist())
            return
    except _NO_VALUE:
        pass
    for row, size in enumerate(sizes):
        if size > MOST_ROW_BYTES:
            yield {}, f"the row has more than {MOST_ROW_BYTES >> 20} MiB of text"
        else:
            yield _one_record(batch.slice(row, 1))


def _one_record(batch: _Batch) -> tuple[Values, str]:
    try:
        return batch.to_pylist()[0], ""
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
)


HubRecords = Iterable[Mapping[str, object]]
PEEKED = 50
"""The number of rows whose keys count as columns if a dataset does not declare them."""


_REFUSALS = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError),
    *(EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, csv.Error),
    *(ImportError, yaml.YAMLError),
)
"""The errors that the packages raise if a network, a response or a dataset is unusable; for
incomplete responses and damaged files, they raise Python's own errors."""


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
    """Open a dataset of the hub.

    Images, sound and the like stay as they are: decoding them would open the paths and addresses
    that the rows name.
    """
    package = _import_datasets()
    try:
        records: HubRecords = package.load_dataset(
            config.path, config.subset, split=split, streaming=True
        ).decode(False)
    except _REFUSALS as error:
        raise _hub_error(config, error) from None
    return records


def _read_hub_records(config: DatasetConfig, records: HubRecords) -> Iterator[Mapping[str, object]]:
    """Yield the records; raise a DatasetError where the data or the network breaks off."""
    number = 0
    try:
        for record in records:
            number += 1
            yield record
    except _REFUSALS as error:
        raise DatasetError(
            f"the hub's dataset cannot be read after row {number:,}: {error}",
            where=_hub_place(config),
            hint="mend or leave out the file behind this row; if it is the network, try again",
        ) from None


def _open_hub_rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    records = _hub_records(config, split)
    declared: list[str] | None = getattr(records, "column_names", None)
    rows = _read_hub_records(config, records)
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
    for record in _read_hub_records(config, _hub_records(config, split)):
        digest.update(repr(sorted(record.items())).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


HUB = BenchmarkFormat(splits=_hub_splits, rows=_open_hub_rows, digest=_hub_digest)
