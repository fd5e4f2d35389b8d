"""Intervals, p-values and the smallest difference, against scipy and against known answers."""

import math

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from coreeval.evaluation.resampling import bootstrap_sums, leave_one_out
from coreeval.evaluation.statistics import (
    Array,
    Replicated,
    adjusted,
    bca,
    detectable,
    estimate_of,
    influence_of,
    percentile,
    permutation_p,
    standard_error,
)

RNG = np.random.default_rng(3)
SKEWED = RNG.exponential(size=40)
OTHER = RNG.exponential(size=25) ** 2


def mean_of(values: Array, seed: int) -> Replicated:
    """Return a mean with its replicates, from sums as PCR has them."""
    rows, n = values[:, None], len(values)
    return Replicated(
        value=float(values.mean()),
        drawn=bootstrap_sums(rows, 50_000, np.random.default_rng(seed))[:, 0] / n,
        influence=influence_of(leave_one_out(rows)[:, 0] / (n - 1)),
    )


def scipys(method: str, *samples: Array) -> tuple[float, float]:
    """Return scipy's interval of a mean or of a difference of means."""

    def statistic(*groups: Array, axis: int) -> Array:
        means = [group.mean(axis=axis) for group in groups]
        return np.asarray(means[0] - means[1] if len(means) == 2 else means[0])

    found = stats.bootstrap(
        samples, statistic, n_resamples=40_000, method=method, batch=5000, rng=5
    ).confidence_interval
    return found.low, found.high


@pytest.mark.parametrize(("ours", "theirs"), [(percentile, "percentile"), (bca, "BCa")])
def test_intervals_are_scipys(ours: object, theirs: str) -> None:
    assert callable(ours)
    assert ours(mean_of(SKEWED, 1)) == pytest.approx(scipys(theirs, SKEWED), abs=0.01)
    first, second = mean_of(SKEWED, 1), mean_of(OTHER, 2)
    both = Replicated(
        first.value - second.value,
        first.drawn - second.drawn,
        np.concatenate([first.influence, -second.influence]),
    )
    assert ours(both) == pytest.approx(scipys(theirs, SKEWED, OTHER), abs=0.04)


def test_bca_moves_the_interval_of_a_skewed_statistic() -> None:
    found = mean_of(SKEWED, 1)
    assert all(a < b for a, b in zip(percentile(found), bca(found), strict=True))


def test_replicates_that_all_agree() -> None:
    same = Replicated(0.5, np.full(100, 0.5), np.zeros(10))
    assert bca(same) == percentile(same) == (0.5, 0.5)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_an_undefined_replicate_leaves_no_interval(wrong: float) -> None:
    drawn = np.array([0.1, 0.2, wrong])
    found = estimate_of(Replicated(0.1, drawn, np.zeros(3)), "percentile")
    assert found.estimate == 0.1 and math.isnan(found.ci_low) and math.isnan(found.ci_high)
    assert math.isnan(standard_error(Replicated(0.1, drawn, np.zeros(3))))


def test_p_needs_every_permutation_and_takes_infinite_ones() -> None:
    assert math.isnan(permutation_p(0.1, np.array([0.2, math.nan])))
    assert math.isnan(permutation_p(math.nan, np.array([0.2, 0.1])))
    assert permutation_p(math.inf, np.array([0.2, -math.inf, math.inf])) == 3 / 4


def test_p_counts_what_was_seen_and_both_sides() -> None:
    permuted = np.array([-3.0, -2, -1, 0, 1, 2, 2 + 1e-15, 3, 0.5])
    assert permutation_p(2.0, permuted) == (1 + 5) / 10
    assert permutation_p(-2.0, permuted) == (1 + 5) / 10
    assert permutation_p(9.0, permuted) == 1 / 10
    assert permutation_p(0.0, permuted) == 1


def test_benjamini_and_hochberg() -> None:
    found = adjusted([0.01, 0.04, math.nan, 0.03, 0.005])
    assert found[:2] + found[3:] == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert math.isnan(found[2])
    assert all(map(math.isnan, adjusted([math.nan])))


def test_the_smallest_difference_is_found_in_four_studies_of_five() -> None:
    error = 0.02
    least = detectable(error)
    assert least == pytest.approx(2.8016 * error, rel=1e-4)
    seen = np.random.default_rng(1).normal(least, error, size=100_000)
    found = np.abs(seen / error) > stats.norm.ppf(0.975)
    assert found.mean() == pytest.approx(0.8, abs=0.005)
