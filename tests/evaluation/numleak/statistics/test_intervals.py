"""Intervals against published examples, closed forms, and answers that go together."""

import math

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from coreeval.evaluation.numleak.statistics.intervals import (
    FISHER,
    MIN_DATES,
    RATIO,
    UNDEFINED,
    Scale,
    difference,
    jackknifed,
    mean_interval,
    share,
)
from coreeval.evaluation.numleak.statistics.measured import Metric, Settings
from coreeval.evaluation.statistics import Array, wilson_interval

MANY = Settings(draws=20_000)
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
    first = share([True] * 56 + [False] * 14, np.arange(70))
    second = share([True] * 48 + [False] * 32, np.arange(80))
    found = difference(first, second)
    assert found[:3] == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert found.n == 150


def test_answers_to_one_question_count_once() -> None:
    hits = RNG.random(30) < 0.5
    single = share(hits, np.arange(30))
    thrice = share(np.tile(hits, 3), np.tile(np.arange(30), 3))
    assert (thrice.n, thrice.dates) == (90, 30)
    assert thrice[:3] == pytest.approx(single[:3], abs=0.005)


def test_unlike_answers_to_one_question_are_never_worth_more_than_their_number() -> None:
    opposed = share([True, False] * 20, np.repeat(np.arange(20), 2))
    assert opposed[1:3] == pytest.approx(wilson_interval(0.5, 40))


def test_where_all_answers_agree_questions_are_counted() -> None:
    assert share([True] * 90, np.tile(np.arange(30), 3))[1:3] == wilson_interval(1.0, 30)
    assert share([False] * 4, np.zeros(4, np.intp))[1:3] == wilson_interval(0.0, 1)


def test_no_answer_has_no_share() -> None:
    assert share([], np.array([], np.intp)) == pytest.approx(UNDEFINED, nan_ok=True)


def _mean(sums: Array) -> Array:
    return np.asarray(sums[..., 1] / sums[..., 0])


def test_the_jackknife_of_a_mean_is_students_interval() -> None:
    values = RNG.normal(size=12)
    found = jackknifed(np.stack([np.ones(12), values], axis=1), 12, _mean)
    theirs = stats.t.interval(0.95, 11, values.mean(), stats.sem(values))
    assert found[1:3] == pytest.approx(theirs)


@pytest.mark.parametrize("scale", [FISHER, RATIO])
def test_one_miss_among_perfect_answers_is_a_small_doubt(scale: Scale) -> None:
    values = np.ones(20)
    values[3] = 0.98
    found = jackknifed(np.stack([np.ones(20), values], axis=1), 20, _mean, scale)
    assert 0.99 < found.ci_low < found.estimate == pytest.approx(0.999)


def test_too_few_dates_have_a_value_and_no_interval() -> None:
    rows = np.ones((MIN_DATES - 1, 2))
    found = jackknifed(rows, 9, _mean)
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
    found = difference(known, Metric(0.2, math.nan, math.nan, 2, 2))
    assert found.estimate == pytest.approx(0.3) and math.isnan(found.ci_low)
