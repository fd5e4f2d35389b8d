"""PCR of each split, the difference between two of them, the baselines, and the verdict."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from coreeval.evaluation.pcr.measured import Scores
from coreeval.evaluation.pcr.permutation import studentised
from coreeval.evaluation.pcr.ratio import (
    ALPHA,
    SCALES,
    SLOPES,
    Scale,
    performance_consistency_ratio,
)
from coreeval.evaluation.pcr.replicates import Replicates, Resampled
from coreeval.evaluation.pcr.verdicts import MARGINS, Evidence, Verdict, verdict_of
from coreeval.evaluation.statistics import (
    Array,
    Estimate,
    Interval,
    Replicated,
    adjusted,
    detectable,
    estimate_of,
    influence_of,
    permutation_p,
    standard_error,
)

Statistic = Callable[[Scores], Array]


@dataclass(frozen=True, kw_only=True)
class Form:
    """How PCR is computed and read."""

    alpha: float = ALPHA
    scale: Scale = "tanh"
    interval: Interval = "percentile"
    margin: float | None = None
    """None: the scale's own, see `MARGINS`."""

    @property
    def near(self) -> float:
        """How far from 0 a difference may be to count as none."""
        return MARGINS[self.scale] if self.margin is None else self.margin


@dataclass(frozen=True, kw_only=True)
class SplitResult:
    """What one split scores."""

    n: int
    scored: int
    """Items with a reference."""
    performance: float
    consistency: float
    pcr: Estimate
    decline: Estimate
    """Performance on the original items minus that on the modified ones (CAP, section 4.1)."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """PCR of the training split minus that of the test split."""

    pcr: Estimate
    p_value: float
    p_adjusted: float
    standard_error: float
    detectable: float
    """The smallest true difference that so many items show in four studies of five."""
    discrepancy: Estimate
    """The baseline: relative decline in training minus that in test (CAP, section 4.1)."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One model on one benchmark."""

    splits: Mapping[str, SplitResult]
    difference: Difference
    verdict: Verdict
    reason: str
    notes: tuple[str, ...]


def compare(
    files: Mapping[str, Resampled], compared: tuple[str, str], form: Form
) -> dict[str, Comparison]:
    """Compare the two splits in each file; p-values are adjusted over all of them."""
    with np.errstate(divide="ignore", invalid="ignore"):  # undefined stays nan, and is reported
        found = {name: _difference(each, compared, form) for name, each in files.items()}
        fair = adjusted([one.p_value for one in found.values()])
        return {
            name: _concluded(files[name], replace(one, p_adjusted=p), compared, form)
            for (name, one), p in zip(found.items(), fair, strict=True)
        }


def _difference(found: Resampled, compared: tuple[str, str], form: Form) -> Difference:
    first, second = (found.splits[name] for name in compared)
    pcr = _minus(_replicated(first, _ratio(form)), _replicated(second, _ratio(form)))
    lost = _minus(_replicated(first, _relative), _replicated(second, _relative))
    seen, drawn = (
        studentised(groups, alpha=form.alpha, scale=form.scale) for groups in found.dealt
    )
    p_value, error = permutation_p(float(seen), drawn), standard_error(pcr)
    return Difference(
        pcr=estimate_of(pcr, form.interval),
        p_value=p_value,
        p_adjusted=p_value,
        standard_error=error,
        detectable=detectable(error),
        discrepancy=estimate_of(lost, form.interval),
    )


def _concluded(
    found: Resampled, difference: Difference, compared: tuple[str, str], form: Form
) -> Comparison:
    splits = {name: _split(each, form) for name, each in found.splits.items()}
    first, second = (splits[name] for name in compared)
    verdict, reason = verdict_of(
        Evidence(
            splits=compared,
            scored=(first.scored, second.scored),
            performance=(first.performance, second.performance),
            difference=difference.pcr,
            p_value=difference.p_adjusted,
            detectable=difference.detectable,
            alpha=form.alpha,
            margin=form.near,
            slope=_slope(form, first.pcr.estimate, second.pcr.estimate),
        )
    )
    return Comparison(
        splits=splits, difference=difference, verdict=verdict, reason=reason, notes=found.notes
    )


def _split(found: Replicates, form: Form) -> SplitResult:
    return SplitResult(
        n=found.n,
        scored=found.scored,
        performance=float(found.seen.performance),
        consistency=float(found.seen.consistency),
        pcr=estimate_of(_replicated(found, _ratio(form)), form.interval),
        decline=estimate_of(_replicated(found, _decline), form.interval),
    )


# -- statistics of scores -------------------------------------------------------------------------


def _ratio(form: Form) -> Statistic:
    return lambda scores: performance_consistency_ratio(
        np.asarray(scores.performance), scores.consistency, alpha=form.alpha, scale=form.scale
    )


def _slope(form: Form, *pcr: float) -> float:
    """Return how steep the scale is at the steeper of some values, as a share of that at 0."""
    slope, start = SLOPES[form.scale], SCALES[form.scale](np.zeros(1))
    return float(np.max(slope(np.array(pcr)) / slope(start)))


def _decline(scores: Scores) -> Array:
    return np.asarray(scores.performance - scores.modified)


def _relative(scores: Scores) -> Array:
    """Return the decline as a share of the performance; not defined where that is 0."""
    return np.asarray(_decline(scores) / scores.performance)


def _replicated(found: Replicates, statistic: Statistic) -> Replicated:
    return Replicated(
        value=float(statistic(found.seen)),
        drawn=statistic(found.drawn),
        influence=influence_of(statistic(found.left_out)),
    )


def _minus(first: Replicated, second: Replicated) -> Replicated:
    return Replicated(
        value=first.value - second.value,
        drawn=first.drawn - second.drawn,
        influence=np.concatenate([first.influence, -second.influence]),
    )
