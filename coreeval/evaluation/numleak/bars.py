"""What one can score who does not remember the numbers, and what one scores who does.

A bar is a share of answers within the tolerance. It is worked out for each series, since a quarter
of a point is much for an unemployment rate and little for a stock market: from how far the truths
lie from what one expects who knows no date (the best baseline).
"""

import math
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.statistics.measured import BaselineName, Measured, Metric

WORDS: Final = 5
"""Ours: one who does not remember the numbers of dates may know in words what they were, from "fell
sharply" to "rose sharply". Five words name five numbers, and at most so many truths are within the
tolerance of one as lie in five such bands in the middle. For Mkt-RF and 25 basis points that is
0.23; NumLeak's cells that are not remembered end below (section 3: at most 0.15)."""
WORDS_GAIN: Final = 1 - 0.283
"""How much nearer they can be on average, as a share of the best baseline's error: the square root
of 0.07994, the least distortion of a normal variable in five classes (Max 1960, table I)."""
MEMORY_SPREAD: Final = 0.122
"""The errors of one who remembers in part, over the deviation of the truths: so wide, 0.37 are
within 25 basis points of Mkt-RF; NumLeak's weakest memorised cell has 0.35 (table 1, Sonnet)."""
MEMORY_GAIN: Final = 0.77
"""How much nearer that cell is: 1 - 0.765 / 3.40 (its MAE under figure 2, over the mean absolute
deviation of Mkt-RF from its mean, 1963 to 2022)."""
TELLING: Final = 0.8
"""A tolerance whose bar is higher is too wide to tell: not even 20 of 20 would clear it (Wilson's
lower end is 0.84)."""
_SD_OF_MAE: Final = math.sqrt(math.pi / 2)
"""Standard deviation over mean absolute deviation of a normal variable."""


class Bars(NamedTuple):
    """What exactness is measured against, for one series."""

    baseline: BaselineName
    """The best of those that know no single date."""
    gain: Metric
    """How much nearer the model is than it."""
    tolerance: float
    """The headline one, or the next narrower that can tell, in the unit."""
    words: float
    """So many are within it without memory: of one who knows words, or the value before."""
    memory: float
    """So many are within it of the weakest memory."""

    @property
    def telling(self) -> bool:
        """Whether the tolerance is narrow enough to tell memory from words."""
        return self.words <= TELLING


_UNKNOWN: Final = Metric(math.nan, math.nan, math.nan, 0, 0)


def bars_of(measured: Measured) -> Bars:
    """Return the bars of a series; without any baseline nothing is exact."""
    known = {
        name: each
        for name, each in measured.baselines.items()
        if name != "previous" and math.isfinite(each.mae)
    }
    if not known:
        return Bars("constant", _UNKNOWN, measured.tolerance, 1.0, 1.0)
    best = min(known, key=lambda name: known[name].mae)
    deviation = known[best].mae * _SD_OF_MAE
    narrower = sorted((each for each in measured.ladder if each < measured.tolerance), reverse=True)
    for tolerance in (measured.tolerance, *narrower):
        words = max(within(WORDS * tolerance, deviation), _before(measured, tolerance))
        memory = max(within(tolerance, MEMORY_SPREAD * deviation), words)
        bars = Bars(best, known[best].gain, tolerance, words, memory)
        if bars.telling:
            break
    return bars


def _before(measured: Measured, tolerance: float) -> float:
    """Return how many are within a tolerance of one who knows the value before."""
    before = measured.baselines.get("previous")
    if before is None or not math.isfinite(before.mae):
        return 0.0
    return within(tolerance, before.mae * _SD_OF_MAE)


def within(tolerance: float, spread: float) -> float:
    """Return the share of normal errors of a standard deviation that lie within a tolerance."""
    return math.erf(tolerance / (spread * math.sqrt(2))) if spread > 0 else 1.0
