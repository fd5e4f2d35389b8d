"""Percentile intervals that are as wide as few samples need, and the p-values that belong to them.

The bootstrap is too narrow for few samples: its variance is n - 1 over n of the true one, and it
knows no tails of Student's t. The expanded percentile interval mends both (Hesterberg 2015, The
American Statistician 69, 371-386); from a few hundred samples on it is the plain one.
"""

import numpy as np

from coreeval.evaluation.scoring.answers import Floats
from coreeval.evaluation.scoring.classification import LEVEL, NOTHING, Score


def expanded(values: Floats, n: int) -> Score:
    """Return a score from its value and those of the draws; one sample gives no interval."""
    from scipy.special import ndtr, stdtrit  # type: ignore[import-untyped]  # slow to import

    if n == 0:
        return NOTHING
    if n == 1:
        return Score(estimate=float(values[0]), ci_low=None, ci_high=None, n=1)
    tail = float(ndtr(stdtrit(n - 1, (1 - LEVEL) / 2) * np.sqrt(n / (n - 1))))
    low, high = np.nanquantile(values[1:], [tail, 1 - tail])
    return Score(estimate=float(values[0]), ci_low=float(low), ci_high=float(high), n=n)


def two_sided(values: Floats, n: int) -> float | None:
    """Return the p-value of 0: one less the level of the interval that just holds it.

    One is added to the draws on either side (Phipson and Smyth 2010), so that none is 0.
    """
    from scipy.special import ndtri, stdtr

    if n < 2:
        return None
    known = values[1:][np.isfinite(values[1:])]
    beyond = min(np.count_nonzero(known <= 0), np.count_nonzero(known >= 0))
    share = (1 + beyond) / (1 + len(known))
    return float(min(1.0, 2 * stdtr(n - 1, ndtri(share) / np.sqrt(n / (n - 1)))))
