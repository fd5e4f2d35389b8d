"""The joint signature: its numbers, what they rest on, and when they are not defined."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from coreeval.evaluation.numleak.statistics import (
    mae,
    parse_rate,
    pearson_r,
    sign_accuracy,
    signature,
    within_tolerance,
)
from coreeval.evaluation.numleak.statistics.metrics import (
    hits_of_asked,
    modal,
    r_without_one,
    sign_base_rate,
    slope,
)
from tests.evaluation.numleak.statistics.kit import FEW, asked, returns

TRUTH = returns(60)
SAID = TRUTH + np.random.default_rng(1).normal(0, 1, 60)


def test_the_numbers_are_the_usual_ones() -> None:
    points = asked(TRUTH, SAID)
    r = pearson_r(points)
    assert r.estimate == pytest.approx(stats.pearsonr(TRUTH, SAID).statistic)
    assert r.ci_low < r.estimate < r.ci_high < 1 and (r.n, r.dates) == (60, 60)
    assert mae(points, settings=FEW).estimate == pytest.approx(np.abs(TRUTH - SAID).mean())
    assert slope(points).estimate == pytest.approx(stats.linregress(TRUTH, SAID).slope)
    assert sign_accuracy(points).estimate == np.mean(np.sign(TRUTH) == np.sign(SAID))


def test_the_interval_of_r_is_near_fishers_where_that_holds() -> None:
    x = np.random.default_rng(2).normal(size=400)
    y = 0.8 * x + 0.6 * np.random.default_rng(3).normal(size=400)
    found = pearson_r(asked(x, y))
    theirs = stats.pearsonr(x, y).confidence_interval()
    assert found[1:3] == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_pooled_drawings_rest_on_dates() -> None:
    once = pearson_r(asked(TRUTH, SAID))
    pooled = pearson_r([each for seed in range(3) for each in asked(TRUTH, SAID, seed=seed)])
    assert (pooled.n, pooled.dates) == (180, 60)
    assert pooled[:3] == pytest.approx(once[:3])


def test_within_tolerance_counts_its_edge() -> None:
    """5.69 - 5.44 is more than 0.25 in floating point."""
    assert within_tolerance(asked([5.44, 1.0, 1.0], [5.69, 1.26, 0.75]), 0.25).estimate == 2 / 3


def test_sign_is_conditional_on_a_truth_that_has_one() -> None:
    found = sign_accuracy(asked([0.0, 1.0, -1.0, 2.0], [1.0, 2.0, 3.0, 0.0]))
    assert (found.estimate, found.n) == (1 / 3, 3)
    assert sign_base_rate(asked([0.0, 1.0, -1.0, 2.0], [1, 1, 1, 1])).estimate == 2 / 3


def test_refusals_count_for_the_parse_rate_and_for_hits_of_asked_only() -> None:
    found = signature(asked([1, 2, 3, 4], [1, None, 3, None]), tolerance=0.1, settings=FEW)
    assert (found.n, found.parsed, found.dates) == (4, 2, 4)
    assert found.statuses == {"parsed": 2, "refused": 2}
    assert found.parse_rate.estimate == 0.5
    assert (found.within_tolerance.estimate, found.within_tolerance.n) == (1.0, 2)
    assert hits_of_asked(asked([1, 2, 3, 4], [1, None, 3, None]), 0.1).estimate == 0.5


def test_answers_that_never_vary_have_no_r() -> None:
    points = asked(TRUTH, np.full(60, 0.5))
    found = signature(points, tolerance=0.25, settings=FEW)
    assert math.isnan(found.pearson_r.estimate) and found.pearson_r.n == 60
    assert found.mae.estimate == pytest.approx(np.abs(TRUTH - 0.5).mean())
    assert modal(points).estimate == 1
    assert slope(points).estimate == 0


def test_one_answer_that_differs_gives_an_r_that_says_nothing() -> None:
    said = np.full(60, 0.5)
    said[TRUTH.argmax()] = 20.0
    found = pearson_r(asked(TRUTH, said))
    assert found.estimate > 0.2 and found.ci_low < 0
    assert r_without_one(asked(TRUTH, said)) == 0


def test_one_month_can_carry_r() -> None:
    truth, said = [0.1, -0.2, 0.3, -0.1, 0.2, -23], [-0.3, 0.2, -0.1, 0.1, -0.2, -20]
    assert pearson_r(asked(truth, said)).estimate > 0.99
    assert r_without_one(asked(truth, said)) < -0.5


def test_perfect_recall() -> None:
    found = signature(asked(TRUTH, TRUTH), tolerance=0.25, settings=FEW)
    assert found.pearson_r[:3] == pytest.approx((1, 1, 1))
    assert found.mae[:3] == (0, 0, 0)
    assert found.within_tolerance.estimate == 1 and found.within_tolerance.ci_low < 0.95


def test_nothing_asked_and_nothing_answered() -> None:
    for points in ([], asked([1, 2], [None, None])):
        found = signature(points, tolerance=0.25, settings=FEW)
        assert found.parsed == 0
        for metric in (found.pearson_r, found.mae, found.within_tolerance, found.sign_accuracy):
            assert math.isnan(metric.estimate) and metric.n == 0


def test_fictitious_questions_are_told_apart_by_name() -> None:
    names = [asked([0], [1.0 if name == "A" else None], name=name) for name in "AB"]
    found = parse_rate([each for points in names for each in points])
    assert (found.estimate, found.n, found.dates) == (0.5, 2, 2)


@given(
    st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), max_size=12),
    st.floats(0.01, 100),
    st.integers(0, 3),
)
def test_every_number_is_possible(
    pairs: list[tuple[float, float]], tolerance: float, repeated: int
) -> None:
    months = [index // (repeated + 1) for index in range(len(pairs))]
    points = asked([x for x, _ in pairs], [y for _, y in pairs], months=months or None)
    found = signature(points, tolerance=tolerance, settings=FEW)
    for metric in (found.parse_rate, found.within_tolerance, found.sign_accuracy):
        if metric.n:
            assert 0 <= metric.ci_low <= metric.estimate <= metric.ci_high <= 1
    if not math.isnan(found.pearson_r.estimate):
        assert -1 <= found.pearson_r.estimate <= 1
    if pairs:
        assert found.mae.estimate >= 0
