"""From rows to values: what is no number, no date, or there twice is said, never guessed."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.periods import FREQUENCIES, Period
from coreeval.evaluation.numleak.points import LARGEST
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.series.layouts import Row, Rows, whole

LATEST: Final = 9000
"""Last year that is one: a date's arithmetic ends at 9999."""
SHOWN: Final = 3
"""How many dates or lines a note lists before it counts the others."""
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_YEAR_FIRST: Final = re.compile(r"(\d{4})[/:M](\d{1,2})(?:[/:](\d{1,2}))?")
_FINER: Final = tuple(each for each in FREQUENCIES if each != "weekly")
"""What dates of a finer file may be, finest first; that of a week is a day."""
_TIME: Final = re.compile(r"[T ]00:00(?::00(?:\.0+)?)?(?:Z|\+00:00)?$")


@dataclass
class Observed:
    """What a file has: values by date, in order of time, and what was wrong with the others."""

    values: dict[Period, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def observe(found: Rows, definition: SeriesDefinition) -> Observed:
    """Return the values of the rows; a date with two different values has none.

    Raises:
        DatasetError: no row can be read, most cannot, or there are several values for most dates.
    """
    read, bad = read_cells(found, definition)
    observed = Observed(notes=_complaints(bad))
    if not read and not bad:
        raise DatasetError("the file has no values: every cell is empty or marked as missing")
    if len(bad) > len(read):
        raise DatasetError(
            f"{len(bad)} of {len(bad) + len(read)} rows cannot be read: {bad[0]}",
            hint="check column, source.dates and frequency in the definition",
        )
    kept, twice = _single(read)
    _check_fineness(twice, kept, definition)
    observed.values = dict(sorted(kept.items()))
    observed.notes += _doubled(twice)
    return observed


def read_cells(
    found: Rows, definition: SeriesDefinition
) -> tuple[list[tuple[Period, float]], list[str]]:
    """Return dates with their values, and what is wrong with the rows that have none."""
    marks = frozenset((*found.missing, *definition.source.missing))
    sizes = frozenset(float(mark) for mark in marks if _NUMBER.fullmatch(mark))
    read, bad = list[tuple[Period, float]](), list[str]()
    for row in found.rows:
        if row.cell in marks:
            continue
        try:
            value = _number(row)
            if value not in sizes:
                read.append((date_of(row, definition), value))
        except ValueError as error:
            bad.append(f"line {row.line}: {error}")
    return read, bad


def _number(row: Row) -> float:
    text = row.cell.replace("\N{MINUS SIGN}", "-").removesuffix("%").rstrip()
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{row.cell!r} is no number")
    value = float(text)
    if abs(value) > LARGEST:
        raise ValueError(f"{row.cell!r} is too large")
    return value


def date_of(row: Row, definition: SeriesDefinition) -> Period:
    """Return the date of a row.

    Raises:
        ValueError: it is none of the series' frequency, nor of a finer one that is combined.
    """
    text = whole(_TIME.sub("", row.date))
    if slashed := _YEAR_FIRST.fullmatch(text):
        text = "-".join(part.zfill(2) for part in slashed.groups() if part)
    allowed = _FINER if definition.transform.combine else (definition.frequency,)
    for frequency in allowed:
        with suppress(ValueError):
            period = Period.parse(text, frequency)
            if period.start.year <= LATEST:
                return period
    raise ValueError(f"{row.date!r} is no date of a {definition.frequency} series")


def _single(
    read: Iterable[tuple[Period, float]],
) -> tuple[dict[Period, float], dict[Period, set[float]]]:
    """Return the values of dates that have one, and all values of those with several rows."""
    all_of = dict[Period, list[float]]()
    for period, value in read:
        all_of.setdefault(period, []).append(value)
    kept = {at: values[0] for at, values in all_of.items() if len(set(values)) == 1}
    return kept, {at: set(values) for at, values in all_of.items() if len(values) > 1}


def _check_fineness(
    twice: dict[Period, set[float]], kept: dict[Period, float], definition: SeriesDefinition
) -> None:
    torn = [at for at in twice if at not in kept]
    if len(torn) > len(kept):
        raise DatasetError(
            f"most dates have several values: {torn[0]} has {len(twice[torn[0]])} different ones",
            hint=f"for a file finer than {definition.frequency} add transform: {{combine: mean}} "
            "(or last); else name the column of dates in source.dates",
        )


def _doubled(twice: dict[Period, set[float]]) -> list[str]:
    same = [str(at) for at, values in twice.items() if len(values) == 1]
    torn = [str(at) for at, values in twice.items() if len(values) > 1]
    notes = []
    if same:
        notes.append(f"{dates(len(same))} in the file more than once, with one value: {few(same)}")
    if torn:
        notes.append(
            f"{dates(len(torn))} in the file more than once with different values and left out: "
            f"{few(torn)}"
        )
    return notes


def _complaints(bad: Sequence[str]) -> list[str]:
    if not bad:
        return []
    count = "1 row is" if len(bad) == 1 else f"{len(bad)} rows are"
    return [f"{count} left out, which cannot be read: {few(bad)}"]


def dates(count: int) -> str:
    """Return a count of dates with its verb."""
    return "1 date is" if count == 1 else f"{count} dates are"


def few(items: Sequence[str]) -> str:
    """Return the first few of a list and how many more there are."""
    more = len(items) - SHOWN
    return "; ".join(items[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
