"""Datasets of the Hugging Face hub, streamed by the `datasets` package (extra `hf`)."""

import hashlib
import importlib
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from types import ModuleType

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.columns import Columns, columns_of
from coreeval.evaluation.benchmarks.rows import Rows, Source
from coreeval.schema import Task

Records = Iterable[Mapping[str, object]]
PEEKED = 50
"""Rows whose keys count as columns where a dataset does not declare them."""


_REFUSALS = (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError)
"""What the packages raise for a network, an answer or a dataset that they cannot use: for answers
that lack what they expect they raise Python's own errors."""


def _package() -> ModuleType:
    try:
        return importlib.import_module("datasets")
    except ImportError:
        raise DatasetError(
            "the format hf needs the package datasets, which is not installed",
            hint="pip install 'coreeval[hf]'",
        ) from None


def _where(config: DatasetConfig) -> str:
    return f"{config.path} ({config.subset})" if config.subset else config.path


def _refused(config: DatasetConfig, error: Exception) -> DatasetError:
    return DatasetError(
        f"the hub's dataset cannot be opened: {error}",
        where=_where(config),
        hint="check dataset.path, dataset.subset and the network",
    )


def _splits(config: DatasetConfig) -> list[str]:
    package = _package()
    try:
        names: list[str] = package.get_dataset_split_names(config.path, config.subset)
    except _REFUSALS as error:
        raise _refused(config, error) from None
    return sorted(names)


def _records(config: DatasetConfig, split: str) -> Records:
    package = _package()
    try:
        records: Records = package.load_dataset(
            config.path, config.subset, split=split, streaming=True
        )
    except _REFUSALS as error:
        raise _refused(config, error) from None
    return records


def _open_rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    records = _records(config, split)
    declared: list[str] | None = getattr(records, "column_names", None)
    rows = iter(records)
    first = [] if declared else list(islice(rows, PEEKED))
    names = declared or list(dict.fromkeys(key for record in first for key in record))
    columns = columns_of(config, task, names, where=_where(config))
    return _rows(config, chain(first, rows), columns)


def _rows(config: DatasetConfig, records: Records, columns: Columns) -> Rows:
    for number, record in enumerate(records, start=1):
        raw = ", ".join(f"{name}={value}" for name, value in record.items())
        yield columns.row(record, file=config.path, line=number, number=number, raw=raw)


def _digest(config: DatasetConfig, split: str) -> str:
    """Hash the rows themselves: the hub's files are not here to be hashed."""
    digest = hashlib.sha256()
    for record in _records(config, split):
        digest.update(repr(sorted(record.items())).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


SOURCE = Source(splits=_splits, rows=_open_rows, digest=_digest)
