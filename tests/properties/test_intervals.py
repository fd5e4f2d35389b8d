"""Intervals have an order, hold their estimate, and do not depend on the order of items."""

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coreeval.evaluation.statistics import (
    StatisticReplicates,
    adjust_benjamini_hochberg,
    bootstrap_sums,
    ensure_width,
    influence_of,
    leave_one_out,
    make_estimate,
    permutation_p,
    wilson_interval,
)

Floats = NDArray[np.float64]
SHARES = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
SAMPLES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30).map(np.array)


def mean_of(values: Floats) -> StatisticReplicates:
    rows, n = values[:, None], len(values)
    return StatisticReplicates(
        value=float(values.mean()),
        drawn=bootstrap_sums(rows, 400, np.random.default_rng(1))[:, 0] / n,
        influence=influence_of(leave_one_out(rows)[:, 0] / (n - 1)),
    )


@given(SHARES)
def test_wilsons_interval_holds_its_share_and_is_within_0_and_1(counted: tuple[int, int]) -> None:
    k, n = counted
    low, high = wilson_interval(k / n, n)
    assert 0 <= low <= k / n + 1e-12 and k / n - 1e-12 <= high <= 1
    assert low < high


@given(SHARES)
def test_more_trials_make_it_no_wider(counted: tuple[int, int]) -> None:
    k, n = counted
    (low, high), (other_low, other_high) = wilson_interval(k / n, n), wilson_interval(k / n, 2 * n)
    assert other_high - other_low <= high - low


@given(SAMPLES)
def test_bounds_are_in_order_and_within_the_draws(values: Floats) -> None:
    found = mean_of(values)
    for way in ("percentile", "bca"):
        made = make_estimate(found, way)
        assert found.drawn.min() <= made.ci_low <= made.ci_high <= found.drawn.max()
        assert values.min() - 1e-6 <= made.estimate <= values.max() + 1e-6


@given(SAMPLES, st.sampled_from((math.nan, math.inf, -math.inf)))
def test_an_undefined_draw_leaves_no_interval(values: Floats, odd: float) -> None:
    found = mean_of(values)
    drawn = found.drawn.copy()
    drawn[0] = odd
    made = make_estimate(found._replace(drawn=drawn), "bca")
    assert math.isnan(made.ci_low) and math.isnan(made.ci_high)


@given(st.floats(0, 1), st.integers(1, 1000))
def test_an_interval_without_width_gets_one(value: float, n: int) -> None:
    low, high = ensure_width(value, value, value, n)
    assert 0 <= low <= value + 1e-12 and value - 1e-12 <= high <= 1 and low < high


@given(st.floats(-10, 10), st.lists(st.floats(-10, 10), max_size=50))
def test_a_p_value_is_above_0_and_at_most_1(value: float, permuted: list[float]) -> None:
    p = permutation_p(value, np.array(permuted))
    assert 1 / (1 + len(permuted)) <= p <= 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_adjusting_raises_p_values_and_keeps_their_order(p_values: list[float]) -> None:
    made = adjust_benjamini_hochberg(p_values)
    assert all(before <= after <= 1 for before, after in zip(p_values, made, strict=True))
    ordered = sorted(zip(p_values, made, strict=True))
    assert all(one[1] <= other[1] for one, other in pairwise(ordered))
