"""Answers that are nearer to the value of another date, always the same number of periods away."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import answers_of
from coreeval.evaluation.numleak.statistics.exactness import LAGS
from coreeval.evaluation.statistics import Array

Values = Mapping[Period, float]
RARE: Final = 0.01
"""Significance of a shift. Ours, stricter than elsewhere: a verdict's own tests follow it, and what
chose the shift must not help them."""
_EXACT: Final = 1e-9


def shift_of(points: Sequence[Point], values: Values) -> int:
    """Return by how many periods the values that were said are shifted; 0 if that is not shown.

    The shift with the least mean error, if the answers are nearer there than at their own dates:
    a sign test over dates (Dixon and Mood 1946), times the number of shifts looked at.
    """
    answers = answers_of(each for each in points if each.variant == "value")
    kept = [place for place, period in enumerate(answers.periods) if period in values]
    if not kept:
        return 0
    ordered = {period: place for place, period in enumerate(sorted(values))}
    level = np.array([values[period] for period in ordered])
    places = np.array([ordered[answers.periods[place]] for place in kept])
    said = answers.means(answers.estimate)[kept]
    errors = {lag: _error(said, level, places, lag) for lag in LAGS if lag}
    shown = {lag: error for lag, (error, p) in errors.items() if p * len(errors) <= RARE}
    return min(shown, key=lambda lag: shown[lag]) if shown else 0


def shifted(values: Values, shift: int) -> Values:
    """Return for each date the value so many periods later; of dates that have one."""
    if not shift:
        return values
    ordered = sorted(values)
    return {
        period: values[ordered[place + shift]]
        for place, period in enumerate(ordered)
        if 0 <= place + shift < len(ordered)
    }


def held_against(points: Sequence[Point], values: Values) -> list[Point]:
    """Return questions for a value beside other truths; none of a date without one."""
    return [
        replace(each, truth=values.get(each.period)) if each.variant == "value" else each
        for each in points
    ]


def _error(
    said: Array, level: Array, places: "np.ndarray[tuple[int], np.dtype[np.intp]]", lag: int
) -> tuple[float, float]:
    """Return the mean error at a shift, and the p-value that answers are nearer there."""
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
