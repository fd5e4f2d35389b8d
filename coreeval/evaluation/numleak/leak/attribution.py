"""Attribution of a signal: correlations with recall and truth over dates, shares and verdict.

The formulas are pure functions of variances, covariances and correlations; each number has an
interval over dates.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from coreeval.evaluation.numleak.leak.mediation import (
    OWN_SIGNAL,
    Attribution,
    DateTriple,
    MediationEvidence,
    SlopePermutation,
    find_route,
    is_nonzero,
)
from coreeval.evaluation.numleak.statistics.date_intervals import (
    FISHER,
    LINEAR,
    MIN_DATES,
    UNDEFINED,
    IntervalScale,
    all_vary,
    jackknife,
    standardise,
)
from coreeval.evaluation.numleak.statistics.measurements import AuditSettings, Metric
from coreeval.evaluation.numleak.statistics.metrics import NO_SPREAD
from coreeval.evaluation.statistics import (
    Array,
    StatisticReplicates,
    bootstrap_sums,
    influence_of,
    leave_one_out,
    make_estimate,
    middle_range,
    permutation_p,
    split_draws,
)


def leak_share(residual_r: Array | float, signal_r: Array | float) -> Array:
    """Return equation 4: 1 - rho(u, r)^2 / rho(S, r)^2, clipped to 0-1 (research: numleak, app. N).

    nan if the signal has no correlation with the truth.
    """
    of, left = np.square(signal_r), np.square(residual_r)
    return np.clip(1 - _over(left, of), 0.0, 1.0)


def worst_case(recall_r: Array | float, signal_r: Array | float) -> Array:
    """Return the factor of equation 3, an upper bound: min(1, |rho_recall| / |rho(S, r)|)."""
    return np.minimum(1.0, _over(np.abs(recall_r), np.abs(signal_r)))


class Covariances(NamedTuple):
    """Variances and covariances of signal (s), recall (h) and truth (t), as arrays of one shape."""

    ss: Array
    hh: Array
    tt: Array
    sh: Array
    st: Array
    ht: Array

    @property
    def slope_on_truth(self) -> Array:
        """The signal's least-squares slope on true values."""
        return _over(self.st, self.tt)

    @property
    def slope_on_recall(self) -> Array:
        """The signal's least-squares slope on recall."""
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
        """Correlation of the truth with the signal's residual on recall: rho(u, r)."""
        beside = self.st - _over(self.sh * self.ht, self.hh)
        return _partial(beside, self._beside_recall, self.tt)

    @property
    def leak_share(self) -> Array:
        """Equation 4; 1 if recall explains the whole signal."""
        nothing = self._beside_recall <= NO_SPREAD
        return leak_share(np.where(nothing, 0.0, self.residual_r), self.signal_r)

    @property
    def _beside_recall(self) -> Array:
        """The variance of the signal's residual on recall."""
        return self.ss - _over(self.sh**2, self.hh)

    @property
    def ceiling(self) -> Array:
        """The upper bound of equation 3, as a share."""
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
        """The share of the slope on true values that recall mediates.

        The indirect effect divided by the total effect (Baron and Kenny 1986; MacKinnon, Warsi and
        Dwyer 1995): the slope of recall on the truth, times the signal's slope on recall given the
        truth, divided by its slope on true values alone. The share is not clipped to 0-1, because
        sampling error is not bounded either.
        """
        return _over(self.ht * self.recall_beside, self.st)

    @property
    def recall_beside(self) -> Array:
        """The signal's slope on recall, controlling for the truth."""
        return _over(self.sh * self.tt - self.st * self.ht, self.hh * self.tt - self.ht**2)

    @property
    def truth_beside(self) -> Array:
        """The signal's slope on true values, controlling for recall."""
        return _over(self.st * self.hh - self.sh * self.ht, self.hh * self.tt - self.ht**2)


def sum_dates(triples: Sequence[DateTriple]) -> tuple[Array, Array]:
    """Return one row of sums per date for `compute_covariances`, and each column's deviation.

    Numbers are standardised, so rounding does not depend on the unit; slopes are in deviations.
    """
    columns = [np.array([each[at] for each in triples], np.float64) for at in (1, 2, 3)]
    s, h, t = (standardise(each) for each in columns)
    rows = np.stack([np.ones_like(s), s, h, t, s * s, h * h, t * t, s * h, s * t, h * t], axis=1)
    return rows, np.array([float(np.std(each)) for each in columns])


def compute_covariances(sums: Array) -> Covariances:
    """Return variances and covariances from sums over dates, shape (..., 10)."""
    n, s, h, t, ss, hh, tt, sh, st, ht = np.moveaxis(sums, -1, 0)
    s, h, t = s / n, h / n, t / n
    return Covariances(
        ss / n - s * s, hh / n - h * h, tt / n - t * t, sh / n - s * h, st / n - s * t,
        ht / n - h * t,
    )  # fmt: skip


def _correlation(covariance: Array, one: Array, other: Array) -> Array:
    """Return r; 0 if either variable does not vary, because that shows no association."""
    return np.where(_vary(one, other), _partial(covariance, one, other), 0.0)


def _partial(covariance: Array, one: Array, other: Array) -> Array:
    """Return r of both residuals; nan if either has no variance left, which leaves r undefined."""
    varies = _vary(one, other)
    r = covariance / np.sqrt(np.where(varies, one * other, 1.0))
    return np.where(varies, np.clip(r, -1, 1), np.nan)


def _vary(one: Array, other: Array) -> Array:
    return np.asarray(np.minimum(one, other) > NO_SPREAD)


def _over(part: Array, whole: Array) -> Array:
    """Return a ratio; nan if the denominator is only rounding error."""
    there = np.abs(whole) > NO_SPREAD
    return np.where(there, part / np.where(there, whole, 1.0), np.nan)


PERMUTATIONS: Final = 10_000
"""The number of permutations, as in the paper (appendix L)."""
SIGNAL, RECALL, TRUTH = range(3)
"""Column indices of the three numbers of a date."""
CovarianceStatistic = Callable[[Covariances], Array]
_NO_PERMUTATION: Final = SlopePermutation(np.nan, np.nan, np.nan, 0)


class SignalMeasures:
    """The measurements of one set of dates."""

    def __init__(self, triples: Sequence[DateTriple], settings: AuditSettings) -> None:
        self._dates, self._settings = len(triples), settings
        columns = np.array([each[1:] for each in triples], np.float64).reshape(-1, 3)
        self._varies = len(triples) > 2 and all_vary(*columns.T)
        self._rows, self._deviations = (
            sum_dates(triples) if self._varies else (np.empty((0, 10)), np.ones(3))
        )
        self._drawn: Array | None = None

    def r(self, figure: CovarianceStatistic) -> Metric:
        """Return a correlation with the jackknife's interval on Fisher's scale."""
        return self._jackknife(figure, FISHER)

    def slope(self, figure: CovarianceStatistic, *, over: int) -> Metric:
        """Return a slope in units of the signal per unit of the column that it is regressed on."""
        return self._jackknife(lambda each: figure(each) * self.unit(over), LINEAR)

    def difference(self, first: CovarianceStatistic, second: CovarianceStatistic) -> Metric:
        """Return a slope on recall minus a slope on true values."""
        one, other = self.unit(RECALL), self.unit(TRUTH)
        return self._jackknife(lambda each: first(each) * one - second(each) * other, LINEAR)

    def unit(self, over: int) -> float:
        """Return the factor that converts a standardised slope to original units."""
        return float(self._deviations[SIGNAL] / self._deviations[over])

    def share(self, figure: CovarianceStatistic, *, if_tied: Metric | None = None) -> Metric:
        """Return a share with its BCa interval; nan if the correlation `if_tied` may be zero."""
        undefined = UNDEFINED._replace(n=self._dates, dates=self._dates)
        if not self._varies or (if_tied is not None and not is_nonzero(if_tied)):
            return undefined
        value = float(figure(compute_covariances(self._rows.sum(axis=0))))
        if self._dates < MIN_DATES:
            return undefined._replace(estimate=value)
        left_out = figure(compute_covariances(leave_one_out(self._rows)))
        drawn = figure(compute_covariances(self._draws()))
        found = make_estimate(StatisticReplicates(value, drawn, influence_of(left_out)), "bca")
        return Metric(*found, self._dates, self._dates)

    def permute(self) -> tuple[SlopePermutation, SlopePermutation]:
        """Permute the signal over the dates; return the results for the two slopes, truth first."""
        if not self._varies:
            return _NO_PERMUTATION, _NO_PERMUTATION
        s, both = self._rows[:, 1], self._rows[:, [3, 2]]
        rng = np.random.default_rng(self._settings.seed)
        sizes = split_draws(PERMUTATIONS, self._dates)
        drawn = np.concatenate(
            [rng.permuted(np.tile(s, (size, 1)), axis=1) @ both for size in sizes]
        )
        seen, n = s @ both, self._dates
        truth, recall = (
            self._permute_slope(float(seen[at]) / n, drawn[:, at] / n, over=2 - at) for at in (0, 1)
        )
        return truth, recall

    def _permute_slope(self, seen: float, drawn: Array, *, over: int) -> SlopePermutation:
        low, high = (end * self.unit(over) for end in middle_range(drawn))
        return SlopePermutation(low, high, permutation_p(seen, drawn), len(drawn))

    def _jackknife(self, figure: CovarianceStatistic, scale: IntervalScale) -> Metric:
        if not self._varies:
            return UNDEFINED._replace(n=self._dates, dates=self._dates)
        return jackknife(
            self._rows, self._dates, lambda sums: figure(compute_covariances(sums)), scale
        )

    def _draws(self) -> Array:
        if self._drawn is None:
            rng = np.random.default_rng(self._settings.seed)
            self._drawn = bootstrap_sums(self._rows, self._settings.draws, rng)
        return self._drawn


DATE_ALONE: Final = (
    "The model was given only a date: any knowledge of the outcome in its score comes from "
    "memory, either of the value or of texts about that date."
)


def attribute(
    signal: str, triples: Sequence[DateTriple], settings: AuditSettings, notes: Sequence[str] = ()
) -> Attribution:
    """Attribute a signal: slopes, correlations, shares and their intervals over dates.

    Args:
        signal: The name of the signal.
        triples: The numbers of each date.
        settings: Draws of the bootstrap and the seed; permutations are always 10,000.
        notes: Notes on the dates from earlier steps.
    """
    found = SignalMeasures(triples, settings)
    ties = collect_evidence(found)
    route, reasons = find_route(ties)
    if signal == OWN_SIGNAL and is_nonzero(ties.signal_r):
        reasons = (*reasons, DATE_ALONE)
    dealt_truth, dealt_recall = found.permute()
    return Attribution(
        signal=signal,
        dates=len(triples),
        slope_on_truth=found.slope(lambda each: each.slope_on_truth, over=TRUTH),
        slope_on_recall=found.slope(lambda each: each.slope_on_recall, over=RECALL),
        dealt_truth=dealt_truth,
        dealt_recall=dealt_recall,
        **ties._asdict(),
        residual_r=found.r(lambda each: each.residual_r),
        leak_share=found.share(lambda each: each.leak_share, if_tied=ties.signal_r),
        ceiling=found.share(lambda each: each.ceiling),
        route=route,
        reasons=reasons,
        notes=tuple(notes),
        points=tuple(triples),
    )


def collect_evidence(found: SignalMeasures) -> MediationEvidence:
    """Return the evidence on which the verdict is based."""
    signal_r = found.r(lambda each: each.signal_r)
    return MediationEvidence(
        recall_r=found.r(lambda each: each.recall_r),
        signal_r=signal_r,
        signal_recall_r=found.r(lambda each: each.signal_recall_r),
        follows_errors=found.r(lambda each: each.follows_errors),
        truth_beyond=found.r(lambda each: each.truth_beyond),
        through=found.share(lambda each: each.through, if_tied=signal_r),
    )
