"""A user's own benchmark as CSV, TSV or JSON lines, read line by line."""

import json
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.columns import Columns, columns_of
from coreeval.evaluation.benchmarks.lines import digest_of, read_lines, shown
from coreeval.evaluation.benchmarks.places import located
from coreeval.evaluation.benchmarks.rows import Found, Rows, Source, bad_row
from coreeval.evaluation.benchmarks.table import (
    Reader,
    body,
    csv_records,
    header_of,
    tab_records,
)
from coreeval.schema import Task

PEEKED = 50
"""Objects of a JSON lines file whose keys count as its columns: a row may leave some out."""

Opener = Callable[[DatasetConfig, Task, list[Path]], Rows]


def _delimited(records: Reader) -> Opener:
    def rows(config: DatasetConfig, task: Task, paths: list[Path]) -> Rows:
        headers = [header_of(path, records) for path in paths]
        columns = [
            columns_of(config, task, names, where=str(path))
            for path, names in zip(paths, headers, strict=True)
        ]
        return _table_rows(config, list(zip(paths, headers, columns, strict=True)), records)

    return rows


def _table_rows(
    config: DatasetConfig, tables: list[tuple[Path, list[str], Columns]], records: Reader
) -> Rows:
    counted = count(1)
    for path, names, columns in tables:
        file = shown(path, config)
        for record in body(path, records, len(names)):
            number = next(counted)
            if record.defect:
                yield bad_row(file, record.line, record.defect, record.raw)
                continue
            values = dict(zip(names, record.cells, strict=True))
            yield columns.row(values, file=file, line=record.line, number=number, raw=record.raw)


def _jsonl(config: DatasetConfig, task: Task, paths: list[Path]) -> Rows:
    columns = [columns_of(config, task, _keys(path), where=str(path)) for path in paths]
    return _json_rows(config, list(zip(paths, columns, strict=True)))


def _json_rows(config: DatasetConfig, files: list[tuple[Path, Columns]]) -> Rows:
    number = before = 0
    for path, columns in files:
        file, before = shown(path, config), number
        for line in read_lines(path):
            number = before + line.number
            if not line.raw.strip():
                continue
            values = _object(line.raw) if line.valid else "the line is not UTF-8"
            yield _json_row(values, columns, file, line.number, number, line.raw)


def _json_row(
    values: dict[str, object] | str, columns: Columns, file: str, line: int, number: int, raw: str
) -> Found:
    if isinstance(values, str):
        return bad_row(file, line, values, raw)
    return columns.row(values, file=file, line=line, number=number, raw=raw)


def _object(text: str) -> dict[str, object] | str:
    """Return the JSON object in a line, or what is wrong with it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return value if isinstance(value, dict) else "JSON, but no object"


def _keys(path: Path) -> list[str]:
    """Return the keys of a file's first objects, in the order met."""
    objects = list(islice(_objects(path), PEEKED))
    if objects:
        return list(dict.fromkeys(key for found in objects for key in found))
    if not any(line.raw.strip() for line in read_lines(path)):
        raise DatasetError("the file is empty", where=str(path))
    raise DatasetError(
        "no line of the file is a JSON object",
        where=str(path),
        hint="jsonl has one object on each line; one document over many lines is not that",
    )


def _objects(path: Path) -> Iterator[dict[str, object]]:
    found = (_object(line.raw) for line in read_lines(path) if line.valid)
    return (value for value in found if isinstance(value, dict))


def _source(suffix: str, opener: Opener) -> Source:
    def files(config: DatasetConfig, split: str) -> list[Path]:
        return located(config, suffix)[split]

    return Source(
        splits=lambda config: sorted(located(config, suffix)),
        rows=lambda config, task, split: opener(config, task, files(config, split)),
        digest=digest_of(files),
    )


CSV = _source(".csv", _delimited(csv_records))
TSV = _source(".tsv", _delimited(tab_records))
JSONL = _source(".jsonl", _jsonl)
