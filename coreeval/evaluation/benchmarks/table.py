"""Records of delimited files: tab-separated ones without quoting, comma-separated ones with it."""

import csv
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.lines import Line, read_lines

LONGEST = 100
"""Lines that one quoted record may span; past it, its quotation mark counts as never closed."""


class Record(NamedTuple):
    """The cells of one record, or why it has none."""

    line: int
    raw: str
    cells: list[str]
    defect: str = ""


Reader = Callable[[Path], Iterator[Record]]


def tab_records(path: Path) -> Iterator[Record]:
    """Yield the records of a tab-separated file; quotation marks are text, blank lines are none."""
    for line in read_lines(path):
        if line.raw.strip():
            yield Record(line.number, line.raw, line.raw.split("\t"), _encoding(line))


def csv_records(path: Path) -> Iterator[Record]:
    """Yield the records of a comma-separated file, quoted as in RFC 4180.

    A record that cannot be parsed costs only its first line: reading goes on with the next one.
    """
    source, again = read_lines(path), deque[Line]()

    def following() -> Line | None:
        return again.popleft() if again else next(source, None)

    while line := following():
        if not line.raw.strip():
            continue
        record, unused = _csv_record(line, following)
        again.extendleft(reversed(unused))
        yield record


def _csv_record(first: Line, following: Callable[[], Line | None]) -> tuple[Record, list[Line]]:
    """Return the record that starts with a line, and the lines taken that are none of it."""
    taken = [first]
    while True:
        try:
            cells = next(csv.reader([f"{line.raw}\n" for line in taken], strict=True))
        except csv.Error as error:
            open_quote = "unexpected end of data" in str(error)
            defect = "a quotation mark is never closed" if open_quote else f"not CSV: {error}"
            more = following() if open_quote and len(taken) < LONGEST else None
        else:
            raw = "\n".join(line.raw for line in taken)
            return Record(first.number, raw, cells, max(map(_encoding, taken))), []
        if more is None:
            return Record(first.number, first.raw, [], defect), taken[1:]
        taken.append(more)


def _encoding(line: Line) -> str:
    return "" if line.valid else "the line is not UTF-8"


def header_of(path: Path, records: Reader) -> list[str]:
    """Return the names in a table's first record.

    Raises:
        DatasetError: the file is empty, its header cannot be read, or it names a column twice.
    """
    first = next(records(path), None)
    if first is None:
        raise DatasetError("the file is empty", where=str(path))
    names = [name.strip() for name in first.cells]
    if first.defect or len(set(names)) < len(names):
        wrong = first.defect or "a column is named twice"
        hint = "the first line of the file must name its columns"
        raise DatasetError(f"the header cannot be used: {wrong}", where=str(path), hint=hint)
    return names


def body(path: Path, records: Reader, width: int) -> Iterator[Record]:
    """Yield the records after the header; one with another number of cells gets a defect."""
    rows = records(path)
    next(rows, None)
    for record in rows:
        if not record.defect and len(record.cells) != width:
            wrong = f"{len(record.cells)} columns where the header has {width}"
            yield record._replace(defect=wrong)
        else:
            yield record
