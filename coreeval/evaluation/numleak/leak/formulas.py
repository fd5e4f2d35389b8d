"""The formulas of an attribution: pure functions of variances, covariances and correlations."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coreeval.evaluation.numleak.leak.found import Triple
from coreeval.evaluation.numleak.statistics.answers import standard
from coreeval.evaluation.numleak.statistics.metrics import NO_SPREAD
from coreeval.evaluation.statistics import Array


def leak_share(residual_r: Array | float, signal_r: Array | float) -> Array:
    """Return equation 4: 1 - rho(u, r)^2 / rho(S, r)^2, within 0 and 1 (research: numleak, app. N).

    nan where the signal has no correlation with the truth.
    """
    of, left = np.square(signal_r), np.square(residual_r)
    return np.clip(1 - _over(left, of), 0.0, 1.0)


def worst_case(recall_r: Array | float, signal_r: Array | float) -> Array:
    """Return the factor of equation 3: min(1, |rho_recall| / |rho(S, r)|); an upper bound alone."""
    return np.minimum(1.0, _over(np.abs(recall_r), np.abs(signal_r)))


class Spread(NamedTuple):
    """Variances and covariances of signal (s), recall (h) and truth (t), of any one shape."""

    ss: Array
    hh: Array
    tt: Array
    sh: Array
    st: Array
    ht: Array

    @property
    def slope_on_truth(self) -> Array:
        """The signal's least-squares slope on the truth."""
        return _over(self.st, self.tt)

    @property
    def slope_on_recall(self) -> Array:
        """The same on recall."""
        return _over(self.sh, self.hh)

    @property
    def recall_r(self) -> Array:
        """Correlation of recall and truth."""
        return _correlation(self.ht, self.hh, self.tt)

    @property
    def signal_r(self) -> Array:
        """Correlation of signal and truth."""
        return _correlation(self.st, self.ss, self.tt)

    @property
    def signal_recall_r(self) -> Array:
        """Correlation of signal and recall."""
        return _correlation(self.sh, self.ss, self.hh)

    @property
    def residual_r(self) -> Array:
        """Correlation of the truth with what recall leaves of the signal: rho(u, r)."""
        beside = self.st - _over(self.sh * self.ht, self.hh)
        return _partial(beside, self._beside_recall, self.tt)

    @property
    def leak_share(self) -> Array:
        """Equation 4; all of it where recall leaves nothing of the signal."""
        nothing = self._beside_recall <= NO_SPREAD
        return leak_share(np.where(nothing, 0.0, self.residual_r), self.signal_r)

    @property
    def _beside_recall(self) -> Array:
        """Variance of what recall leaves of the signal."""
        return self.ss - _over(self.sh**2, self.hh)

    @property
    def ceiling(self) -> Array:
        """Equation 3, as a share."""
        return worst_case(self.recall_r, self.signal_r)

    @property
    def follows_errors(self) -> Array:
        """Partial correlation of signal and recall given the truth (Fisher 1924)."""
        return _partial(
            self.sh - _over(self.st * self.ht, self.tt),
            self.ss - _over(self.st**2, self.tt),
            self.hh - _over(self.ht**2, self.tt),
        )

    @property
    def truth_beyond(self) -> Array:
        """Partial correlation of signal and truth given recall."""
        return _partial(
            self.st - _over(self.sh * self.ht, self.hh),
            self._beside_recall,
            self.tt - _over(self.ht**2, self.hh),
        )

    @property
    def through(self) -> Array:
        """Share of the slope on the truth that runs through recall.

        The indirect effect over the total one (Baron and Kenny 1986; MacKinnon, Warsi and Dwyer
        1995): slope of recall on truth, times the signal's slope on recall beside the truth, over
        its slope on the truth alone. Not within 0 and 1 by itself: sampling error is not either.
        """
        return _over(self.ht * self.recall_beside, self.st)

    @property
    def recall_beside(self) -> Array:
        """The signal's slope on recall, beside the truth."""
        return _over(self.sh * self.tt - self.st * self.ht, self.hh * self.tt - self.ht**2)

    @property
    def truth_beside(self) -> Array:
        """The signal's slope on the truth, beside recall."""
        return _over(self.st * self.hh - self.sh * self.ht, self.hh * self.tt - self.ht**2)


def per_date(triples: Sequence[Triple]) -> tuple[Array, Array]:
    """Return a row for each date whose sums `spread_of` takes, and the deviation of each column.

    Numbers are standardised, so that rounding is the same for all units; slopes are in deviations.
    """
    columns = [np.array([each[at] for each in triples], np.float64) for at in (1, 2, 3)]
    s, h, t = (standard(each) for each in columns)
    rows = np.stack([np.ones_like(s), s, h, t, s * s, h * h, t * t, s * h, s * t, h * t], axis=1)
    return rows, np.array([float(np.std(each)) for each in columns])


def spread_of(sums: Array) -> Spread:
    """Return variances and covariances from sums over dates, shape (..., 10)."""
    n, s, h, t, ss, hh, tt, sh, st, ht = np.moveaxis(sums, -1, 0)
    s, h, t = s / n, h / n, t / n
    return Spread(
        ss / n - s * s, hh / n - h * h, tt / n - t * t, sh / n - s * h, st / n - s * t,
        ht / n - h * t,
    )  # fmt: skip


def _correlation(covariance: Array, one: Array, other: Array) -> Array:
    """Return r; 0 where one of both does not vary: that shows no association."""
    return np.where(_vary(one, other), _partial(covariance, one, other), 0.0)


def _partial(covariance: Array, one: Array, other: Array) -> Array:
    """Return r of what is left of both; nan where nothing is left of one: none can be seen."""
    varies = _vary(one, other)
    r = covariance / np.sqrt(np.where(varies, one * other, 1.0))
    return np.where(varies, np.clip(r, -1, 1), np.nan)


def _vary(one: Array, other: Array) -> Array:
    return np.asarray(np.minimum(one, other) > NO_SPREAD)


def _over(part: Array, whole: Array) -> Array:
    """Return a ratio; nan where what it is over is only rounding."""
    there = np.abs(whole) > NO_SPREAD
    return np.where(there, part / np.where(there, whole, 1.0), np.nan)
