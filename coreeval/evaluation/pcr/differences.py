"""Differences between two splits in PCR and performance, with and without references.

Memory raises performance on remembered items. It may raise consistency (a memorised answer is
stable) or lower it (if only the original's wording is known), and a stable answer raises PCR only
if performance is below consistency. So both are tested together, the sign is that of performance,
and PCR counts only if it has the same sign.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from coreeval.evaluation.excess import Excess
from coreeval.evaluation.pcr.pairs import PairScores
from coreeval.evaluation.pcr.ratio import performance_consistency_ratio
from coreeval.evaluation.pcr.references import Method, ReferenceExcess
from coreeval.evaluation.pcr.replicates import (
    FileReplicates,
    SplitReplicates,
    studentise_pcr,
    studentise_performance,
)
from coreeval.evaluation.pcr.verdicts import PcrOptions
from coreeval.evaluation.statistics import (
    Array,
    Estimate,
    StatisticReplicates,
    detectable_difference,
    influence_of,
    make_estimate,
    permutation_p,
    standard_error,
)

Statistic = Callable[[PairScores], Array]


@dataclass(frozen=True, kw_only=True)
class PointsDifference:
    """A difference in performance, in points (hundredths)."""

    estimate: Estimate
    p_value: float
    p_adjusted: float
    """The p-value adjusted for all models compared together (Benjamini and Hochberg 1995)."""
    standard_error: float
    detectable: float
    """Smallest true difference that four of five studies of this size would show."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The training split's PCR and performance minus those of the test split."""

    pcr: Estimate
    p_value: float
    p_adjusted: float
    standard_error: float
    detectable: float
    """Smallest true difference that four of five studies of this size would show."""
    points: PointsDifference
    joint_p: float
    """The p-value of the null hypothesis that neither PCR nor performance differs."""


@dataclass(frozen=True, kw_only=True)
class SplitDifference(Effect):
    """The observed differences, without references."""

    discrepancy: Estimate
    """The baseline: relative decline in training minus that in test (CAP, section 4.1)."""


@dataclass(frozen=True, kw_only=True)
class ExcessDifference(Effect):
    """The differences beyond those expected from the references."""

    references: tuple[str, ...]
    shared: Mapping[str, int]
    """The number of items of each split that the target and all references answered."""
    method: Method


def measure_difference(
    found: FileReplicates, compared: tuple[str, str], form: PcrOptions
) -> SplitDifference:
    """Return the differences between two splits; p-values are not adjusted for other models."""
    first, second = (found.splits[name] for name in compared)

    def minus(statistic: Statistic) -> StatisticReplicates:
        return _minus(replicate_statistic(first, statistic), replicate_statistic(second, statistic))

    pcr, points, lost = minus(ratio_of(form)), minus(_points), minus(_relative)
    by_pcr, by_points = (
        tuple(each(groups) for groups in found.deal())
        for each in (
            lambda groups: studentise_pcr(groups, alpha=form.alpha, scale=form.scale),
            studentise_performance,
        )
    )
    p_value, error = permutation_p(float(by_pcr[0]), by_pcr[1]), standard_error(pcr)
    return SplitDifference(
        pcr=make_estimate(pcr, form.interval),
        p_value=p_value,
        p_adjusted=p_value,
        standard_error=error,
        detectable=detectable_difference(error),
        points=_make_points(
            make_estimate(points, form.interval),
            permutation_p(float(by_points[0]), by_points[1]),
            standard_error(points),
        ),
        joint_p=joint_p_value((float(by_points[0]), float(by_pcr[0])), (by_points[1], by_pcr[1])),
        discrepancy=make_estimate(lost, form.interval),
    )


def measure_excess_difference(beyond: ReferenceExcess) -> ExcessDifference:
    """Return the differences beyond the references; p-values are not adjusted for other models."""
    pcr, points = beyond.pcr, beyond.points
    return ExcessDifference(
        pcr=pcr.estimate,
        p_value=pcr.p_value,
        p_adjusted=pcr.p_value,
        standard_error=pcr.standard_error,
        detectable=detectable_difference(pcr.standard_error),
        points=_make_points(points.estimate, points.p_value, points.standard_error),
        joint_p=_joint_p_of_excess(points, pcr),
        references=beyond.references,
        shared=beyond.shared,
        method=beyond.method,
    )


def _make_points(estimate: Estimate, p_value: float, error: float) -> PointsDifference:
    return PointsDifference(
        estimate=estimate,
        p_value=p_value,
        p_adjusted=p_value,
        standard_error=error,
        detectable=detectable_difference(error),
    )


def _joint_p_of_excess(points: Excess, pcr: Excess) -> float:
    if np.isnan([points.p_value, pcr.p_value]).any():
        return float("nan")
    if not points.p_value:  # no spread
        return 0.0
    return joint_p_value((points.z, pcr.z), (points.drawn, pcr.drawn))


def joint_p_value(seen: tuple[float, float], drawn: tuple[Array, Array]) -> float:
    """Return the p-value of the larger of two statistics; PCR counts only if it agrees in sign.

    The maximum of several statistics has its own distribution over draws (Westfall and Young 1993,
    section 2.3), so their correlation costs no power.

    Args:
        seen: Studentised differences of performance and of PCR.
        drawn: The same statistics in permutations without a difference.
    """
    return permutation_p(float(_larger(*map(np.asarray, seen))), _larger(*drawn))


def _larger(points: Array, pcr: Array) -> Array:
    return np.maximum(np.abs(points), np.sign(points) * pcr)


# -- statistics of scores -------------------------------------------------------------------------


def ratio_of(form: PcrOptions) -> Statistic:
    """Return a function that computes PCR from scores."""
    return lambda scores: performance_consistency_ratio(
        np.asarray(scores.performance), scores.consistency, alpha=form.alpha, scale=form.scale
    )


def measure_decline(scores: PairScores) -> Array:
    """Return performance on the originals minus performance on the modified items."""
    return np.asarray(scores.performance - scores.modified)


def replicate_statistic(found: SplitReplicates, statistic: Statistic) -> StatisticReplicates:
    """Return a statistic of a split together with its replicates."""
    return StatisticReplicates(
        value=float(statistic(found.seen)),
        drawn=statistic(found.drawn),
        influence=influence_of(statistic(found.left_out)),
    )


def _points(scores: PairScores) -> Array:
    return np.asarray(100 * scores.performance)


def _relative(scores: PairScores) -> Array:
    """Return the decline as a share of the performance; undefined if the performance is 0."""
    return np.asarray(measure_decline(scores) / scores.performance)


def _minus(first: StatisticReplicates, second: StatisticReplicates) -> StatisticReplicates:
    return StatisticReplicates(
        value=first.value - second.value,
        drawn=first.drawn - second.drawn,
        influence=np.concatenate([first.influence, -second.influence]),
    )
