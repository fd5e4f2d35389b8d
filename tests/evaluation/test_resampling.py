"""Resampling by sums: the weights are what they should be, and memory stays bounded."""

import tracemalloc

import numpy as np
import pytest

from coreeval.evaluation import resampling
from coreeval.evaluation.resampling import (
    bootstrap_sums,
    cluster_sums,
    leave_one_out,
    permuted_sums,
)

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
    first, second = permuted_sums(EYE[:3], EYE[3:], 20_000, np.random.default_rng(1))
    assert (first + second == 1).all()
    assert (first.sum(axis=1) == 3).all()
    assert first.mean(axis=0) == pytest.approx(np.full(7, 3 / 7), abs=0.02)
    assert len(np.unique(first, axis=0)) == 35  # all of 7 over 3


def test_pieces_add_up_whatever_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "PIECE", 20)
    assert bootstrap_sums(EYE, 11, np.random.default_rng(1)).shape == (11, 7)
    monkeypatch.setattr(resampling, "PIECE", 1)
    assert bootstrap_sums(EYE, 3, np.random.default_rng(1)).sum() == 21


def test_more_draws_take_no_more_memory() -> None:
    rows = np.ones((2000, 4))
    peaks = []
    for draws in (1000, 8000):
        tracemalloc.start()
        bootstrap_sums(rows, draws, np.random.default_rng(1))
        permuted_sums(rows, rows, draws, np.random.default_rng(1))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    results = 7000 * 4 * 8 * 4
    assert peaks[1] < peaks[0] + results


def test_items_of_a_cluster_are_resampled_as_one() -> None:
    """Their rows are added up, cluster by cluster, and nothing is lost."""
    rows = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    found = cluster_sums(rows, ["b", "a", "b"])
    assert found.tolist() == [[0.0, 1.0], [2.0, 2.0]]
