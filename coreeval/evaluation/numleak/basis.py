"""The basis of a verdict: answers before the cutoff, in the right unit, without outliers.

Answers may be closer to the value of another date, always the same number of periods away; they are
then compared with the values of those dates. An answer that cannot be a value of the series (a
misplaced decimal point, another unit or series) outweighs all others in r and in the mean error, so
the verdict would be about this error and not about memory: the verdict excludes such answers if
they are few. All reported numbers include them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, NamedTuple

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Point, Stratum
from coreeval.evaluation.numleak.signature import MIN_DATES
from coreeval.evaluation.numleak.statistics.baselines import (
    FACTORS,
    LAGS,
    SeriesValues,
    knows_most_periods,
)
from coreeval.evaluation.numleak.statistics.date_intervals import collect_answers
from coreeval.evaluation.numleak.statistics.estimation import OTHER_UNIT
from coreeval.evaluation.statistics import Array
from coreeval.tools.formatting import list_first, plural

Values = Mapping[Period, float]
SHIFT_SIGNIFICANCE: Final = 0.01
"""Significance level of a shift.

Our choice, stricter than elsewhere: the verdict's own tests come later, and the choice of the shift
must not favour them.
"""
_EXACT: Final = 1e-9


def find_shift(points: Sequence[Point], values: Values) -> int:
    """Return the number of periods that the answers are shifted by; 0 if no shift is shown.

    The result is the shift with the least mean error among those at which the answers are
    significantly closer than at their own dates, by a sign test over dates (Dixon and Mood 1946)
    whose p-value is multiplied by the number of shifts tried. Shifts are not tried if the values of
    most periods are unknown.
    """
    if not knows_most_periods(values):
        return 0
    answers = collect_answers(each for each in points if each.variant == "value")
    kept = [place for place, period in enumerate(answers.periods) if period in values]
    if not kept:
        return 0
    ordered = {period: place for place, period in enumerate(sorted(values))}
    level = np.array([values[period] for period in ordered])
    places = np.array([ordered[answers.periods[place]] for place in kept])
    said = answers.means(answers.estimate)[kept]
    errors = {lag: _measure_shift(said, level, places, lag) for lag in LAGS if lag}
    shown = {
        lag: error for lag, (error, p) in errors.items() if p * len(errors) <= SHIFT_SIGNIFICANCE
    }
    return min(shown, key=lambda lag: shown[lag]) if shown else 0


def shift_values(values: Values, shift: int) -> Values:
    """Map each date to the value `shift` periods later; dates without such a value are left out."""
    if not shift:
        return values
    ordered = sorted(values)
    return {
        period: values[ordered[place + shift]]
        for place, period in enumerate(ordered)
        if 0 <= place + shift < len(ordered)
    }


def replace_truths(points: Sequence[Point], values: Values) -> list[Point]:
    """Return the points with new truths for value questions; dates without a value get None."""
    return [
        replace(each, truth=values.get(each.period)) if each.variant == "value" else each
        for each in points
    ]


def _measure_shift(
    said: Array, level: Array, places: "np.ndarray[tuple[int], np.dtype[np.intp]]", lag: int
) -> tuple[float, float]:
    """Return the mean error at a shift, and the p-value for closer answers at this shift."""
    from scipy.special import bdtrc  # type: ignore[import-untyped]  # slow to import

    there = (places + lag >= 0) & (places + lag < len(level))
    if not there.any():
        return float("inf"), 1.0
    plain = np.abs(said - level[places])[there]
    moved = np.abs(said[there] - level[places[there] + lag])
    nearer = int(np.count_nonzero(moved < plain - _EXACT))
    farther = int(np.count_nonzero(moved > plain + _EXACT))
    p_value = float(bdtrc(nearer - 1, nearer + farther, 0.5)) if nearer else 1.0
    return float(moved.mean()), p_value


_CHOICES: Final[tuple[frozenset[Stratum], ...]] = (frozenset({"pre"}), frozenset({"pre", "near"}))
"""The strata for the basis of a verdict; the first set with enough dates is used."""


@dataclass(frozen=True, kw_only=True)
class VerdictBasis:
    """The value questions on which a verdict is based, and all other questions of the audit."""

    points: tuple[Point, ...]
    """The questions; their answers are divided by `factor`."""
    strata: tuple[Stratum, ...]
    """Position of the dates relative to the cutoff."""
    dates: int
    """The number of dates with a parsed answer."""
    factor: float = 1.0
    """Typical ratio of answers to values; 1 if no other unit is near."""
    shift: int = 0
    """The number of periods from each date to the one whose value was given as the answer.

    The truths are those of the second date.
    """
    says: tuple[str, ...] = ()
    """Sentences that describe what was chosen."""


def choose_basis(
    points: Sequence[Point], cutoff: date | None, values: Mapping[Period, float]
) -> VerdictBasis:
    """Return the answers before the cutoff, if at least `MIN_DATES` of their dates were read.

    If there are fewer, dates within six months of the cutoff count as well. If there are still too
    few, or the cutoff is not known, all dates count.
    """
    value = [each for each in points if each.variant == "value"]
    chosen = next((some for some in _CHOICES if _count_dates(value, some) >= MIN_DATES), None)
    kept = [each for each in points if each.variant != "value" or _is_in(each, chosen)]
    factor = estimate_factor(kept)
    kept = [_rescale(each, factor) for each in kept]
    if shift := find_shift(kept, values):
        kept = replace_truths(kept, shift_values(values, shift))
    there = {each.stratum for each in kept if each.variant == "value"}
    dates = _count_dates(value, chosen)
    return VerdictBasis(
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


def estimate_factor(points: Sequence[Point]) -> float:
    """Return the factor between answers and values, judged by their typical size; 1 if unclear.

    The result is the entry of `FACTORS` nearest to the ratio of the median size of the answers to
    that of the values, if this ratio is at least `OTHER_UNIT` or at most its inverse. The order of
    the answers has no influence, so choosing a factor cannot turn a guess into memory.
    """
    answers = collect_answers(each for each in points if each.variant == "value")
    if len(answers.periods) < MIN_DATES:
        return 1.0
    said, true = (float(np.median(np.abs(each))) for each in (answers.estimate, answers.truth))
    if not (said > 0 and true > 0):
        return 1.0
    times = said / true
    if 1 / OTHER_UNIT < times < OTHER_UNIT:
        return 1.0
    return min(FACTORS, key=lambda factor: abs(np.log10(times / factor)))


def _count_dates(points: Sequence[Point], strata: frozenset[Stratum] | None) -> int:
    """Return the number of dates in some strata that have a read answer."""
    return len(
        {each.period for each in points if _is_in(each, strata) and each.estimate is not None}
    )


def _is_in(point: Point, strata: frozenset[Stratum] | None) -> bool:
    return strata is None or point.stratum in strata


def _rescale(point: Point, factor: float) -> Point:
    if factor == 1 or point.variant != "value" or point.estimate is None:
        return point
    return replace(point, estimate=point.estimate / factor)


def _say_dates(
    value: Sequence[Point], chosen: frozenset[Stratum] | None, dates: int, cutoff: date | None
) -> tuple[str, ...]:
    if cutoff is None:
        return (
            "The model's cutoff is unknown: the verdict uses all dates and treats values "
            "published after the cutoff as if the model could remember them.",
        )
    if chosen is None:
        read = _count_dates(value, _CHOICES[0])
        return (
            f"Only {read} {plural(read, 'date')} before the cutoff, {cutoff}, had a readable "
            f"answer: the verdict uses all {dates} dates that have one.",
        )
    left = _count_dates(value, None) - dates
    if not left:
        return ()
    side = "before" if len(chosen) == 1 else "after"
    return (
        f"The verdict uses the {dates} dates up to six months {side} the cutoff, {cutoff}; it "
        f"ignores {left} later {plural(left, 'date')}.",
    )


def say_shift(shift: int) -> tuple[str, ...]:
    """Return a sentence on whose values the answers match; empty if they match their own dates."""
    if not shift:
        return ()
    count, side = abs(shift), "before" if shift < 0 else "after"
    periods = f"{count} {plural(count, 'period')}"
    return (
        f"The answers are compared with the values {periods} {side} the dates asked about: they "
        "match these values better than the values on the dates themselves, so the model's "
        f"knowledge is shifted by {periods}.",
    )


def say_factor(factor: float) -> tuple[str, ...]:
    """Return a sentence on the factor between answers and the series' unit; empty if it is 1."""
    if factor == 1:
        return ()
    return (
        f"The answers are {factor:g} times the published values, as if stated in another unit, so "
        f"they were divided by {factor:g}.",
    )


OUTLIER_REACH: Final = 1.0
"""The largest distance of an answer from the known values, in multiples of their range.

Our choice: a growing series may leave its range, and so may a guess, but not by the whole range.
"""
MOST_OUTLIERS: Final = 0.05
"""The largest share of answers that may be set aside as outliers.

Our choice: if there are more, they are not errors but the way the model answers.
"""


class OutlierSplit(NamedTuple):
    """The questions on which a verdict is based, and the outliers set aside."""

    kept: list[Point]
    outliers: list[Point]


def split_outliers(points: Sequence[Point], values: SeriesValues) -> OutlierSplit:
    """Set aside answers to value questions that are far beyond all values, if there are few."""
    if not values:
        return OutlierSplit(list(points), [])
    low, high = min(values.values()), max(values.values())
    reach = OUTLIER_REACH * (high - low)
    answered = [each for each in points if each.variant == "value" and each.estimate is not None]
    strays = [
        each
        for each in answered
        if each.estimate is not None and not low - reach <= each.estimate <= high + reach
    ]
    if not reach or len(strays) > MOST_OUTLIERS * len(answered):
        return OutlierSplit(list(points), [])
    aside = {id(each) for each in strays}
    return OutlierSplit([each for each in points if id(each) not in aside], strays)


def describe_outliers(strays: Sequence[Point], answered: int) -> tuple[str, ...]:
    """Return a sentence on the answers that the verdict leaves out; empty if there are none."""
    if not strays:
        return ()
    said = list_first([f"{each.estimate:g} for {each.period}" for each in strays], 3)
    lie = plural(len(strays), "lies", "lie")
    return (
        f"{len(strays)} of {answered} answers {lie} far outside the range of the series "
        f"({said}). The verdict ignores them, but all other numbers include them.",
    )
