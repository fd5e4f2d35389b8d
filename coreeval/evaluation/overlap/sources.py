"""Reads a benchmark for comparison: every format of the loaders, and tables without a task.

A source is written `[FORMAT:]PATH[@SPLIT]`, or is the YAML config of a run. Without a format, the
file's suffix determines it. If a source can be read in several ways, the most informative one is
used: a task's fields and labels, then named fields, then items with input and output.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from coreeval.config import DatasetConfig, load_config
from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.benchmarks.arrow import read_parquet_records
from coreeval.evaluation.benchmarks.item_records import ItemRecord, read_json_lines
from coreeval.evaluation.benchmarks.items import LAYOUTS, load_items
from coreeval.evaluation.benchmarks.load import FORMATS, load_benchmark
from coreeval.evaluation.benchmarks.rows import make_bad_row
from coreeval.evaluation.benchmarks.tables import (
    Reader,
    locate_files,
    read_body,
    read_csv_records,
    read_header,
    read_tsv_records,
)
from coreeval.evaluation.overlap.search import BenchmarkTexts, TextEntry
from coreeval.schema import BadRow
from coreeval.tasks import ALL_TARGETS, BUILT_IN, kind_of, load_task
from coreeval.tasks.kinds import is_encodable
from coreeval.tools.plugins import permit_plugins
from coreeval.tools.workspace import workspace_for

CONFIGS = (".yaml", ".yml")
ANSWERS = ("label", "output", "answer")
"""Columns with an item's answer if no task names one, likeliest first."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The settings for reading sources."""

    task: str | None = None
    """A built-in task or a task file, whose fields are compared."""
    fields: tuple[str, ...] = ()
    """Fields or columns to compare; if empty, all fields of the task."""


@dataclass(frozen=True)
class _Source:
    name: str
    format: str
    path: Path
    split: str | None


def read_texts(source: str, how: ReadOptions) -> BenchmarkTexts:
    """Read the texts of one benchmark.

    Raises:
        UsageError: the source does not specify how to read it.
        CoreEvalError: there is nothing to read, or the data does not fit the format or the task.
    """
    found = _parse_source(source)
    if found.format == "config":
        return _read_config(found, how)
    task = how.task or (found.format if found.format in BUILT_IN else None)
    if task and found.format in FORMATS:
        return _read_samples(found, how, _dataset(found, task), task)
    if how.fields and found.format in _TABLES:
        return _read_table(found, how.fields)
    if found.format in LAYOUTS:
        return _read_items(found, how)
    options = "--task TASK" if found.format not in _TABLES else "--field COLUMN or --task TASK"
    raise UsageError(
        f"the text fields of {found.format} files are not set",
        where=source,
        hint=f"pass {options}, or use a config",
    )


def _parse_source(source: str) -> _Source:
    kinds = {*FORMATS, *LAYOUTS}
    kind, colon, rest = source.partition(":")
    kind, place = (kind, rest) if colon and kind in kinds else ("", source)
    path, at, split = place.rpartition("@")
    if not at or Path(place).exists():
        path, split = place, ""
    ending = Path(path).suffix
    kind = kind or ("config" if ending in CONFIGS else ending.removeprefix("."))
    if kind not in {*kinds, "config"}:
        raise UsageError(
            "the source has no format",
            where=source,
            hint=f"write FORMAT:PATH[@SPLIT], where FORMAT is one of {', '.join(sorted(kinds))}",
        )
    return _Source(source, kind, Path(path), split or None)


# -- samples --------------------------------------------------------------------------------------


def _dataset(source: _Source, task: str) -> DatasetConfig:
    every = source.format == "tweeteval" and task == "stance"
    return DatasetConfig(
        format=source.format,
        path=str(source.path),
        split=source.split or "test",
        target=ALL_TARGETS if every else None,
    )


def _read_config(source: _Source, how: ReadOptions) -> BenchmarkTexts:
    config = load_config(source.path)
    if config.dataset is None or config.task is None:
        raise DatasetError("the config has no dataset and task", where=str(source.path))
    permit_plugins(config, workspace_for(source.path.resolve().parent))
    return _read_samples(source, how, config.dataset, how.task or config.task)


def _read_samples(
    source: _Source, how: ReadOptions, dataset: DatasetConfig, name: str
) -> BenchmarkTexts:
    task = load_task(name, dataset.target, dataset.language)
    _check_fields(how.fields, task.fields, source.name)
    read = load_benchmark(dataset, task, split=source.split)
    kind = kind_of(task)

    def join(fields: Mapping[str, str]) -> str:
        if how.fields:
            return _join_texts(fields[field] for field in how.fields)
        return _join_texts(iter(kind.compared(task, fields).values()))

    entries = [
        TextEntry(each.id, join(each.fields), kind.gold(each.fields, each.label_text), each.cluster)
        for each in read.samples
    ]
    return BenchmarkTexts(source.name, tuple(entries), read.bad_rows)


def _read_items(source: _Source, how: ReadOptions) -> BenchmarkTexts:
    _check_fields(how.fields, ("input",), source.name)
    split = source.split or (source.path.stem if source.path.is_file() else "test")
    read = load_items(source.format, source.path, split)
    entries = (
        TextEntry(each.id, each.input, each.output.strip() or None, each.cluster)
        for each in read.items
    )
    return BenchmarkTexts(source.name, tuple(entries), read.bad_rows)


def _check_fields(asked: Sequence[str], fields: Sequence[str], where: str) -> None:
    for field in asked:
        if field not in fields:
            hint = f"available: {', '.join(fields)}"
            raise UsageError(f"there is no field {field!r}", where=where, hint=hint)


def _join_texts(texts: Iterator[str]) -> str:
    return "\n".join(texts)


# -- tables without a task ------------------------------------------------------------------------


def _read_delimited(path: Path, reader: Reader) -> Iterator[ItemRecord]:
    names = read_header(path, reader)
    for row in read_body(path, reader, len(names)):
        yield ItemRecord(row.line, dict(zip(names, row.cells, strict=False)), row.defect)


def _read_parquet(path: Path, fields: Sequence[str]) -> Iterator[ItemRecord]:
    return read_parquet_records(path, columns={*fields, "id", "cluster", *ANSWERS})


_TABLES: dict[str, Callable[[Path, Sequence[str]], Iterator[ItemRecord]]] = {
    "jsonl": lambda path, _: read_json_lines(path),
    "csv": lambda path, _: _read_delimited(path, read_csv_records),
    "tsv": lambda path, _: _read_delimited(path, read_tsv_records),
    "parquet": _read_parquet,
}


def _read_table(source: _Source, fields: Sequence[str]) -> BenchmarkTexts:
    dataset = DatasetConfig(
        format=source.format,
        path=str(source.path),
        split=source.split or "test",
    )
    files = locate_files(dataset, f".{source.format}")
    if dataset.split not in files:
        hint = f"available splits: {', '.join(files)}"
        raise DatasetError(f"there is no split {dataset.split!r}", where=source.name, hint=hint)
    rows = (
        _TableRow(path.name, f"{path.name}:{row.line}", row)
        for path in files[dataset.split]
        for row in _TABLES[source.format](path, fields)
    )
    return _collect_rows(source.name, rows, fields)


def collect_texts(name: str, rows: Iterable[ItemRecord], fields: Sequence[str]) -> BenchmarkTexts:
    """Return the texts of a table in memory; a row without an id has its number as id.

    Args:
        name: The name of the table in reports.
        rows: The rows.
        fields: The columns to compare.

    Raises:
        DatasetError: no row has a text.
    """
    return _collect_rows(name, (_TableRow(name, str(row.line), row) for row in rows), fields)


class _TableRow(NamedTuple):
    file: str
    place: str
    """The id of a row without one."""
    row: ItemRecord


def _collect_rows(name: str, rows: Iterable[_TableRow], fields: Sequence[str]) -> BenchmarkTexts:
    seen: set[str] = set()
    found = [_entry(row, fields, seen) for row in rows]
    entries = tuple(row for row in found if isinstance(row, TextEntry))
    bad = tuple(row for row in found if isinstance(row, BadRow))
    if not entries:
        first = f"; the first: {bad[0].reason}" if bad else ""
        raise DatasetError(f"none of the {len(bad)} rows contains a text{first}", where=name)
    return BenchmarkTexts(name, entries, bad)


def _entry(found: _TableRow, fields: Sequence[str], seen: set[str]) -> TextEntry | BadRow:
    row = found.row
    texts, own = [row.values.get(field) for field in fields], row.values.get("id")
    number = found.place if own is None else str(own)
    twice = f"the id {number!r} occurs twice" if number in seen else ""
    reason = row.defect or twice or next(filter(None, map(_defect, fields, texts)), "")
    if reason:
        return make_bad_row(found.file, row.line, reason, str(row.values or ""))
    seen.add(number)
    cluster = row.values.get("cluster")
    is_missing = cluster is None or cluster != cluster  # which only NaN is
    named = "" if is_missing else str(cluster)
    return TextEntry(number, _join_texts(map(str, texts)), _find_answer(row.values), named)


def _defect(field: str, text: object) -> str:
    if not isinstance(text, str):
        return f"{field} is missing" if text is None else f"{field} is not a text"
    if not text.strip():
        return f"{field} is empty"
    return (
        ""
        if is_encodable(text)
        else (f"{field} contains an incomplete character (a lone surrogate)")
    )


def _find_answer(values: Mapping[str, object]) -> str | None:
    given = (values[name] for name in ANSWERS if values.get(name) is not None)
    return next((str(value) for value in given), None)
