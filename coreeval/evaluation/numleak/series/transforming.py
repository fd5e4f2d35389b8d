"""From published numbers to those that are asked about: closes, means, changes."""

import itertools
import math
import statistics
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.cells import Observed, dates, few
from coreeval.evaluation.numleak.series.definition import Change, SeriesDefinition, Transform

_DAILY_GAP: Final = 4
"""Days that markets are closed in a row at the end of a month, at most: a weekend and a holiday
on each side of it."""
_NOTHING: Final = 1e-9
"""What a ratio may divide by, at least: no published level is so near zero."""
_HALF: Final = 0.5
"""Share of the usual count of finer values below which a mean is not that of the whole period."""


def transform(observed: Observed, definition: SeriesDefinition) -> Observed:
    """Return combined, changed and scaled values, in this order; notes say what fell away."""
    wanted, notes = definition.transform, list(observed.notes)
    values = observed.values
    if wanted.combine:
        values, more = _combined(values, definition)
        notes += more
    if wanted.change:
        values, more = _changed(values, wanted)
        notes += more
    return Observed({at: value * wanted.scale for at, value in values.items()}, notes)


# -- finer values ---------------------------------------------------------------------------------


def _combined(
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
    notes = [f"{at} is left out: the file has only a part of it" for at in sorted(cut)]
    if thin:
        few_values = f"{dates(len(thin))} left out for lack of values: "
        notes.append(few_values + few([str(at) for at in sorted(thin)]))
    if single:
        kind = definition.transform.combine
        notes.append(f"the file has one value for each date, which is taken for its {kind}")
    return kept, notes


def _cut_off(
    groups: Mapping[Period, Mapping[Period, float]],
    values: Mapping[Period, float],
    definition: SeriesDefinition,
) -> set[Period]:
    """Return the first and last period where the file does not reach to their ends."""
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
    """Return how many days may lie between the last value in a period and the period's end."""
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


def _changed(
    values: Mapping[Period, float], wanted: Transform
) -> tuple[dict[Period, float], list[str]]:
    before = _daily_before(values, wanted.over) if _is_daily(values) else _before(values, wanted)
    kind = wanted.change or "difference"
    pairs = {at: (values[base], value) for at, value in values.items() if (base := before.get(at))}
    bad = {at for at, pair in pairs.items() if kind != "difference" and min(pair) < _NOTHING}
    changes = {at: _change(kind, *pair) for at, pair in pairs.items() if at not in bad}
    shown = few([str(at) for at in sorted(bad)])
    said = f"{dates(len(bad))} left out, since a value is not above zero: {shown}"
    return changes, [said] if bad else []


def _change(kind: Change, base: float, value: float) -> float:
    if kind == "difference":
        return value - base
    return 100 * (value / base - 1 if kind == "percent_change" else math.log(value / base))


def _is_daily(values: Mapping[Period, float]) -> bool:
    return any(at.frequency == "daily" for at in values)


def _before(values: Mapping[Period, float], wanted: Transform) -> dict[Period, Period]:
    """Return the date so many periods before each; a date whose base is missing has none."""
    found = dict[Period, Period]()
    for at in values:
        with suppress(ValueError, OverflowError):  # before the calendar's first year
            found[at] = at.shifted(-wanted.over)
    return {at: base for at, base in found.items() if base in values}


def _daily_before(values: Mapping[Period, float], over: int) -> dict[Period, Period]:
    """Return the value so many before each: days without trading do not count."""
    order = list(values)
    return dict(zip(order[over:], order, strict=False))
