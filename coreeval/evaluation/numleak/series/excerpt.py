"""Lines of a publisher's file as published, with the dates in each, and windows on them.

A window contains the lines to show to a model and the lines for the model to write next.
"""

import csv
import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.definition import Series
from coreeval.evaluation.numleak.series.layouts import CellRow, find_delimiter, read_rows
from coreeval.evaluation.numleak.series.observations import parse_row_date, read_cells


@dataclass(frozen=True)
class FileLine:
    """One line below the header of a file."""

    text: str
    delimiter: str
    places: tuple[tuple[Period, int], ...]
    """The dates whose values the line holds, with their column indices."""
    whole: bool
    """Whether all cells of the series in this line are values that may be asked about."""

    def fill(self, values: Mapping[Period, str]) -> str:
        """Return the line with these values; columns after its first value are otherwise empty."""
        cells = next(csv.reader([self.text], delimiter=self.delimiter))
        first = min(place for _, place in self.places)
        kept = [cell if place < first else "" for place, cell in enumerate(cells)]
        for period, place in self.places:
            kept[place] = values[period]
        return self.delimiter.join(kept)


@dataclass(frozen=True)
class FileExcerpt:
    """A file's header and the lines below it, in the order of the file."""

    header: str
    lines: tuple[FileLine, ...]

    def place_of(self, period: Period) -> int | None:
        """Return the index of the line with the value of a date; None if there is none."""
        found = (at for at, line in enumerate(self.lines) if (period in dict(line.places)))
        return next(found, None)


def find_excerpt(series: Series) -> FileExcerpt | None:
    """Return the lines of a series' file; None if it does not contain the values unchanged."""
    how = series.definition.transform
    if not series.text or how.combine or how.change or how.scale != 1:
        return None
    rows = read_rows(series.text, series.definition)
    written = series.text.split("\n")  # as in read_rows: a form feed, U+0085 … do not end lines
    there = dict[int, list[CellRow]]()
    for row in rows.rows:
        there.setdefault(row.line, []).append(row)
    header = written[rows.header - 1].strip()
    delimiter = find_delimiter(header)
    lines = (_line(written[at - 1].rstrip(), each, series, delimiter)
             for at, each in there.items())  # fmt: skip
    return FileExcerpt(header, tuple(lines))


def _line(text: str, rows: list[CellRow], series: Series, delimiter: str) -> FileLine:
    cells = _cells_of(text, delimiter)
    places = list[tuple[Period, int]]()
    for row in rows:
        if cells[row.place : row.place + 1] != [row.cell]:
            continue  # this is the last of the row's several lines
        try:
            period = parse_row_date(row, series.definition)
        except ValueError:
            continue
        if period in series.values:
            places.append((period, row.place))
    return FileLine(text, delimiter, tuple(places), whole=len(places) == len(rows))


def _cells_of(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line; empty if the line ends a quoted field."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def read_line_values(text: str, excerpt: FileExcerpt, series: Series) -> dict[Period, float]:
    """Return the values in lines that continue the file, by date; the first of a date counts.

    Lines that are not rows of such a file are skipped; without any such row, the result is empty.
    """
    try:
        rows = read_rows(f"{excerpt.header}\n{text}", series.definition)
    except DatasetError:
        return {}
    read, _ = read_cells(rows, series.definition)
    return dict(reversed(read))


SHOWN_LINES: Final = 8
"""The number of lines shown in a question.

More than a season of quarters, less than a year of months.
"""
WANTED_LINES: Final = 4
"""The number of values asked for; a line with more values is asked for alone."""


class FileWindow(NamedTuple):
    """Consecutive lines of the file: those shown and those asked for."""

    shown: tuple[FileLine, ...]
    wanted: tuple[FileLine, ...]

    @property
    def first(self) -> Period:
        """The date of the first value asked for."""
        return self.wanted[0].places[0][0]


def draw_windows(
    excerpt: FileExcerpt, dates: Collection[Period], *, count: int, seed: int, cutoff: date | None
) -> list[FileWindow]:
    """Return windows that ask for values before the cutoff; no value is asked for twice.

    Args:
        excerpt: The excerpt of the file.
        dates: The dates that may be asked about.
        count: The maximum number of windows.
        seed: Seed of the choice; the order of the windows does not change if the file grows.
        cutoff: The last day of the model's training data; None for windows anywhere.
    """
    found, taken = list[FileWindow](), set[Period]()
    every = sorted(_list_windows(excerpt), key=lambda each: _window_turn(seed, each.first))
    for window in every:
        asked = {period for line in window.wanted for period, _ in line.places}
        before = all(cutoff is None or period.last_day <= cutoff for period in asked)
        if len(found) < count and before and asked <= set(dates) and not asked & taken:
            found.append(window)
            taken |= asked
    return sorted(found, key=lambda each: each.first)


def _list_windows(excerpt: FileExcerpt) -> Iterator[FileWindow]:
    wanted = max(1, WANTED_LINES // max((len(line.places) for line in excerpt.lines), default=1))
    for at in range(SHOWN_LINES, len(excerpt.lines) - wanted + 1):
        lines = excerpt.lines[at - SHOWN_LINES : at + wanted]
        if all(line.whole and line.places for line in lines):
            yield FileWindow(lines[:SHOWN_LINES], lines[SHOWN_LINES:])


def _window_turn(seed: int, first: Period) -> bytes:
    return hashlib.sha256(f"window\0{seed}\0{first}".encode()).digest()
