"""What a reader must know of a series' values: gaps, wrong units, too few of them."""

import itertools
import statistics
from collections.abc import Iterator, Mapping
from typing import Final

from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.series.cells import few
from coreeval.evaluation.numleak.series.definition import SeriesDefinition

FEW: Final = 30
"""Below this many values a note says so; NumLeak's smallest headline cells have 28 to 40 dates."""
_MOST: Final = 0.1
"""Share of values outside the plausible range above which they are in another unit."""
_ENOUGH: Final = 12
"""Values (a year of months) from which their median size tells of the unit."""
_LONGEST_STEP: Final[dict[Frequency, int]] = {"daily": 7, "weekly": 10}
"""Days between two values that are no gap: a week around holidays; a week and a moved day."""


def check(values: Mapping[Period, float], definition: SeriesDefinition) -> list[str]:
    """Return what is worth saying about the values.

    Raises:
        DatasetError: there are none, or they are not in the unit of the definition.
    """
    if not values:
        raise DatasetError(
            "no value is left after the transformation",
            hint="check transform in the definition: how far a change reaches, what is combined",
        )
    _check_sign(values, definition)
    notes = [*_implausible(values, definition), *_gaps(values, definition)]
    lost = [str(at) for at in sorted(definition.notable_periods) if _is_hole(at, values)]
    if lost:
        notes.append(f"notable, but without a value: {few(lost)}")
    if len(values) < FEW:
        notes.append(f"only {len(values)} values: what can be said of them is little")
    return notes


def _check_sign(values: Mapping[Period, float], definition: SeriesDefinition) -> None:
    below = [str(at) for at, value in values.items() if value < 0]
    if below and definition.sign == "positive":
        raise DatasetError(
            f"the definition says sign: positive, but {len(below)} of {len(values)} values are "
            f"below zero: {few(below)}",
            hint="say sign: signed, or what stands for a missing value in source.missing",
        )


# -- units ----------------------------------------------------------------------------------------


def _implausible(values: Mapping[Period, float], definition: SeriesDefinition) -> Iterator[str]:
    expected, size = definition.plausible, statistics.median(map(abs, values.values()))
    if expected is None:
        if definition.unit.basis_points and max(map(abs, values.values())) < 1:
            yield f"no value reaches 1 percent (median size {size:.3g}): are they fractions?"
        return
    outside = [at for at, value in values.items() if not expected.low <= value <= expected.high]
    bounds = f"{expected.low:g} to {expected.high:g} {definition.unit.name}"
    if len(outside) > _MOST * len(values):
        raise _other_unit(f"{len(outside)} of {len(values)} values lie outside {bounds}")
    enough = expected.typical and len(values) >= _ENOUGH
    if enough and expected.typical and not expected.typical[0] <= size <= expected.typical[1]:
        low, high = expected.typical
        raise _other_unit(
            f"half of the values are below {size:.3g} in size, where {low:g} to {high:g} "
            f"{definition.unit.name} is usual for this series"
        )
    if outside:
        shown = few([f"{at} ({values[at]:g})" for at in outside])
        yield f"implausible for {definition.unit.name} ({bounds} expected): {shown}"


def _other_unit(found: str) -> DatasetError:
    return DatasetError(
        f"the values are not in the unit of the definition: {found}",
        hint="is it the right column? Fractions become percent with transform: {scale: 100}; a "
        "level becomes a return with transform: {change: percent_change}",
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
        count = "1 date has" if len(missing) == 1 else f"{len(missing)} dates have"
        yield f"{count} no value between {order[0]} and {order[-1]}: {few(missing)}"


def _is_hole(at: Period, values: Mapping[Period, float]) -> bool:
    return at not in values and min(values) < at < max(values)


def _inner(before: Period, after: Period) -> Iterator[Period]:
    at = before.shifted(1)
    while at < after:
        yield at
        at = at.shifted(1)


def _long_steps(order: list[Period], longest: int) -> Iterator[str]:
    holes = [
        f"{before} to {after}"
        for before, after in itertools.pairwise(order)
        if (after.start - before.start).days > longest
    ]
    if holes:
        count = "1 hole" if len(holes) == 1 else f"{len(holes)} holes"
        yield f"{count} of more than {longest} days: {few(holes)}"
