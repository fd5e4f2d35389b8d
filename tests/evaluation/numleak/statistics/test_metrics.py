"""The joint signature and its intervals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from coreeval.evaluation.numleak.statistics import pearson_r, signature
from coreeval.evaluation.numleak.statistics.date_intervals import (
    FISHER,
    MIN_DATES,
    RATIO,
    UNDEFINED,
    IntervalScale,
    difference_interval,
    jackknife,
    mean_interval,
    share_interval,
)
from coreeval.evaluation.numleak.statistics.measurements import AuditSettings, Metric
from coreeval.evaluation.numleak.statistics.metrics import (
    hits_of_asked,
    modal_share,
    parse_rate,
    r_without_one,
    sign_base_rate,
    slope,
    within_tolerance,
)
from coreeval.evaluation.statistics import Array, wilson_interval
from tests.evaluation.numleak.statistics.kit import FEW, asked, returns

TRUTH = returns(60)
SAID = TRUTH + np.random.default_rng(1).normal(0, 1, 60)


def test_the_numbers_are_the_usual_ones() -> None:
    points = asked(TRUTH, SAID)
    found, r = signature(points, tolerance=0.25, settings=FEW), pearson_r(points)
    assert r.estimate == pytest.approx(stats.pearsonr(TRUTH, SAID).statistic)
    assert r.ci_low < r.estimate < r.ci_high < 1 and (r.n, r.dates) == (60, 60)
    assert found.mae.estimate == pytest.approx(np.abs(TRUTH - SAID).mean())
    assert slope(points).estimate == pytest.approx(stats.linregress(TRUTH, SAID).slope)
    assert found.sign_accuracy.estimate == np.mean(np.sign(TRUTH) == np.sign(SAID))


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
    points = asked([0.0, 1.0, -1.0, 2.0], [1.0, 2.0, 3.0, 0.0])
    found = signature(points, tolerance=0.25, settings=FEW).sign_accuracy
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
    assert modal_share(points).estimate == 1
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


MANY = AuditSettings(draws=20_000)
RNG = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("right", "n", "low", "high"), [(0, 180, 0.0, 0.0209), (295, 300, 0.9616, 0.9929)]
)
def test_wilson_is_scipys_and_numleaks(right: int, n: int, low: float, high: float) -> None:
    """NumLeak, table 14, prints [0.000, 0.020] and [0.962, 0.992]: the ends cut, not rounded."""
    found = wilson_interval(right / n, n)
    theirs = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert found == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert found == pytest.approx((low, high), abs=1e-4)


def test_newcombes_own_example() -> None:
    """Newcombe (1998), table II, example (a): 56/70 against 48/80, method 10."""
    first = share_interval([True] * 56 + [False] * 14, np.arange(70))
    second = share_interval([True] * 48 + [False] * 32, np.arange(80))
    found = difference_interval(first, second)
    assert found[:3] == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert found.n == 150


def test_answers_to_one_question_count_once() -> None:
    hits = RNG.random(30) < 0.5
    single = share_interval(hits, np.arange(30))
    thrice = share_interval(np.tile(hits, 3), np.tile(np.arange(30), 3))
    assert (thrice.n, thrice.dates) == (90, 30)
    assert thrice[:3] == pytest.approx(single[:3], abs=0.005)


def test_unlike_answers_to_one_question_are_never_worth_more_than_their_number() -> None:
    opposed = share_interval([True, False] * 20, np.repeat(np.arange(20), 2))
    assert opposed[1:3] == pytest.approx(wilson_interval(0.5, 40))


def test_where_all_answers_agree_questions_are_counted() -> None:
    assert share_interval([True] * 90, np.tile(np.arange(30), 3))[1:3] == wilson_interval(1.0, 30)
    assert share_interval([False] * 4, np.zeros(4, np.intp))[1:3] == wilson_interval(0.0, 1)


def test_no_answer_has_no_share() -> None:
    assert share_interval([], np.array([], np.intp)) == pytest.approx(UNDEFINED, nan_ok=True)


def _mean(sums: Array) -> Array:
    return np.asarray(sums[..., 1] / sums[..., 0])


def test_the_jackknife_of_a_mean_is_students_interval() -> None:
    values = RNG.normal(size=12)
    found = jackknife(np.stack([np.ones(12), values], axis=1), 12, _mean)
    theirs = stats.t.interval(0.95, 11, values.mean(), stats.sem(values))
    assert found[1:3] == pytest.approx(theirs)


@pytest.mark.parametrize("scale", [FISHER, RATIO])
def test_one_miss_among_perfect_answers_is_a_small_doubt(scale: IntervalScale) -> None:
    values = np.ones(20)
    values[3] = 0.98
    found = jackknife(np.stack([np.ones(20), values], axis=1), 20, _mean, scale)
    assert 0.99 < found.ci_low < found.estimate == pytest.approx(0.999)


def test_too_few_dates_have_a_value_and_no_interval() -> None:
    rows = np.ones((MIN_DATES - 1, 2))
    found = jackknife(rows, 9, _mean)
    assert found.estimate == 1 and math.isnan(found.ci_low) and found.n == 9
    mean = mean_interval(rows[:, 0], rows[:, 1], MANY)
    assert mean.estimate == 1 and math.isnan(mean.ci_high)


def test_a_mean_of_normal_numbers_has_about_students_interval() -> None:
    values = RNG.normal(10, 1, size=60)
    found = mean_interval(values, np.ones(60), MANY)
    theirs = stats.t.interval(0.95, 59, values.mean(), stats.sem(values))
    assert found[1:3] == pytest.approx(theirs, abs=0.03)


def test_a_skewed_mean_reaches_further_up() -> None:
    values = RNG.exponential(size=40) ** 2
    found = mean_interval(values, np.ones(40), MANY)
    assert found.ci_high - found.estimate > 1.5 * (found.estimate - found.ci_low)


def test_repeated_errors_do_not_narrow_a_mean() -> None:
    values = RNG.exponential(size=40)
    once, thrice = (mean_interval(values * k, np.full(40, k), MANY) for k in (1.0, 3.0))
    assert thrice.n == 120 and thrice[:3] == pytest.approx(once[:3])


def test_draws_without_spread_fall_back_and_no_error_is_no_width() -> None:
    rare = mean_interval(np.eye(20)[0], np.ones(20), MANY)
    assert rare.ci_low == 0 and 0.05 < rare.ci_high < 0.25
    assert mean_interval(np.zeros(20), np.ones(20), MANY)[:3] == (0, 0, 0)


def test_a_difference_with_an_unknown_interval_has_none() -> None:
    known = Metric(0.5, 0.4, 0.6, 10, 10)
    found = difference_interval(known, Metric(0.2, math.nan, math.nan, 2, 2))
    assert found.estimate == pytest.approx(0.3) and math.isnan(found.ci_low)
