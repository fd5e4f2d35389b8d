"""The permutation test: alike splits, splits that are merely unlike, and no spread at all."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from coreeval.evaluation.metrics import CONSISTENCY, PERFORMANCE
from coreeval.evaluation.pcr import SCALES, Scale
from coreeval.evaluation.pcr.pairs import PairMeasures, measure_pairs
from coreeval.evaluation.pcr.ratio import SLOPES, performance_consistency_ratio
from coreeval.evaluation.pcr.replicates import permute, studentise_pcr
from coreeval.evaluation.statistics import permutation_p
from tests.evaluation.pcr.kit import pair, two_splits

Flags = NDArray[np.bool_]


def of(right: Flags, same: Flags) -> PairMeasures:
    """Return items that are right and consistent where they are told to be."""
    said = [
        ("yes" if good else "no", ("yes" if good else "no") if again else "other")
        for good, again in zip(right, same, strict=True)
    ]
    pairs = [pair("train", number, "yes", both) for number, both in enumerate(said)]
    return measure_pairs(pairs, PERFORMANCE["exact_match"], CONSISTENCY["exact"])


def p_of(items: PairMeasures, size: int, draws: int = 300, scale: Scale = "tanh") -> float:
    """Return the p-value of the first items against the others."""
    first = np.arange(len(items.rows)) < size
    alone = np.arange(len(items.rows))
    dealt = permute(items, (first, ~first), alone, draws, np.random.default_rng(5))
    with np.errstate(divide="ignore", invalid="ignore"):
        seen, drawn = (studentise_pcr(groups, alpha=0.01, scale=scale) for groups in dealt)
    return permutation_p(float(seen), drawn)


@pytest.mark.parametrize("scale", SCALES)
def test_the_slope_is_the_derivative(scale: Scale) -> None:
    at, step = np.array([0.1, 0.5, 1.5]), 1e-6
    values = [SCALES[scale](np.asarray(at + shift)) for shift in (-step, step)]
    measured_slope = (values[1] - values[0]) / (2 * step)
    assert SLOPES[scale](SCALES[scale](at)) == pytest.approx(measured_slope, rel=1e-6)


@pytest.mark.parametrize("scale", SCALES)
def test_the_standard_error_is_that_of_many_samples(scale: Scale) -> None:
    """The spread that one sample tells is the spread over many samples."""
    rng = np.random.default_rng(2)
    right, same = (rng.random((2000, 2, 200)) < 0.4), (rng.random((2000, 2, 200)) < 0.7)
    pcr = performance_consistency_ratio(right.mean(axis=2), same.mean(axis=2), scale=scale)
    expected = np.std(pcr[:, 0] - pcr[:, 1])
    items = of(right[0].ravel(), same[0].ravel())
    first = np.arange(400) < 200
    dealt = permute(items, (first, ~first), np.arange(400).astype(np.str_), 1, rng)
    error = (pcr[0, 0] - pcr[0, 1]) / float(studentise_pcr(dealt.seen, alpha=0.01, scale=scale))
    assert error == pytest.approx(expected, rel=0.15)


def test_unlike_splits_of_equal_pcr_do_not_count_as_different() -> None:
    """One split is twice as hard: plain permutation finds a fifth of them 'different'."""
    rng, small, size = np.random.default_rng(3), 0, 60
    for _ in range(200):
        right = np.concatenate([rng.random(size) < 0.20, rng.random(400) < 0.41])
        same = np.concatenate([rng.random(size) < 0.39, rng.random(400) < 0.79])
        small += p_of(of(right, same), size, draws=100) <= 0.05
    assert small / 200 < 0.12


def test_no_difference_and_no_spread_is_no_evidence() -> None:
    nothing = np.zeros(60, dtype=bool)
    assert p_of(of(nothing, ~nothing), 30) == 1


def test_splits_that_share_nothing_are_as_far_as_can_be() -> None:
    first = np.arange(60) < 30
    assert p_of(of(first, np.ones(60, dtype=bool)), 30) == 1 / 301


def test_scores_that_are_not_sums_of_items_have_a_spread_too() -> None:
    pairs = [replace(each, reference="no" if n % 2 else "yes")
             for n, each in enumerate(two_splits((80, 40, 60), (80, 40, 60)))]  # fmt: skip
    items = measure_pairs(pairs, PERFORMANCE["macro_f1"], CONSISTENCY["jaccard"])
    assert 0.01 < p_of(items, 80) <= 1
