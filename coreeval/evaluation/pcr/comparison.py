"""Comparison of two splits: the PCR of each split, the difference, the baselines, the verdict.

A target without comparable answers also has a comparison, without numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import TypeVar

import numpy as np

from coreeval.evaluation.detectors.pcr import Basis
from coreeval.evaluation.pcr.differences import (
    Effect,
    ExcessDifference,
    PointsDifference,
    SplitDifference,
    measure_decline,
    measure_difference,
    measure_excess_difference,
    ratio_of,
    replicate_statistic,
)
from coreeval.evaluation.pcr.pairs import Counts
from coreeval.evaluation.pcr.ratio import SCALES, SLOPES
from coreeval.evaluation.pcr.references import NoReferences, compare_with_references
from coreeval.evaluation.pcr.replicates import FileReplicates, SplitReplicates
from coreeval.evaluation.pcr.verdicts import (
    Dose,
    Evidence,
    PcrOptions,
    Verdict,
    estimate_doses,
    verdict_of,
)
from coreeval.evaluation.statistics import Estimate, adjust_benjamini_hochberg, make_estimate

E = TypeVar("E", bound=Effect)


@dataclass(frozen=True, kw_only=True)
class SplitResult:
    """The scores of one split."""

    n: int
    clusters: int
    """The number of clusters resampled; n if no item has a cluster."""
    scored: int
    """The number of items with a reference."""
    unanswered: int
    """The number of items with an unanswered question."""
    statuses: tuple[Counts, Counts]
    """Status counts of the original and of the modified questions."""
    performance: float
    consistency: float
    pcr: Estimate
    decline: Estimate
    """Performance on the original items minus that on the modified ones (CAP, section 4.1)."""


@dataclass(frozen=True, kw_only=True)
class ComparisonTest:
    """The test for the verdict; its null hypothesis is that neither PCR nor performance differs."""

    basis: Basis
    p_value: float
    p_adjusted: float


@dataclass(frozen=True, kw_only=True)
class ReferenceResult:
    """The results of a model presumed clean, which gets no verdict."""

    splits: Mapping[str, SplitResult]
    difference: SplitDifference


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The comparison of the splits for one model on one benchmark."""

    splits: Mapping[str, SplitResult]
    difference: SplitDifference
    adjusted: ExcessDifference | None = None
    """The differences beyond the references; None without references."""
    exchangeable: bool = False
    """Whether the user vouches that the splits are random parts of one pool."""
    test: ComparisonTest
    doses: tuple[Dose, ...]
    verdict: Verdict
    reason: str
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _FileDifferences:
    """The differences of one file before p-values are adjusted over all files."""

    found: FileReplicates
    difference: SplitDifference
    adjusted: ExcessDifference | None
    unused: NoReferences | None = None
    """The reason why references are not used; None if they are used or there are none."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the references for readers."""
        return (f"references are not used: {self.unused.reason}",) if self.unused else ()

    @property
    def effect(self) -> Effect:
        """The differences that the verdict is based on."""
        return self.adjusted or self.difference


@dataclass(frozen=True, kw_only=True)
class _CompareOptions:
    """The settings shared by the comparisons of all files."""

    compared: tuple[str, str]
    form: PcrOptions
    references: Mapping[str, FileReplicates] = field(default_factory=dict)
    exchangeable: bool = False
    covariates: str = ""

    def basis(self, one: _FileDifferences) -> Basis:
        """Return the evidence against a gap in difficulty."""
        if one.adjusted:
            return "references"
        unlike = bool(self.covariates) or (one.unused is not None and one.unused.unlike)
        return "exchangeable_splits" if self.exchangeable and not unlike else "none"


def compare(
    files: Mapping[str, FileReplicates],
    compared: tuple[str, str],
    form: PcrOptions,
    *,
    references: Mapping[str, FileReplicates] | None = None,
    exchangeable: bool = False,
    covariates: str = "",
) -> dict[str, Comparison]:
    """Compare the two splits in each file and adjust p-values over all files.

    Args:
        files: Resampled answers by name.
        compared: The training split and the test split.
        form: How PCR is computed and interpreted.
        references: Resampled answers of models that are presumed to have seen neither split. With
            two or more, verdicts are based on differences beyond those of the references.
        exchangeable: Whether the user vouches that the splits are random parts of one pool. Without
            this and without references, the verdict cannot tell memory from a gap in difficulty.
        covariates: A clause that says how the texts of the splits differ; if given, `exchangeable`
            is ignored.
    """
    asked = _CompareOptions(
        compared=compared,
        form=form,
        references=references or {},
        exchangeable=exchangeable,
        covariates=covariates,
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # undefined stays nan, and is reported
        found = _adjust_p_values([_compare_file(each, asked) for each in files.values()])
        fair = adjust_benjamini_hochberg([one.effect.joint_p for one in found])
        return {
            name: _conclude(one, p, asked) for name, one, p in zip(files, found, fair, strict=True)
        }


def list_references(
    references: Mapping[str, FileReplicates], compared: tuple[str, str], form: PcrOptions
) -> dict[str, ReferenceResult]:
    """Return each reference's scores and the differences of its splits; p-values are unadjusted."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            name: ReferenceResult(
                splits=_splits(found, form), difference=measure_difference(found, compared, form)
            )
            for name, found in references.items()
        }


def _compare_file(found: FileReplicates, asked: _CompareOptions) -> _FileDifferences:
    difference = measure_difference(found, asked.compared, asked.form)
    if not asked.references:
        return _FileDifferences(found=found, difference=difference, adjusted=None)
    form = asked.form
    beyond = compare_with_references(
        found, asked.references, asked.compared, alpha=form.alpha, scale=form.scale
    )
    if isinstance(beyond, NoReferences):
        return _FileDifferences(found=found, difference=difference, adjusted=None, unused=beyond)
    return _FileDifferences(
        found=found, difference=difference, adjusted=measure_excess_difference(beyond)
    )


def _adjust_p_values(found: Sequence[_FileDifferences]) -> list[_FileDifferences]:
    """Adjust the p-values of each kind over all files."""
    raw = _adjust_effects([one.difference for one in found])
    own = iter(_adjust_effects([one.adjusted for one in found if one.adjusted]))
    return [
        replace(one, difference=difference, adjusted=next(own) if one.adjusted else None)
        for one, difference in zip(found, raw, strict=True)
    ]


def _adjust_effects(effects: Sequence[E]) -> list[E]:
    pcr = adjust_benjamini_hochberg([one.p_value for one in effects])
    points = adjust_benjamini_hochberg([one.points.p_value for one in effects])
    return [
        replace(one, p_adjusted=p, points=replace(one.points, p_adjusted=other))
        for one, p, other in zip(effects, pcr, points, strict=True)
    ]


# -- the verdict ----------------------------------------------------------------------------------


def _conclude(one: _FileDifferences, p_adjusted: float, asked: _CompareOptions) -> Comparison:
    splits = _splits(one.found, asked.form)
    seen = _evidence(one, splits, p_adjusted, asked)
    verdict, reason = verdict_of(seen)
    if contrary := _contrary(one.found, verdict, splits, asked):
        verdict, reason = "inconclusive", contrary
    return Comparison(
        splits=splits,
        difference=one.difference,
        adjusted=one.adjusted,
        exchangeable=asked.exchangeable,
        test=ComparisonTest(basis=seen.basis, p_value=one.effect.joint_p, p_adjusted=p_adjusted),
        doses=tuple(seen.doses),
        verdict=verdict,
        reason=reason,
        notes=(*one.found.notes, *one.notes),
    )


def _contrary(
    found: FileReplicates,
    verdict: Verdict,
    splits: Mapping[str, SplitResult],
    asked: _CompareOptions,
) -> str:
    """Return the reason why unanswered items may have caused a verdict, or "" if they did not."""
    if verdict in ("inconclusive", "insufficient_signal"):
        return ""
    others = [_verdict_if_assumed(each, asked) for each in found.extremes]
    if all(other == verdict for other in others):
        return ""
    rates = " and ".join(
        f"{each.unanswered} of {each.n} items of {name}"
        for name, each in ((name, splits[name]) for name in asked.compared)
    )
    told = " or ".join(dict.fromkeys(other.replace("_", " ") for other in others))
    return (
        f"{rates} were not answered in full, at different rates; as scored, the verdict would be "
        f"{verdict.replace('_', ' ')}, but it would be {told} if all of these items were right and "
        "consistent in one split and neither right nor consistent in the other"
    )


def _verdict_if_assumed(found: FileReplicates, asked: _CompareOptions) -> Verdict:
    one = _compare_file(found, asked)
    return verdict_of(_evidence(one, _splits(found, asked.form), one.effect.joint_p, asked))[0]


def _evidence(
    one: _FileDifferences,
    splits: Mapping[str, SplitResult],
    p_adjusted: float,
    asked: _CompareOptions,
) -> Evidence:
    first, second = (splits[name] for name in asked.compared)
    form, effect = asked.form, one.effect
    return Evidence(
        splits=asked.compared,
        scored=(first.scored, second.scored),
        clusters=(first.clusters, second.clusters),
        performance=(first.performance, second.performance),
        difference=effect.pcr,
        points=effect.points.estimate,
        p_value=p_adjusted,
        basis=asked.basis(one),
        references=len(one.adjusted.references) if one.adjusted else 0,
        covariates=asked.covariates if asked.exchangeable else "",
        doses=estimate_doses(
            (first.performance + second.performance) / 2,
            (first.consistency + second.consistency) / 2,
            (effect.points.standard_error, effect.standard_error),
            alpha=form.alpha,
            scale=form.scale,
        ),
        alpha=form.alpha,
        margin=form.near,
        slope=_slope(form, first.pcr.estimate, second.pcr.estimate),
    )


def _splits(found: FileReplicates, form: PcrOptions) -> dict[str, SplitResult]:
    return {name: _split(each, form) for name, each in found.splits.items()}


def _split(found: SplitReplicates, form: PcrOptions) -> SplitResult:
    return SplitResult(
        n=found.n,
        clusters=found.clusters,
        scored=found.scored,
        unanswered=found.unanswered,
        statuses=found.statuses,
        performance=float(found.seen.performance),
        consistency=float(found.seen.consistency),
        pcr=make_estimate(replicate_statistic(found, ratio_of(form)), form.interval),
        decline=make_estimate(replicate_statistic(found, measure_decline), form.interval),
    )


def _slope(form: PcrOptions, *pcr: float) -> float:
    """Return the steepest slope of the scale at the given values, relative to the slope at 0."""
    slope, start = SLOPES[form.scale], SCALES[form.scale](np.zeros(1))
    return float(np.max(slope(np.array(pcr)) / slope(start)))


UNDEFINED_ESTIMATE = Estimate(nan, nan, nan)


def make_empty_comparison(splits: tuple[str, str], reason: str) -> Comparison:
    """Return the comparison of a target that lacks pairs in at least one split.

    All its numbers are undefined because the score of the other split alone is not informative.
    """
    empty = SplitResult(
        n=0,
        clusters=0,
        scored=0,
        unanswered=0,
        statuses=({}, {}),
        performance=nan,
        consistency=nan,
        pcr=UNDEFINED_ESTIMATE,
        decline=UNDEFINED_ESTIMATE,
    )
    points = PointsDifference(
        estimate=UNDEFINED_ESTIMATE, p_value=nan, p_adjusted=nan, standard_error=nan, detectable=nan
    )
    return Comparison(
        splits=dict.fromkeys(splits, empty),
        difference=SplitDifference(
            pcr=UNDEFINED_ESTIMATE,
            p_value=nan,
            p_adjusted=nan,
            standard_error=nan,
            detectable=nan,
            points=points,
            joint_p=nan,
            discrepancy=UNDEFINED_ESTIMATE,
        ),
        test=ComparisonTest(basis="none", p_value=nan, p_adjusted=nan),
        doses=(),
        verdict="insufficient_signal",
        reason=reason,
        notes=(),
    )
