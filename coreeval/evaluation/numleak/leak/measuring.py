"""The numbers of signal, recall and truth, with their intervals over dates."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.leak.formulas import Spread, per_date, spread_of
from coreeval.evaluation.numleak.leak.found import Dealt, Triple
from coreeval.evaluation.numleak.leak.routes import apart
from coreeval.evaluation.numleak.statistics.answers import vary
from coreeval.evaluation.numleak.statistics.intervals import (
    FISHER,
    LINEAR,
    MIN_DATES,
    UNDEFINED,
    Scale,
    jackknifed,
)
from coreeval.evaluation.numleak.statistics.measured import Metric, Settings
from coreeval.evaluation.statistics import (
    LEVEL,
    PIECE,
    Array,
    StatisticReplicates,
    bootstrap_sums,
    influence_of,
    leave_one_out,
    make_estimate,
    permutation_p,
)

PERMUTATIONS: Final = 10_000
"""As many as in the paper (appendix L)."""
SIGNAL, RECALL, TRUTH = range(3)
"""Columns of the numbers."""
Figure = Callable[[Spread], Array]
_NOT_DEALT: Final = Dealt(np.nan, np.nan, np.nan, 0)


class Measuring:
    """The numbers of one set of dates."""

    def __init__(self, triples: Sequence[Triple], settings: Settings) -> None:
        self._dates, self._settings = len(triples), settings
        columns = np.array([each[1:] for each in triples], np.float64).reshape(-1, 3)
        self._varies = len(triples) > 2 and vary(*columns.T)
        self._rows, self._deviations = (
            per_date(triples) if self._varies else (np.empty((0, 10)), np.ones(3))
        )
        self._drawn: Array | None = None

    def r(self, figure: Figure) -> Metric:
        """Return a correlation with the jackknife's interval on Fisher's scale."""
        return self._jackknifed(figure, FISHER)

    def slope(self, figure: Figure, *, over: int) -> Metric:
        """Return a slope of the signal, in its unit for one of the column that it is on."""
        return self._jackknifed(lambda each: figure(each) * self.unit(over), LINEAR)

    def difference(self, first: Figure, second: Figure) -> Metric:
        """Return a slope on recall's column minus one on truth's."""
        one, other = self.unit(RECALL), self.unit(TRUTH)
        return self._jackknifed(lambda each: first(each) * one - second(each) * other, LINEAR)

    def unit(self, over: int) -> float:
        """Return what turns a slope of standardised numbers into one of the numbers."""
        return float(self._deviations[SIGNAL] / self._deviations[over])

    def share(self, figure: Figure, *, if_tied: Metric | None = None) -> Metric:
        """Return a share with its BCa interval; nan where the tie that it is of may be none."""
        undefined = UNDEFINED._replace(n=self._dates, dates=self._dates)
        if not self._varies or (if_tied is not None and not apart(if_tied)):
            return undefined
        value = float(figure(spread_of(self._rows.sum(axis=0))))
        if self._dates < MIN_DATES:
            return undefined._replace(estimate=value)
        left_out = figure(spread_of(leave_one_out(self._rows)))
        drawn = figure(spread_of(self._draws()))
        found = make_estimate(StatisticReplicates(value, drawn, influence_of(left_out)), "bca")
        return Metric(*found, self._dates, self._dates)

    def dealt(self) -> tuple[Dealt, Dealt]:
        """Deal the signal out among the dates: the slope on the truth, and that on recall."""
        if not self._varies:
            return _NOT_DEALT, _NOT_DEALT
        s, both = self._rows[:, 1], self._rows[:, [3, 2]]
        rng = np.random.default_rng(self._settings.seed)
        most = max(1, PIECE // self._dates)
        sizes = [min(most, PERMUTATIONS - start) for start in range(0, PERMUTATIONS, most)]
        drawn = np.concatenate(
            [rng.permuted(np.tile(s, (size, 1)), axis=1) @ both for size in sizes]
        )
        seen, n = s @ both, self._dates
        truth, recall = (
            self._deal(float(seen[at]) / n, drawn[:, at] / n, over=2 - at) for at in (0, 1)
        )
        return truth, recall

    def _deal(self, seen: float, drawn: Array, *, over: int) -> Dealt:
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) * self.unit(over)
        return Dealt(float(low), float(high), permutation_p(seen, drawn), len(drawn))

    def _jackknifed(self, figure: Figure, scale: Scale) -> Metric:
        if not self._varies:
            return UNDEFINED._replace(n=self._dates, dates=self._dates)
        return jackknifed(self._rows, self._dates, lambda sums: figure(spread_of(sums)), scale)

    def _draws(self) -> Array:
        if self._drawn is None:
            rng = np.random.default_rng(self._settings.seed)
            self._drawn = bootstrap_sums(self._rows, self._settings.draws, rng)
        return self._drawn
