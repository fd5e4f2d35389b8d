"""What one can score who does not remember the numbers, and what one scores who does.

A bar is a share of answers within the tolerance. It is worked out for each series, since a quarter
of a point is much for an unemployment rate and little for a stock market: from how far the truths
lie from what one expects who knows no date (the best baseline).
"""

import math
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.statistics.measured import BaselineName, Measured, Metric

WORDS_SPREAD: Final = 0.283
"""The errors of one who knows of each date only which of five words it was ("fell sharply" to "rose
sharply"), over the deviation of the truths: the square root of 0.07994, the least distortion of a
normal variable in five classes (Max 1960, table I). For Mkt-RF and 25 basis points it gives 0.15,
which is where NumLeak's factors that are not remembered end (section 3: at most 0.15)."""
MEMORY_SPREAD: Final = 0.122
"""The same of one who remembers in part: errors so wide have 0.35 within 25 basis points of Mkt-RF,
NumLeak's weakest cell that it calls memorised (table 1, Sonnet 4.6)."""
WORDS_GAIN: Final = 1 - WORDS_SPREAD
"""How much nearer the first is than the best baseline, as a share of the baseline's error."""
MEMORY_GAIN: Final = 0.77
"""The same of NumLeak's weakest memorised cell: 1 - 0.77 / 3.4 (figure 2: MAE 0.765 points; the
mean absolute deviation of Mkt-RF, 1963-2022, is 3.4)."""
TELLING: Final = 0.8
"""A tolerance whose bar is higher is too wide to tell: not even 20 of 20 would clear it (Wilson's
lower end is 0.84)."""
MOST_DATES: Final = 2000
"""Ours: more than most series have."""
_ROUNDING: Final = 1e-6
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
        words = max(within(tolerance, WORDS_SPREAD * deviation), _before(measured, tolerance))
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


def dates_to_settle(found: Metric, bar: float) -> int | None:
    """Return how many more dates would bring an interval off a bar, were the estimate to stay.

    Its width falls with the square root of the dates. None where it cannot be said.
    """
    gap = abs(found.estimate - bar)
    half = max(found.ci_high - found.estimate, found.estimate - found.ci_low)
    if not (gap > 0 and math.isfinite(half)):
        return None
    more = math.ceil(found.dates * ((half / gap) ** 2 - 1) - _ROUNDING)
    return max(1, more) if more <= MOST_DATES else None
