"""Covariates: whether groups of texts differ in ways that can make one group harder.

A model may lose on a group of texts because it remembers the others, or because the group is
harder. This module checks the second from the texts alone. Texts that are alike here may still
differ in difficulty: a verdict of memory requires that texts are alike, but that is not enough.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from coreeval.errors import UsageError
from coreeval.evaluation.scores import LEVEL, Score
from coreeval.evaluation.statistics import SIGNIFICANCE, adjust_holm, number_clusters
from coreeval.evaluation.text_measures import Floats, Ints, TextMeasures, measure_texts
from coreeval.schema import Value
from coreeval.tools.formatting import format_estimate, format_quantity

MATTERS: Final = 0.25
"""The difference in standard deviations from which groups are too different to trust an adjustment:
What Works Clearinghouse, Procedures and Standards Handbook 5.0 (2022), on baseline equivalence;
also Ho, Imai, King and Stuart (2007), Political Analysis 15, 199-236."""
MOST: Final = 2000
"""With this many samples, a difference is known to about 0.03 standard deviations (own choice)."""
UNITS: Final[Mapping[str, str]] = {
    "words": "words",
    "characters": "characters",
    "oddness": "bits per character under a neutral model",
    "rare_words": "% of words that occur in no other cluster of samples",
    "numbers": "% of words with a digit",
    "capitals": "% of words with a capital",
    "grade": "school years of readability",
    "no_label": "% of answers without a label",
}
"""The unit of each covariate's mean, as shown to a reader."""


class CovariateDifference(Value):
    """The difference of groups of texts in one covariate."""

    covariate: str
    means: dict[str, float]
    """The mean of each group, in the unit from `UNITS`."""
    difference: Score
    """The sum of the means, each times the weight of its group, in the same unit; `n` is the number
    of samples, of all groups if they are not paired."""
    effect: float
    """The difference in standard deviations of the texts, pooled over the groups (Cohen's d)."""
    p_value: float
    """The two-sided p-value for the hypothesis of no difference (Student's t, with clusters as
    units)."""
    p_adjusted: float
    """The p-value adjusted over all covariates together (Holm 1979)."""
    differs: bool
    """Whether p_adjusted is at most 0.05 and the effect at least 0.25 standard deviations."""


class CovariateCheck(Value):
    """The differences of groups of texts in all covariates."""

    weights: dict[str, int]
    """The weight of each group in a difference."""
    covariates: tuple[CovariateDifference, ...]
    """All covariates except those that are equal in all texts."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return one sentence per covariate in which the groups differ, largest effect first."""
        found = [each for each in self.covariates if each.differs]
        found.sort(key=lambda each: -abs(each.effect))
        return tuple(describe_difference(each, self.weights) for each in found)


def compare_covariates(
    first: Sequence[str],
    second: Sequence[str],
    *,
    paired: bool,
    names: tuple[str, str] = ("first", "second"),
    clusters: Sequence[str] | None = None,
) -> CovariateCheck:
    """Compare the covariates of two groups of texts.

    Args:
        first: Texts of one group.
        second: Texts of the other; if `paired`, of the same samples in the same order.
        paired: Whether the groups have the same samples.
        names: Names of the groups in sentences.
        clusters: The cluster of each sample; if not paired, the second group's clusters after the
            first group's. None if each sample is its own cluster.

    Raises:
        UsageError: paired groups differ in size, or a group has fewer than two texts.
    """
    weights = {names[0]: 1, names[1]: -1}
    _refuse_few(names, [len(first), len(second)])
    if paired:
        if len(first) != len(second):
            raise UsageError(
                f"groups of {len(first)} and {len(second)} texts cannot be paired",
                hint="both groups need one text for each sample, in the same order",
            )
        measured = measure_texts(dict(zip(names, (first, second), strict=True)), clusters)
        return compare_measures(measured, weights, clusters=clusters)
    cut, every = len(first), measure_texts({"": [*first, *second]}, clusters)[""]
    units = _numbers(clusters, cut + len(second))
    parts = {
        key: dict(zip(names, np.split(each, [cut]), strict=True)) for key, each in every.items()
    }
    return _check(
        (_compare_unpaired(key, both, weights, units) for key, both in parts.items()), weights
    )


def describe_unlike_splits(splits: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """Describe how the texts of two splits differ, as a clause; return "" if they are alike.

    Only the first 2,000 texts of each split are compared. The result is also empty if a split has
    texts of fewer than two clusters.

    Args:
        splits: The text and the cluster of each sample, by split.
    """
    (first, one), (second, other) = ((name, each[:MOST]) for name, each in splits.items())
    if any(len({cluster for _, cluster in each}) < 2 for each in (one, other)):
        return ""
    found = compare_covariates(
        [text for text, _ in one],
        [text for text, _ in other],
        paired=False,
        names=(first, second),
        clusters=[cluster for _, cluster in (*one, *other)],
    )
    return f"they differ in {'; '.join(found.sentences)}" if found.sentences else ""


def compare_measures(
    measured: TextMeasures, weights: Mapping[str, int], *, clusters: Sequence[str] | None = None
) -> CovariateCheck:
    """Compare the measures of texts of the same samples in several groups.

    Args:
        measured: The result of `measure_texts`, with the samples of each group in the same order.
        weights: The weight of each group: `{"control": 1, "updated": -1}` is a difference,
            `{"original": 1, "semantic": -2, "control": 1}` a difference of differences.
        clusters: The cluster of each sample; None if each sample is its own cluster.
    """
    columns = {
        key: {name: measured[name][key] for name in weights}
        for key in next(iter(measured.values()))
    }
    units = _numbers(clusters, len(measured[next(iter(weights))]["words"]))
    return _check(
        (compare_values(key, each, weights, units) for key, each in columns.items()), weights
    )


def compare_values(
    covariate: str, values: Mapping[str, Floats], weights: Mapping[str, int], units: Ints
) -> CovariateDifference:
    """Compare one value of the same samples in several groups.

    Args:
        covariate: The name of the value, a key of `UNITS`.
        values: By group, one value per sample, in the same order.
        weights: The weight of each group.
        units: The number of each sample's cluster.
    """
    each = np.sum([weight * values[name] for name, weight in weights.items()], axis=0)
    return _difference(covariate, values, weights, (each - each.mean()) / len(each), units)


def _compare_unpaired(
    covariate: str, values: Mapping[str, Floats], weights: Mapping[str, int], units: Ints
) -> CovariateDifference:
    pulls = [weights[name] * (own - own.mean()) / len(own) for name, own in values.items()]
    return _difference(covariate, values, weights, np.concatenate(pulls), units)


def _difference(
    covariate: str,
    values: Mapping[str, Floats],
    weights: Mapping[str, int],
    pulls: Floats,
    units: Ints,
) -> CovariateDifference:
    """Return a difference of means with its interval, from each sample's influence on it.

    The variance is the sum of the squared influences of the clusters, times C / (C - 1) for C
    clusters (Liang and Zeger 1986, Biometrika 73, 13-22).
    """
    from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]  # slow to import

    means = {name: float(own.mean()) for name, own in values.items()}
    estimate = sum(weight * means[name] for name, weight in weights.items())
    count = len(np.unique(units))
    sums = np.bincount(units, pulls)
    error = float(np.sqrt((sums**2).sum() * count / max(1, count - 1)))
    within = float(np.sqrt(np.mean([own.var() for own in values.values()])))
    spread = within or float(np.concatenate([*values.values()]).std())
    half = float(stdtrit(max(1, count - 1), (1 + LEVEL) / 2)) * error
    p = (
        2 * float(stdtr(max(1, count - 1), -abs(estimate) / error))
        if error
        else float(not estimate)
    )
    return CovariateDifference(
        covariate=covariate,
        means=means,
        difference=Score(
            estimate=estimate, ci_low=estimate - half, ci_high=estimate + half, n=len(pulls)
        ),
        effect=estimate / spread if spread else 0.0,
        p_value=p,
        p_adjusted=p,
        differs=False,
    )


def _check(found: Iterable[CovariateDifference], weights: Mapping[str, int]) -> CovariateCheck:
    """Adjust p-values over all covariates and mark the covariates that differ."""
    some = [each for each in found if each.effect]
    fair = adjust_holm([each.p_value for each in some])
    return CovariateCheck(
        weights=dict(weights),
        covariates=tuple(
            each.model_copy(
                update={
                    "p_adjusted": p,
                    "differs": p <= SIGNIFICANCE and abs(each.effect) >= MATTERS,
                }
            )
            for each, p in zip(some, fair, strict=True)
        ),
    )


def describe_difference(found: CovariateDifference, weights: Mapping[str, int]) -> str:
    """Describe a difference in plain words, with the unit of each mean and difference."""
    unit, of = UNITS[found.covariate], found.difference
    means = ", ".join(f"{found.means[name]:.3g} ({name})" for name in weights)
    if set(weights.values()) == {1, -1}:
        return f"{unit}: {means}; difference {format_estimate(of, '+.3g')}"
    signs = " ".join(f"{weight:+d} {name}" for name, weight in weights.items())
    return f"{unit}: {means}; {signs} is {format_estimate(of, '+.3g')}"


def _refuse_few(names: Sequence[str], sizes: Sequence[int]) -> None:
    for name, size in zip(names, sizes, strict=True):
        if size < 2:
            raise UsageError(
                f"the group {name!r} has {format_quantity(size, 'text')}",
                hint="each group needs at least two texts",
            )


def _numbers(clusters: Sequence[str] | None, n: int) -> Ints:
    """Number the clusters from 0 and return the number of each sample's cluster."""
    if clusters is None:
        return np.arange(n)
    return number_clusters(clusters)
