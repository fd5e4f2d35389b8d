"""A user's own benchmark as CSV, TSV or JSON Lines, read line by line, with a file per split.

Comma-separated records are quoted; tab-separated ones are quoted if their file certainly is. A JSON
list of objects may replace JSON Lines.
"""

import csv
import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import (
    BadRecord,
    Object,
    TextLine,
    check_object,
    display_path,
    find_repeated_key,
    make_digest,
    open_records,
    parse_object,
    read_lines,
    refuse_special_files,
)
from coreeval.evaluation.benchmarks.json_elements import iter_json_elements
from coreeval.evaluation.benchmarks.rows import (
    MOST_BAD,
    BenchmarkFormat,
    Rows,
    TableColumns,
    find_columns,
    make_bad_row,
)
from coreeval.schema import Task
from coreeval.tools.formatting import format_quantity

LONGEST = 100
"""The most lines of a quoted record; if it is longer, its quotation mark counts as unclosed."""


class TableRecord(NamedTuple):
    """The cells of a record, or the reason why it has none."""

    line: int
    raw: str
    cells: list[str]
    defect: str = ""


Reader = Callable[[Path], Iterator[TableRecord]]


def read_tab_records(path: Path) -> Iterator[TableRecord]:
    """Yield the records of a tab-separated file, skipping blank lines; quotation marks are text."""
    for line in read_lines(path):
        if line.raw.strip():
            yield TableRecord(line.number, line.raw, line.raw.split("\t"), _encoding(line))


def read_tsv_records(path: Path) -> Iterator[TableRecord]:
    """Yield the records of a tab-separated file, quoted as in RFC 4180 if the file certainly is."""
    yield from _read_quoted(path, "\t") if _is_quoted(path) else read_tab_records(path)


_QUOTED = r'"(?:[^"]++|"")*+"'
_CELL = rf'(?:{_QUOTED}|[^"\t]*+)'
_WELL_QUOTED = re.compile(rf"{_CELL}(?:\t{_CELL})*+")
"""A record in which each quotation mark surrounds a cell or is doubled inside one."""
_ALL_QUOTED = re.compile(rf"{_QUOTED}(?:\t{_QUOTED})*+")


def _is_quoted(path: Path) -> bool:
    """Return whether a tab-separated file is certainly quoted, as pandas and Excel write it.

    Each of its quotation marks must surround a cell or be doubled inside one, and one of these must
    be true: the whole header is quoted, a quoted cell contains a quotation mark, or a record has as
    many cells as the header only because tabs and line ends are quoted.
    """
    source, width, certain = read_lines(path), 0, False
    for line in source:
        header = not width and bool(line.raw.strip())
        width = width or (line.raw.count("\t") + 1 if header else 0)
        if '"' not in line.raw:
            continue
        record, _ = _quoted_record(line, lambda: next(source, None), "\t")
        if not record.cells or not _WELL_QUOTED.fullmatch(record.raw):
            return False
        if header:
            width, certain = len(record.cells), bool(_ALL_QUOTED.fullmatch(record.raw))
            continue
        lines = record.raw.split("\n")
        fits = all(each.count("\t") + 1 == width for each in (lines[0], lines[-1]))
        certain |= any('"' in cell for cell in record.cells)
        certain |= len(record.cells) == width and not fits
    return certain


def read_csv_records(path: Path) -> Iterator[TableRecord]:
    """Yield the records of a comma-separated file, quoted as in RFC 4180.

    If a record cannot be parsed, only its first line is lost: reading resumes at the next line.
    """
    return _read_quoted(path, ",")


def _read_quoted(path: Path, delimiter: str) -> Iterator[TableRecord]:
    source, again = read_lines(path), deque[TextLine]()

    def following() -> TextLine | None:
        return again.popleft() if again else next(source, None)

    while line := following():
        if not line.raw.strip():
            continue
        record, unused = _quoted_record(line, following, delimiter)
        again.extendleft(reversed(unused))
        yield record


def _quoted_record(
    first: TextLine, following: Callable[[], TextLine | None], delimiter: str
) -> tuple[TableRecord, list[TextLine]]:
    """Return the record that starts at a line, and the lines read that do not belong to it."""
    taken = [first]
    while True:
        try:
            lines = [f"{line.raw}\n" for line in taken]
            cells = next(csv.reader(lines, delimiter=delimiter, strict=True))
        except csv.Error as error:
            open_quote = "unexpected end of data" in str(error)
            defect = "a quotation mark is never closed" if open_quote else f"not CSV: {error}"
            more = following() if open_quote and len(taken) < LONGEST else None
        else:
            raw = "\n".join(line.raw for line in taken)
            return TableRecord(first.number, raw, cells, max(map(_encoding, taken))), []
        if more is None:
            return TableRecord(first.number, first.raw, [], defect), taken[1:]
        taken.append(more)


def _encoding(line: TextLine) -> str:
    return "" if line.valid else "the line is not UTF-8"


def read_header(path: Path, records: Reader) -> list[str]:
    """Return the column names in a table's first record.

    Raises:
        DatasetError: the file is empty, its header cannot be read, or a column name is repeated.
    """
    first = next(records(path), None)
    if first is None:
        raise DatasetError("the file is empty", where=str(path))
    names = [name.strip() for name in first.cells]
    if first.defect or len(set(names)) < len(names):
        wrong = first.defect or "two columns have the same name"
        hint = "the first line of the file must name its columns"
        raise DatasetError(f"the header cannot be used: {wrong}", where=str(path), hint=hint)
    return names


def read_body(path: Path, records: Reader, width: int) -> Iterator[TableRecord]:
    """Yield the records after the header; a wrong number of cells is a defect."""
    rows = records(path)
    next(rows, None)
    for record in rows:
        if not record.defect and len(record.cells) != width:
            cells = format_quantity(len(record.cells), "column")
            wrong = f"the line has {cells}, but the header has {width}"
            yield record._replace(defect=wrong)
        else:
            yield record


_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})")


def locate_files(config: DatasetConfig, suffix: str) -> dict[str, list[Path]]:
    """Return the files by split.

    A single file is the split named in `dataset.split`. In a folder, the file names give the split:
    `test.csv`, or `test-00000-of-00002.csv` and the parts that follow.

    Raises:
        DatasetError: there are no files, a part is missing, or a link leaves the folder.
    """
    root, split = Path(config.path), config.split
    if root.is_file():
        return {config.split: [root]}
    if not root.is_dir():
        hint = f"looked for a *{suffix} file, or a folder with {split}{suffix}"
        raise DatasetError("there is no such file or folder", where=str(root), hint=hint)
    found: dict[str, list[Path]] = {}
    for path in sorted(root.glob(f"*{suffix}")):
        refuse_special_files(root, [path])
        shard = _SHARD.fullmatch(path.name.removesuffix(suffix))
        found.setdefault(shard[1] if shard else path.name.removesuffix(suffix), []).append(path)
    if not found:
        hint = f"looked for {split}{suffix}, or for its parts {split}-00000-of-00001{suffix}"
        raise DatasetError(f"the folder has no *{suffix} file", where=str(root), hint=hint)
    for split, paths in found.items():
        _check_parts(split, paths, suffix)
    return found


def _check_parts(split: str, paths: list[Path], suffix: str) -> None:
    shards = [_SHARD.fullmatch(path.name.removesuffix(suffix)) for path in paths]
    wanted = {int(shard[3]) for shard in shards if shard}
    numbers = [int(shard[2]) for shard in shards if shard]
    if wanted and (None in shards or len(wanted) > 1 or numbers != list(range(max(wanted)))):
        raise DatasetError(
            f"the parts of the split {split!r} are incomplete: {len(paths)} of {max(wanted)} files",
            where=str(paths[0].parent),
            hint="remove extra files, or download the missing ones",
        )


PEEKED = 50
"""The number of objects of a JSON Lines file whose keys count as columns: rows may omit some."""

Opener = Callable[[DatasetConfig, Task, list[Path]], Rows]


def open_delimited(records: Reader) -> Opener:
    """Return a function that opens tables with a header, given the reader of their records."""

    def rows(config: DatasetConfig, task: Task, paths: list[Path]) -> Rows:
        headers = [read_header(path, records) for path in paths]
        columns = [
            find_columns(config, task, names, where=str(path))
            for path, names in zip(paths, headers, strict=True)
        ]
        return _table_rows(config, list(zip(paths, headers, columns, strict=True)), records)

    return rows


def _table_rows(
    config: DatasetConfig, tables: list[tuple[Path, list[str], TableColumns]], records: Reader
) -> Rows:
    counted = count(1)
    for path, names, columns in tables:
        file = display_path(path, config)
        for record in read_body(path, records, len(names)):
            number = next(counted)
            if record.defect:
                yield make_bad_row(file, record.line, record.defect, record.raw)
                continue
            values = dict(zip(names, record.cells, strict=True))
            yield columns.row(values, file=file, line=record.line, number=number, raw=record.raw)


def _open_json(config: DatasetConfig, task: Task, paths: list[Path]) -> Rows:
    columns = [find_columns(config, task, _keys(path), where=str(path)) for path in paths]
    return _json_rows(config, list(zip(paths, columns, strict=True)))


def _json_rows(config: DatasetConfig, files: list[tuple[Path, TableColumns]]) -> Rows:
    number = before = 0
    for path, columns in files:
        file, before = display_path(path, config), number
        for found in read_json_rows(path):
            number = before + found.number
            if found.values is None:
                continue
            if isinstance(found.values, BadRecord):
                yield make_bad_row(file, found.line, found.values.reason, found.raw)
                continue
            if twice := find_repeated_key(*map(found.values.get, columns.names)):
                yield make_bad_row(file, found.line, twice, found.raw)
                continue
            yield columns.row(
                found.values, file=file, line=found.line, number=number, raw=found.raw
            )


class JsonRow(NamedTuple):
    """An object, or a blank line, of a file."""

    line: int
    number: int
    """The number of its line, or of the element in a list, from 1."""
    raw: str
    values: Object | BadRecord | None
    """The object, or the reason why there is none; None for a blank line."""


def read_json_rows(path: Path) -> Iterator[JsonRow]:
    """Yield the lines of JSON Lines, or the elements of one JSON list."""
    if not _is_list(path):
        for read in read_lines(path):
            values = parse_object(read) if read.raw.strip() else None
            yield JsonRow(read.number, read.number, read.raw, values)
        return
    for number, (line, value) in enumerate(iter_json_elements(path), start=1):
        yield JsonRow(line, number, json.dumps(value), check_object(value))


def _is_list(path: Path) -> bool:
    """Return whether a file starts with a list of objects."""
    with open_records(path) as file:
        return _LIST.match(file.read(_LOOKED_AT)) is not None


_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{")
_LOOKED_AT = 1000


def _keys(path: Path) -> list[str]:
    """Return the keys of a file's first objects, in order of first appearance."""
    found = (each.values for each in islice(read_json_rows(path), MOST_BAD))
    objects = list(islice((each for each in found if isinstance(each, dict)), PEEKED))
    if objects:
        return list(dict.fromkeys(key for each in objects for key in each))
    if not any(line.raw.strip() for line in read_lines(path)):
        raise DatasetError("the file is empty", where=str(path))
    raise DatasetError(
        "no line of the file is a JSON object",
        where=str(path),
        hint="jsonl needs one object per line, or one list of objects: [{...}, {...}]",
    )


def _make_format(suffix: str, opener: Opener) -> BenchmarkFormat:
    def files(config: DatasetConfig, split: str) -> list[Path]:
        return locate_files(config, suffix)[split]

    return BenchmarkFormat(
        splits=lambda config: sorted(locate_files(config, suffix)),
        rows=lambda config, task, split: opener(config, task, files(config, split)),
        digest=make_digest(files),
        kind=None,
    )


CSV = _make_format(".csv", open_delimited(read_csv_records))
TSV = _make_format(".tsv", open_delimited(read_tsv_records))
JSONL = _make_format(".jsonl", _open_json)
