"""Lines of a publisher's file as it writes them, with the dates whose values stand in each."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.cells import date_of, read_cells
from coreeval.evaluation.numleak.series.layouts import Row, delimiter_of, read_rows
from coreeval.evaluation.numleak.series.series import Series


@dataclass(frozen=True)
class FileLine:
    """One line below the header."""

    text: str
    delimiter: str
    places: tuple[tuple[Period, int], ...]
    """The dates whose values it holds, and the column of each."""
    whole: bool
    """Whether all its cells of the series are values that are asked about."""

    def filled(self, values: Mapping[Period, str]) -> str:
        """Return it with these values in place of its own, and with no other column filled in."""
        cells = next(csv.reader([self.text], delimiter=self.delimiter))
        first = min(place for _, place in self.places)
        kept = [cell if place < first else "" for place, cell in enumerate(cells)]
        for period, place in self.places:
            kept[place] = values[period]
        return self.delimiter.join(kept)


@dataclass(frozen=True)
class Excerpt:
    """A file's header and the lines below it, in the order of the file."""

    header: str
    lines: tuple[FileLine, ...]

    def place_of(self, period: Period) -> int | None:
        """Return which line holds the value of a date; None where none does."""
        found = (at for at, line in enumerate(self.lines) if (period in dict(line.places)))
        return next(found, None)


def excerpt_of(series: Series) -> Excerpt | None:
    """Return the lines of a series' file; None where its values do not stand in it as they are."""
    how = series.definition.transform
    if not series.text or how.combine or how.change or how.scale != 1:
        return None
    rows = read_rows(series.text, series.definition)
    written = series.text.splitlines()
    there = dict[int, list[Row]]()
    for row in rows.rows:
        there.setdefault(row.line, []).append(row)
    header = written[rows.header - 1].strip()
    delimiter = delimiter_of(header)
    lines = (_line(written[at - 1].rstrip(), each, series, delimiter)
             for at, each in there.items())  # fmt: skip
    return Excerpt(header, tuple(lines))


def _line(text: str, rows: list[Row], series: Series, delimiter: str) -> FileLine:
    places = list[tuple[Period, int]]()
    for row in rows:
        try:
            period = date_of(row, series.definition)
        except ValueError:
            continue
        if period in series.values:
            places.append((period, row.place))
    return FileLine(text, delimiter, tuple(places), whole=len(places) == len(rows))


def values_said(text: str, excerpt: Excerpt, series: Series) -> dict[Period, float]:
    """Return the values in lines that continue the file, by date; the first of a date counts.

    Lines that are no rows of such a file are passed over; so is all where none is.
    """
    try:
        rows = read_rows(f"{excerpt.header}\n{text}", series.definition)
    except DatasetError:
        return {}
    read, _ = read_cells(rows, series.definition)
    return dict(reversed(read))
