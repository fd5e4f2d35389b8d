"""How far answers to one question lie apart: memory gives one value, invention many."""

from collections.abc import Iterable

import numpy as np

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import answers_of
from coreeval.evaluation.numleak.statistics.intervals import jackknifed, share
from coreeval.evaluation.numleak.statistics.measured import Repeats
from coreeval.evaluation.numleak.statistics.metrics import near
from coreeval.evaluation.statistics import Array


def repeats(points: Iterable[Point], *, tolerance: float) -> Repeats:
    """Return the spread of repeated answers, over dates with at least two that were read."""
    answers = answers_of(points)
    counts = np.bincount(answers.date, minlength=len(answers.periods))
    again = counts > 1
    off = answers.estimate - answers.means(answers.estimate)[answers.date]
    squares = answers.per_date(off * off)[again, 0]
    apart = np.array(
        [np.ptp(answers.estimate[answers.date == each]) for each in np.flatnonzero(again)]
    )
    n = int(counts[again].sum())
    spread = jackknifed(np.stack([squares, counts[again] - 1.0], axis=1), n, _pooled)
    spread = spread._replace(ci_low=float(np.maximum(spread.ci_low, 0.0)))
    deviation = float(np.std(answers.means(answers.truth))) if answers.periods else 0.0
    return Repeats(
        dates=int(np.count_nonzero(again)),
        spread=spread,
        agreement=share(near(apart, tolerance) > 0, np.arange(len(apart))),
        relative_spread=spread.estimate / deviation if deviation > 0 else float("nan"),
    )


def _pooled(sums: Array) -> Array:
    """Return the standard deviation within dates, from squares and degrees of freedom."""
    return np.sqrt(sums[..., 0] / sums[..., 1])
