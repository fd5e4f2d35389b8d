"""Turns rows into the values to ask about: reads, combines, transforms and checks them.

Invalid numbers, invalid dates and duplicates are reported, never guessed, as are gaps, wrong units
and too few values.
"""

import itertools
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.periods import FREQUENCIES, Frequency, Period
from coreeval.evaluation.numleak.replies import LARGEST_VALUE
from coreeval.evaluation.numleak.series.definition import Change, SeriesDefinition, Transform
from coreeval.evaluation.numleak.series.layouts import CellRow, CellRows, trim_number
from coreeval.tools.formatting import format_quantity

LATEST_YEAR: Final = 9000
"""The last valid year; date arithmetic ends at 9999."""
MOST_SHOWN: Final = 3
"""The number of dates or lines that a note lists before it counts the rest."""
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_THOUSANDS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_COMMAS: Final = re.compile(r"[+-]?\d*(?:,\d+)+(?:\.\d+)?")
_YEAR_FIRST: Final = re.compile(r"(\d{4})[/:M](\d{1,2})(?:[/:](\d{1,2}))?")
_FINER: Final = tuple(each for each in FREQUENCIES if each != "weekly")
"""Frequencies that dates in a finer file can have, finest first; a week is dated by a day."""
_TIME: Final = re.compile(r"[T ]00:00(?::00(?:\.0+)?)?(?:Z|\+00:00)?$")


@dataclass
class Observations:
    """Values by date in chronological order, and notes on the dates or rows that were dropped."""

    values: dict[Period, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def observe(found: CellRows, definition: SeriesDefinition) -> Observations:
    """Return the values of the rows; a date with conflicting values has none.

    Raises:
        DatasetError: no row or only a minority can be read, or most dates have several values.
    """
    read, bad = read_cells(found, definition)
    observed = Observations(notes=_complaints(bad))
    if not read and not bad:
        raise DatasetError("the file has no values: every cell is empty or marked as missing")
    if len(bad) > len(read):
        raise DatasetError(
            f"{len(bad)} of {len(bad) + len(read)} rows cannot be read: {bad[0]}",
            hint="check column, source.dates and frequency in the definition",
        )
    kept, twice = _split_duplicates(read)
    _check_fineness(twice, kept, definition)
    observed.values = dict(sorted(kept.items()))
    observed.notes += _describe_duplicates(twice)
    return observed


def read_cells(
    found: CellRows, definition: SeriesDefinition
) -> tuple[list[tuple[Period, float]], list[str]]:
    """Return dates with their values, and the defects of the rows without a value."""
    marks = frozenset((*found.missing, *definition.source.missing))
    sizes = frozenset(float(mark) for mark in marks if _NUMBER.fullmatch(mark))
    read, bad = list[tuple[Period, float]](), list[str]()
    grouped = _groups_thousands(found)
    for row in found.rows:
        if row.cell in marks:
            continue
        try:
            value = _number(row, grouped=grouped)
            if value not in sizes:
                read.append((parse_row_date(row, definition), value))
        except ValueError as error:
            bad.append(f"line {row.line}: {error}")
    return read, bad


def _groups_thousands(found: CellRows) -> bool:
    """Return whether a comma in a number certainly groups thousands, as `1,204` alone does not.

    Some number has two commas or a comma and a point, or no number has a decimal comma and commas
    also separate the columns: where decimals have commas, semicolons or tabs do.
    """
    cells = [text for row in found.rows if _COMMAS.fullmatch(text := _strip_sign(row.cell))]
    groups = [text for text in cells if _THOUSANDS.fullmatch(text)]
    if any("." in text or text.count(",") > 1 for text in groups):
        return True
    return len(groups) == len(cells) and found.delimiter == ","


def _strip_sign(cell: str) -> str:
    return cell.replace("\N{MINUS SIGN}", "-").removesuffix("%").rstrip()


def _number(row: CellRow, *, grouped: bool) -> float:
    text = _strip_sign(row.cell)
    if grouped and _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if _COMMAS.fullmatch(text):
        raise ValueError(
            f"{row.cell!r} may have a decimal comma; write decimals with a point, and thousands "
            "without a comma"
        )
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{row.cell!r} is not a number")
    value = float(text)
    if abs(value) > LARGEST_VALUE:
        raise ValueError(f"{row.cell!r} is too large")
    return value


def parse_row_date(row: CellRow, definition: SeriesDefinition) -> Period:
    """Return the date of a row.

    Raises:
        ValueError: the date has neither the series' frequency nor a finer one that is combined.
    """
    text = trim_number(_TIME.sub("", row.date))
    if slashed := _YEAR_FIRST.fullmatch(text):
        text = "-".join(part.zfill(2) for part in slashed.groups() if part)
    allowed = _FINER if definition.transform.combine else (definition.frequency,)
    for frequency in allowed:
        with suppress(ValueError):
            period = Period.parse(text, frequency)
            if period.start.year <= LATEST_YEAR:
                return period
    raise ValueError(f"{row.date!r} is not a date of a {definition.frequency} series")


def _split_duplicates(
    read: Iterable[tuple[Period, float]],
) -> tuple[dict[Period, float], dict[Period, set[float]]]:
    """Return the dates with one distinct value, and all values of the dates with several rows."""
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
            hint=f"if the file's frequency is higher than {definition.frequency}, add transform: "
            "{combine: mean} (or last); otherwise set source.dates to the column with the dates",
        )


def _describe_duplicates(twice: dict[Period, set[float]]) -> list[str]:
    same = [str(at) for at, values in twice.items() if len(values) == 1]
    torn = [str(at) for at, values in twice.items() if len(values) > 1]
    notes = []
    if same:
        notes.append(
            f"{dates(len(same))} in the file more than once, always with the same value: "
            f"{list_few(same)}"
        )
    if torn:
        notes.append(
            f"{dates(len(torn))} in the file more than once with different values and skipped: "
            f"{list_few(torn)}"
        )
    return notes


def _complaints(bad: Sequence[str]) -> list[str]:
    if not bad:
        return []
    count = format_quantity(len(bad), "row cannot be read and is", "rows cannot be read and are")
    return [f"{count} skipped: {list_few(bad)}"]


def dates(count: int) -> str:
    """Return a count of dates with the matching verb."""
    return format_quantity(count, "date is", "dates are")


def list_few(items: Sequence[str]) -> str:
    """List the first few items and the number of the others."""
    more = len(items) - MOST_SHOWN
    return "; ".join(items[:MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")


_DAILY_GAP: Final = 4
"""The most consecutive days that markets are closed at a month's end.

A weekend with a holiday on each side.
"""
_NOTHING: Final = 1e-9
"""The least absolute value of a ratio's denominator; published levels are not so close to zero."""
_HALF: Final = 0.5
"""Share of the usual number of finer values below which a mean does not cover the whole period."""


def transform(observed: Observations, definition: SeriesDefinition) -> Observations:
    """Return combined, changed and scaled values, in this order; notes report dropped values."""
    wanted, notes = definition.transform, list(observed.notes)
    values = observed.values
    if wanted.combine:
        values, more = _combine(values, definition)
        notes += more
    if wanted.change:
        values, more = _apply_change(values, wanted)
        notes += more
    return Observations({at: value * wanted.scale for at, value in values.items()}, notes)


# -- finer values ---------------------------------------------------------------------------------


def _combine(
    values: Mapping[Period, float], definition: SeriesDefinition
) -> tuple[dict[Period, float], list[str]]:
    groups = dict[Period, dict[Period, float]]()
    for at, value in values.items():
        groups.setdefault(Period.of(at.start, definition.frequency), {})[at] = value
    single = bool(groups) and all(len(inside) == 1 for inside in groups.values())
    cut = set[Period]() if single else _cut_off(groups, values, definition)
    thin = _thin(groups) - cut if definition.transform.combine == "mean" else set[Period]()
    kept = {
        at: statistics.fmean(inside.values())
        if definition.transform.combine == "mean"
        else inside[max(inside)]
        for at, inside in groups.items()
        if at not in cut | thin
    }
    notes = [f"{at} is skipped: the file has only part of this period" for at in sorted(cut)]
    if thin:
        few_values = f"{dates(len(thin))} skipped because of too few values: "
        notes.append(few_values + list_few([str(at) for at in sorted(thin)]))
    if single:
        kind = definition.transform.combine
        notes.append(f"the file has only one value for each date, which is used as the {kind}")
    return kept, notes


def _cut_off(
    groups: Mapping[Period, Mapping[Period, float]],
    values: Mapping[Period, float],
    definition: SeriesDefinition,
) -> set[Period]:
    """Return the first and last period if the file does not cover them completely."""
    if not groups:
        return set()
    first, last, slack = min(groups), max(groups), _slack(values)
    cut = set()
    if (last.last_day - max(values).last_day).days > slack:
        cut.add(last)
    early = (min(values).start - first.start).days > slack
    if early and definition.transform.combine == "mean":
        cut.add(first)
    return cut


def _slack(values: Mapping[Period, float]) -> int:
    """Return the allowed number of days between a period's last value and its end."""
    starts = [at.start for at in values]
    steps = [(after - before).days for before, after in itertools.pairwise(starts)]
    step = statistics.median(steps) if steps else 0
    if step > 8:
        return 0
    return _DAILY_GAP if step <= _DAILY_GAP else int(step) - 1


def _thin(groups: Mapping[Period, Mapping[Period, float]]) -> set[Period]:
    usual = statistics.median(len(inside) for inside in groups.values()) if groups else 0
    return {at for at, inside in groups.items() if len(inside) < usual * _HALF}


# -- changes --------------------------------------------------------------------------------------


def _apply_change(
    values: Mapping[Period, float], wanted: Transform
) -> tuple[dict[Period, float], list[str]]:
    before = (
        _daily_before(values, wanted.over) if _is_daily(values) else _find_bases(values, wanted)
    )
    kind = wanted.change or "difference"
    pairs = {at: (values[base], value) for at, value in values.items() if (base := before.get(at))}
    bad = {at for at, pair in pairs.items() if kind != "difference" and min(pair) < _NOTHING}
    changes = {at: _change(kind, *pair) for at, pair in pairs.items() if at not in bad}
    shown = list_few([str(at) for at in sorted(bad)])
    said = f"{dates(len(bad))} skipped because a value is not above zero: {shown}"
    return changes, [said] if bad else []


def _change(kind: Change, base: float, value: float) -> float:
    if kind == "difference":
        return value - base
    return 100 * (value / base - 1 if kind == "percent_change" else math.log(value / base))


def _is_daily(values: Mapping[Period, float]) -> bool:
    return any(at.frequency == "daily" for at in values)


def _find_bases(values: Mapping[Period, float], wanted: Transform) -> dict[Period, Period]:
    """Map each date to the one `over` periods before it; dates without a base are left out."""
    found = dict[Period, Period]()
    for at in values:
        with suppress(ValueError, OverflowError):  # before the calendar's first year
            found[at] = at.shift(-wanted.over)
    return {at: base for at, base in found.items() if base in values}


def _daily_before(values: Mapping[Period, float], over: int) -> dict[Period, Period]:
    """Map each date to the value `over` positions earlier; days without trading do not count."""
    order = list(values)
    return dict(zip(order[over:], order, strict=False))


FEW_VALUES: Final = 30
"""The number of values below which a note is added.

NumLeak's smallest headline cells have 28 to 40 dates.
"""
_MOST: Final = 0.1
"""Share of values outside the plausible range above which the unit must be wrong."""
_ENOUGH: Final = 12
"""The number of values (a year of months) from which their median size indicates the unit."""
_LONGEST_STEP: Final[dict[Frequency, int]] = {"daily": 7, "weekly": 10}
"""The largest number of days between two values without a gap.

A week around holidays for daily values, a week and a shifted day for weekly ones.
"""


def check_values(values: Mapping[Period, float], definition: SeriesDefinition) -> list[str]:
    """Return notes on the values.

    Raises:
        DatasetError: there are no values, or they are not in the unit of the definition.
    """
    if not values:
        raise DatasetError(
            "no value is left after the transformation",
            hint="check transform in the definition: the span of a change and the combined values",
        )
    _check_sign(values, definition)
    notes = [*_implausible(values, definition), *_gaps(values, definition)]
    lost = [str(at) for at in sorted(definition.notable_periods) if _is_hole(at, values)]
    if lost:
        notes.append(f"notable dates without a value: {list_few(lost)}")
    if len(values) < FEW_VALUES:
        count = format_quantity(len(values), "value")
        notes.append(f"the series has only {count}, which is too few for firm conclusions")
    return notes


def _check_sign(values: Mapping[Period, float], definition: SeriesDefinition) -> None:
    below = [str(at) for at, value in values.items() if value < 0]
    if below and definition.sign == "positive":
        raise DatasetError(
            f"the definition has `sign: positive`, but {len(below)} of {len(values)} values are "
            f"below zero: {list_few(below)}",
            hint="set `sign: signed`, or, if these numbers mark missing values, list them in "
            "`source.missing`",
        )


# -- units ----------------------------------------------------------------------------------------


def _implausible(values: Mapping[Period, float], definition: SeriesDefinition) -> Iterator[str]:
    expected, size = definition.plausible, statistics.median(map(abs, values.values()))
    if expected is None:
        if definition.unit.basis_points and max(map(abs, values.values())) < 1:
            yield (
                f"no value reaches 1 percent (median size {size:.3g}), so the values may be "
                "fractions"
            )
        return
    outside = [at for at, value in values.items() if not expected.low <= value <= expected.high]
    bounds = f"{expected.low:g} to {expected.high:g} {definition.unit.name}"
    if len(outside) > _MOST * len(values):
        raise _other_unit(f"{len(outside)} of {len(values)} values are outside the range {bounds}")
    enough = expected.typical and len(values) >= _ENOUGH
    if enough and expected.typical and not expected.typical[0] <= size <= expected.typical[1]:
        low, high = expected.typical
        raise _other_unit(
            f"the median size of the values is {size:.3g}, but {low:g} to {high:g} "
            f"{definition.unit.name} is usual for this series"
        )
    if outside:
        shown = list_few([f"{at} ({values[at]:g})" for at in outside])
        yield f"values that are implausible for {definition.unit.name} ({bounds} expected): {shown}"


def _other_unit(found: str) -> DatasetError:
    return DatasetError(
        f"the values are not in the unit of the definition: {found}",
        hint="check that the column is the right one; to convert fractions to percent, set "
        "transform: {scale: 100}; to convert a level to a return, set transform: {change: "
        "percent_change}",
    )


# -- gaps -----------------------------------------------------------------------------------------


def _gaps(values: Mapping[Period, float], definition: SeriesDefinition) -> Iterator[str]:
    order = list(values)
    if definition.frequency in _LONGEST_STEP:
        yield from _long_steps(order, _LONGEST_STEP[definition.frequency])
        return
    pairs = itertools.pairwise(order)
    missing = [str(at) for before, after in pairs for at in _inner(before, after)]
    if missing:
        count = format_quantity(len(missing), "date has", "dates have")
        yield f"{count} no value between {order[0]} and {order[-1]}: {list_few(missing)}"


def _is_hole(at: Period, values: Mapping[Period, float]) -> bool:
    return at not in values and min(values) < at < max(values)


def _inner(before: Period, after: Period) -> Iterator[Period]:
    at = before.shift(1)
    while at < after:
        yield at
        at = at.shift(1)


def _long_steps(order: list[Period], longest: int) -> Iterator[str]:
    holes = [
        f"{before} to {after}"
        for before, after in itertools.pairwise(order)
        if (after.start - before.start).days > longest
    ]
    if holes:
        count = format_quantity(len(holes), "gap")
        yield f"{count} of more than {longest} days: {list_few(holes)}"
