"""Which answers a verdict rests on: of dates before the cutoff, in the unit of the series."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Point, Stratum
from coreeval.evaluation.numleak.shifts import held_against, shift_of, shifted
from coreeval.evaluation.numleak.signature import MIN_DATES, plural
from coreeval.evaluation.numleak.statistics.answers import answers_of
from coreeval.evaluation.numleak.statistics.exactness import FACTORS
from coreeval.evaluation.numleak.statistics.notes import OTHER_UNIT

_CHOICES: Final[tuple[frozenset[Stratum], ...]] = (frozenset({"pre"}), frozenset({"pre", "near"}))
"""Strata that a verdict rests on, the first that has enough dates."""


@dataclass(frozen=True, kw_only=True)
class Basis:
    """The questions for a value that a verdict rests on, with all others of the audit."""

    points: tuple[Point, ...]
    """Answers are divided by `factor`."""
    strata: tuple[Stratum, ...]
    """Where its dates lie to the cutoff."""
    dates: int
    """Dates with an answer that was read."""
    factor: float = 1.0
    """What the answers are times the values, by their size; 1 if no other unit is near."""
    shift: int = 0
    """Periods from each date to the one whose value was said; truths are those of the latter."""
    says: tuple[str, ...] = ()
    """Sentences on what was chosen."""


def basis_of(points: Sequence[Point], cutoff: date | None, values: Mapping[Period, float]) -> Basis:
    """Return the answers before the cutoff, if `MIN_DATES` dates of them were read.

    If there are fewer, dates within six months of the cutoff count as well, and if these are too
    few, all dates; so they do if the cutoff is not known.
    """
    value = [each for each in points if each.variant == "value"]
    chosen = next((some for some in _CHOICES if _read(value, some) >= MIN_DATES), None)
    kept = [each for each in points if each.variant != "value" or _is_in(each, chosen)]
    factor = factor_of(kept)
    kept = [_divided(each, factor) for each in kept]
    if shift := shift_of(kept, values):
        kept = held_against(kept, shifted(values, shift))
    there = {each.stratum for each in kept if each.variant == "value"}
    dates = _read(value, chosen)
    return Basis(
        points=tuple(kept),
        strata=tuple(name for name in ("pre", "near", "post", "unknown") if name in there),
        dates=dates,
        factor=factor,
        shift=shift,
        says=(
            *_say_dates(value, chosen, dates, cutoff),
            *say_shift(shift),
            *say_factor(factor),
        ),
    )


def factor_of(points: Sequence[Point]) -> float:
    """Return what answers are times the values, as far as their usual size tells; 1 if unclear.

    One of `FACTORS`, if the median size of answers over that of values is nearest to it, and at
    least `OTHER_UNIT` or at most its inverse. Their order decides nothing, so that choosing a
    factor makes no memory of a guess.
    """
    answers = answers_of(each for each in points if each.variant == "value")
    if len(answers.periods) < MIN_DATES:
        return 1.0
    said, true = (float(np.median(np.abs(each))) for each in (answers.estimate, answers.truth))
    if not (said > 0 and true > 0):
        return 1.0
    times = said / true
    if 1 / OTHER_UNIT < times < OTHER_UNIT:
        return 1.0
    return min(FACTORS, key=lambda factor: abs(np.log10(times / factor)))


def _read(points: Sequence[Point], strata: frozenset[Stratum] | None) -> int:
    """Return how many dates of some strata have an answer that was read."""
    return len(
        {each.period for each in points if _is_in(each, strata) and each.estimate is not None}
    )


def _is_in(point: Point, strata: frozenset[Stratum] | None) -> bool:
    return strata is None or point.stratum in strata


def _divided(point: Point, factor: float) -> Point:
    if factor == 1 or point.variant != "value" or point.estimate is None:
        return point
    return replace(point, estimate=point.estimate / factor)


def _say_dates(
    value: Sequence[Point], chosen: frozenset[Stratum] | None, dates: int, cutoff: date | None
) -> tuple[str, ...]:
    if cutoff is None:
        return (
            "The model's cutoff is not known: the verdict rests on all dates, and a value that was "
            "published after the cutoff counts as one that could be remembered.",
        )
    if chosen is None:
        read = _read(value, _CHOICES[0])
        return (
            f"Only {read} {plural(read, 'date')} before the cutoff, {cutoff}, had an answer that "
            f"was read: the verdict rests on all {dates} dates with one.",
        )
    left = _read(value, None) - dates
    if not left:
        return ()
    side = "before" if len(chosen) == 1 else "after"
    return (
        f"The verdict rests on the {dates} dates until six months {side} the cutoff, {cutoff}; "
        f"{left} later {plural(left, 'date')} {plural(left, 'does', 'do')} not count.",
    )


def say_shift(shift: int) -> tuple[str, ...]:
    """Say whose values the answers are; nothing if they are those of the dates asked about."""
    if not shift:
        return ()
    count, side = abs(shift), "before" if shift < 0 else "after"
    return (
        f"The answers are held against the values of {count} {plural(count, 'period')} {side} the "
        f"dates asked about, to which they are nearer: what is known is shifted by {count}.",
    )


def say_factor(factor: float) -> tuple[str, ...]:
    """Say in what unit the answers are; nothing if it is that of the series."""
    if factor == 1:
        return ()
    return (
        f"The answers are {factor:g} times the values, as in another unit: they were divided by "
        f"{factor:g}.",
    )
