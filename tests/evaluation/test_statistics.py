"""Intervals, p-values and the smallest difference, against scipy and against known answers."""

import math
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from coreeval.evaluation import statistics
from coreeval.evaluation.scores import NO_SCORE, LabelPair, score_accuracy, score_proportion
from coreeval.evaluation.statistics import (
    Array,
    StatisticReplicates,
    adjust_benjamini_hochberg,
    bca_interval,
    bootstrap_sums,
    cluster_sums,
    detectable_difference,
    influence_of,
    leave_one_out,
    make_estimate,
    number_clusters,
    percentile_interval,
    permutation_p,
    permute_sums,
    standard_error,
)

RNG = np.random.default_rng(3)
SKEWED = RNG.exponential(size=40)
OTHER = RNG.exponential(size=25) ** 2


def mean_of(values: Array, seed: int) -> StatisticReplicates:
    """Return a mean with its replicates, from sums as PCR has them."""
    rows, n = values[:, None], len(values)
    return StatisticReplicates(
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


@pytest.mark.parametrize(
    ("ours", "theirs"), [(percentile_interval, "percentile"), (bca_interval, "BCa")]
)
def test_intervals_are_scipys(ours: object, theirs: str) -> None:
    assert callable(ours)
    assert ours(mean_of(SKEWED, 1)) == pytest.approx(scipys(theirs, SKEWED), abs=0.01)
    first, second = mean_of(SKEWED, 1), mean_of(OTHER, 2)
    both = StatisticReplicates(
        first.value - second.value,
        first.drawn - second.drawn,
        np.concatenate([first.influence, -second.influence]),
    )
    assert ours(both) == pytest.approx(scipys(theirs, SKEWED, OTHER), abs=0.04)


def test_bca_moves_the_interval_of_a_skewed_statistic() -> None:
    found = mean_of(SKEWED, 1)
    assert all(a < b for a, b in zip(percentile_interval(found), bca_interval(found), strict=True))


def test_replicates_that_all_agree() -> None:
    same = StatisticReplicates(0.5, np.full(100, 0.5), np.zeros(10))
    assert bca_interval(same) == percentile_interval(same) == (0.5, 0.5)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_an_undefined_replicate_leaves_no_interval(wrong: float) -> None:
    drawn = np.array([0.1, 0.2, wrong])
    found = make_estimate(StatisticReplicates(0.1, drawn, np.zeros(3)), "percentile")
    assert found.estimate == 0.1 and math.isnan(found.ci_low) and math.isnan(found.ci_high)
    assert math.isnan(standard_error(StatisticReplicates(0.1, drawn, np.zeros(3))))


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
    found = adjust_benjamini_hochberg([0.01, 0.04, math.nan, 0.03, 0.005])
    assert found[:2] + found[3:] == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert math.isnan(found[2])
    assert all(map(math.isnan, adjust_benjamini_hochberg([math.nan])))


def test_the_smallest_difference_is_found_in_four_studies_of_five() -> None:
    error = 0.02
    least = detectable_difference(error)
    assert least == pytest.approx(2.8016 * error, rel=1e-4)
    seen = np.random.default_rng(1).normal(least, error, size=100_000)
    found = np.abs(seen / error) > stats.norm.ppf(0.975)
    assert found.mean() == pytest.approx(0.8, abs=0.005)


EYE = np.eye(7)
"""Items whose sums are the weights themselves."""


def test_bootstrap_weights_are_multinomial() -> None:
    weights = bootstrap_sums(EYE, 40_000, np.random.default_rng(1))
    assert weights.shape == (40_000, 7)
    assert (weights.sum(axis=1) == 7).all() and (weights == weights.round()).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(7), abs=0.02)
    expected = np.eye(7) - 1 / 7  # covariance of counts: n (p on the diagonal - p p')
    assert np.cov(weights.T) == pytest.approx(expected, abs=0.03)


def test_leaving_out_one_item_at_a_time() -> None:
    rows = np.array([[1.0, 10], [2, 20], [4, 40]])
    assert leave_one_out(rows).tolist() == [[6, 60], [5, 50], [3, 30]]


def test_permutations_keep_every_item_and_the_size_of_both_groups() -> None:
    first, second = permute_sums(EYE[:3], EYE[3:], 20_000, np.random.default_rng(1))
    assert (first + second == 1).all()
    assert (first.sum(axis=1) == 3).all()
    assert first.mean(axis=0) == pytest.approx(np.full(7, 3 / 7), abs=0.02)
    assert len(np.unique(first, axis=0)) == 35  # all of 7 over 3


def test_pieces_add_up_whatever_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "PIECE", 20)
    assert bootstrap_sums(EYE, 11, np.random.default_rng(1)).shape == (11, 7)
    monkeypatch.setattr(statistics, "PIECE", 1)
    assert bootstrap_sums(EYE, 3, np.random.default_rng(1)).sum() == 21


def test_more_draws_take_no_more_memory() -> None:
    rows = np.ones((2000, 4))
    peaks = []
    for draws in (1000, 8000):
        tracemalloc.start()
        bootstrap_sums(rows, draws, np.random.default_rng(1))
        permute_sums(rows, rows, draws, np.random.default_rng(1))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    results = 7000 * 4 * 8 * 4
    assert peaks[1] < peaks[0] + results


def test_items_of_a_cluster_are_resampled_as_one() -> None:
    """Their rows are added up, cluster by cluster, and nothing is lost."""
    rows = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    found = cluster_sums(rows, ["b", "a", "b"])
    assert found.tolist() == [[0.0, 1.0], [2.0, 2.0]]
    assert cluster_sums(rows, np.array([1, 0, 1])).tolist() == found.tolist()


def test_the_name_of_a_cluster_may_be_a_whole_text() -> None:
    """One long name reserves nothing for the other names, and a trailing NUL is part of a name."""
    names = ["x" * 100_000, *(f"d{item}" for item in range(1000)), "d7", "d7\0"]
    tracemalloc.start()
    found = number_clusters(names)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
    assert found.tolist() == [sorted({*names}).index(name) for name in names]
    assert len(cluster_sums(np.ones((len(names), 1)), names)) == len(names) - 1


def _answered(right: int, n: int) -> Counter[LabelPair]:
    return Counter({("a", "a"): right, ("a", "b"): n - right})


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_accuracy_has_the_wilson_intervals_of_newcombe_1998(
    right: int, n: int, low: float, high: float
) -> None:
    score = score_accuracy(_answered(right, n))
    assert (score.estimate, score.n) == (right / n, n)
    assert score.ci_low == pytest.approx(low, abs=5e-5)
    assert score.ci_high == pytest.approx(high, abs=5e-5)


def test_one_right_answer_leaves_much_open() -> None:
    score = score_accuracy({("a", "a"): 1})
    # for one of one right the lower end is 1 / (1 + z²)
    assert score.ci_low == pytest.approx(1 / (1 + 1.959964**2), abs=1e-6)
    assert score.estimate == score.ci_high == 1.0


def test_nothing_scored_is_no_number() -> None:
    assert score_accuracy({}) == NO_SCORE
    assert score_proportion(0, 0) == NO_SCORE


def test_all_wrong_is_zero_with_an_interval() -> None:
    score = score_accuracy({("a", "b"): 6, ("b", ""): 4})
    assert (score.estimate, score.ci_low) == (0.0, 0.0)
    assert score.ci_high == pytest.approx(0.2775, abs=5e-5)
