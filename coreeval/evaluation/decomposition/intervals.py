"""Percentile intervals that are as wide as few samples need, and the p-values that belong to them.

The bootstrap is too narrow for few samples: its variance is n - 1 over n of the true one, and it
knows no tails of Student's t. The expanded percentile interval mends both (Hesterberg 2015, The
American Statistician 69, 371-386); from a few hundred samples on it is the plain one.

A loss that rests on a handful of answers, or on none, has draws that hardly differ: they know
nothing of an answer that happened not to be among so few samples. Where arms are compared the
variance of one such answer is added, 1 over n squared (docs/calibration.md: what that mends).
"""

from math import hypot, sqrt

import numpy as np

from coreeval.evaluation.scoring.answers import Floats, Resampled, mean_of_templates
from coreeval.evaluation.scoring.classification import LEVEL, NOTHING, Score
from coreeval.evaluation.statistics import with_width


def expanded(values: Floats, n: int, *, units: int | None = None, answers: int = 0) -> Score:
    """Return a score from its value and those of the draws; one sample gives no interval.

    Args:
        values: The value, then those of the draws.
        n: Number of samples.
        units: Number of clusters that they are in; None if each is its own.
        answers: How often one sample's answer counts in a difference; 0 for the score of one arm.
    """
    from scipy.special import ndtr, stdtrit  # type: ignore[import-untyped]  # slow to import

    if n == 0:
        return NOTHING
    free = (n if units is None else units) - 1
    if free < 1:
        return Score(estimate=float(values[0]), ci_low=None, ci_high=None, n=n)
    tail = float(ndtr(stdtrit(free, (1 - LEVEL) / 2) * np.sqrt((free + 1) / free)))
    low, high = map(float, np.nanquantile(values[1:], [tail, 1 - tail]))
    value, least = float(values[0]), answers / n
    if not answers:
        low, high = with_width(value, low, high, free + 1)
    else:
        low = value - hypot(max(value - low, 0.0), least)
        high = value + hypot(max(high - value, 0.0), least)
    return Score(estimate=value, ci_low=low, ci_high=high, n=n)


def difference(first: Floats, second: Floats, shared: Resampled) -> Score:
    """Return second minus first, averaged over templates; the same samples count for both."""
    gained = mean_of_templates(second, shared) - mean_of_templates(first, shared)
    return expanded(gained, shared.n, units=shared.units, answers=1)


def two_sided(
    values: Floats, n: int, *, units: int | None = None, answers: int = 0
) -> float | None:
    """Return the p-value of 0: one less the level of the interval that just holds it.

    A difference that is no larger than what one answer makes has 1.

    One is added to the draws on either side (Phipson and Smyth 2010), so that none is 0.
    """
    from scipy.special import ndtri, stdtr

    value, least = float(values[0]), answers / n if n else 0.0
    free = (n if units is None else units) - 1
    if free < 1 or not np.isfinite(value):
        return None
    if abs(value) <= least:
        return 1.0
    reached = float(np.sign(value)) * sqrt(value**2 - least**2)
    known = values[1:][np.isfinite(values[1:])] - (value - reached)
    beyond = min(np.count_nonzero(known <= 0), np.count_nonzero(known >= 0))
    share = (1 + beyond) / (1 + len(known))
    return float(min(1.0, 2 * stdtr(free, ndtri(share) / np.sqrt((free + 1) / free))))
