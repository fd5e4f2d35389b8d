"""Datasets of the Hugging Face hub, or folders in its layout (extra `hf`).

A separate process streams them (`hub_process`).
"""

import hashlib
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, islice

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import hub_process
from coreeval.evaluation.benchmarks.hub_process import (
    HubAnswer,
    HubColumns,
    HubQuestion,
    HubRecord,
    HubRefusal,
)
from coreeval.evaluation.benchmarks.rows import BenchmarkFormat, Rows, TableColumns, find_columns
from coreeval.schema import Task

PEEKED = 50
"""The number of rows whose keys count as columns if a dataset does not declare its columns."""


def _hub_place(config: DatasetConfig) -> str:
    return f"{config.path} ({config.subset})" if config.subset else config.path


def _hub_error(config: DatasetConfig, refusal: HubRefusal) -> DatasetError:
    return DatasetError(
        f"the dataset on the hub cannot be opened: {refusal.message}",
        where=_hub_place(config),
        hint="check dataset.path, dataset.subset and the network",
    )


def _list_splits(config: DatasetConfig) -> list[str]:
    with closing(hub_process.ask_apart(HubQuestion(config.path, config.subset))) as parts:
        for names in parts:
            if isinstance(names, HubRefusal):
                raise _hub_error(config, names)
            return sorted(names)
    raise AssertionError("an answer has at least one part")


def _open_records(
    config: DatasetConfig, split: str
) -> tuple[list[str] | None, Iterator[HubRecord]]:
    """Return the declared columns and the rows.

    Raises:
        DatasetError: the dataset cannot be opened, or the data ends early while rows are read.
    """
    parts = hub_process.ask_apart(HubQuestion(config.path, config.subset, split))
    first = next(parts)
    if isinstance(first, HubRefusal):
        parts.close()
        raise _hub_error(config, first)
    assert isinstance(first, HubColumns)
    return first.names, _iter_records(config, parts)


def _iter_records(config: DatasetConfig, parts: HubAnswer) -> Iterator[HubRecord]:
    for number, part in enumerate(parts):
        if isinstance(part, HubRefusal):
            raise DatasetError(
                f"the dataset on the hub cannot be read after row {number:,}: {part.message}",
                where=_hub_place(config),
                hint="fix or remove the file with this row; if the network failed, try again",
            )
        yield part


def _open_rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    declared, rows = _open_records(config, split)
    first = [] if declared else list(islice(rows, PEEKED))
    names = declared or list(dict.fromkeys(key for record in first for key in record))
    columns = find_columns(config, task, names, where=_hub_place(config))
    return _iter_rows(config, chain(first, rows), columns)


def _iter_rows(config: DatasetConfig, records: Iterator[HubRecord], columns: TableColumns) -> Rows:
    for number, record in enumerate(records, start=1):
        raw = ", ".join(f"{name}={value}" for name, value in record.items())
        yield columns.row(record, file=config.path, line=number, number=number, raw=raw)


def _digest(config: DatasetConfig, split: str) -> str:
    """Hash the rows, because the hub's files are not available locally."""
    digest = hashlib.sha256()
    for record in _open_records(config, split)[1]:
        digest.update(repr(sorted(record.items())).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


HUB = BenchmarkFormat(splits=_list_splits, rows=_open_rows, digest=_digest, kind=None)
