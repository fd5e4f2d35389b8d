"""Nulls: shuffled answers, drifting series, siblings."""

import math
from datetime import date, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Point
from coreeval.evaluation.numleak.statistics.baselines import (
    guesses_without_memory,
    score_baselines,
)
from coreeval.evaluation.numleak.statistics.measurements import AuditSettings
from coreeval.evaluation.numleak.statistics.nulls import (
    compare_siblings,
    drift_null,
    shuffle_nulls,
    sibling_null,
)
from coreeval.evaluation.statistics import Array
from tests.evaluation.numleak.statistics.kit import FEW, asked, at, month, returns

TRUTH = returns(60)
LEVEL = np.repeat(np.arange(15.0), 4) + np.tile([0.1, -0.1, 0.2, -0.2], 15)
"""Four months at each level: to know the level is not to know the month."""
NOISE = np.random.default_rng(8).normal(0, 0.3, 60)
P_LEAST = 1 / (1 + FEW.draws)


def test_recall_is_beyond_every_shuffle() -> None:
    found = shuffle_nulls(asked(TRUTH, TRUTH + NOISE), {}, tolerance=0.25, settings=FEW)
    assert list(found) == ["any_date", "same_era", "same_season"]
    for null in found.values():
        assert null.dates == null.movable == 60
        for chance in (null.pearson_r, null.mae, null.within_tolerance):
            assert chance.p_value == pytest.approx(P_LEAST)
        assert null.pearson_r.low < null.pearson_r.expected < null.pearson_r.high < 0.8


def test_a_shuffle_expects_what_all_pairs_of_dates_score() -> None:
    found = shuffle_nulls(asked(TRUTH, TRUTH + NOISE), {}, tolerance=0.25, settings=FEW)["any_date"]
    everything = np.abs(TRUTH + NOISE - TRUTH[:, None])
    assert found.mae.expected == pytest.approx(everything.mean(), rel=0.02)
    assert found.within_tolerance.expected == pytest.approx((everything <= 0.25).mean(), rel=0.15)


def test_one_who_knows_only_the_era_scores_by_chance_within_it() -> None:
    said = np.repeat(np.arange(15.0), 4) + NOISE
    found = shuffle_nulls(asked(LEVEL, said), {}, tolerance=0.25, settings=FEW)
    assert found["any_date"].pearson_r.p_value == pytest.approx(P_LEAST)
    era = found["same_era"].pearson_r
    assert era.observed > 0.99 and era.p_value > 0.05
    assert era.expected == pytest.approx(era.observed, abs=0.002)


def test_one_who_knows_only_the_season_scores_by_chance_within_it() -> None:
    seasonal = np.tile(10 * np.sin(np.arange(12) / 2), 5)
    truth = seasonal + returns(60, seed=4) / 10
    found = shuffle_nulls(asked(truth, seasonal + NOISE), {}, tolerance=0.25, settings=FEW)
    assert found["same_era"].pearson_r.p_value == pytest.approx(P_LEAST)
    assert found["same_season"].pearson_r.p_value > 0.05


def test_a_date_asked_again_is_dealt_out_once() -> None:
    twice = [each for seed in range(2) for each in asked(TRUTH, TRUTH + NOISE, seed=seed)]
    once = shuffle_nulls(asked(TRUTH, TRUTH + NOISE), {}, tolerance=0.25, settings=FEW)
    for name, null in shuffle_nulls(twice, {}, tolerance=0.25, settings=FEW).items():
        assert null.dates == 60 and null.mae == pytest.approx(once[name].mae)


def test_answers_that_never_vary_are_as_good_as_chance() -> None:
    null = shuffle_nulls(asked(TRUTH, np.ones(60)), {}, tolerance=0.25, settings=FEW)["any_date"]
    assert math.isnan(null.pearson_r.p_value)
    assert null.mae.p_value == null.within_tolerance.p_value == 1


def test_seasons_asked_about_once_can_tell_nothing() -> None:
    lone = asked(TRUTH[:12], TRUTH[:12])
    assert "same_season" not in shuffle_nulls(lone, {}, tolerance=0.25, settings=FEW)
    some = asked(TRUTH[:20], TRUTH[:20])
    null = shuffle_nulls(some, {}, tolerance=0.25, settings=FEW)["same_season"]
    assert (null.dates, null.movable) == (20, 16)


def test_years_have_no_season_and_one_date_no_shuffle() -> None:
    points = asked([1.0, 2.0], [1.0, 2.0])
    yearly = [
        type(each)(**{**vars(each), "period": at(1990 + index, "annual")})
        for index, each in enumerate(points)
    ]
    assert "same_season" not in shuffle_nulls(yearly, {}, tolerance=0.25, settings=FEW)
    assert shuffle_nulls(points[:1], {}, tolerance=0.25, settings=FEW) == {}


def test_siblings_truths_are_another_series() -> None:
    other = returns(60, seed=9)
    points = asked(TRUTH, TRUTH + NOISE)
    found = compare_siblings(points, {"smb": asked(other, other), "far": []}, tolerance=0.25)
    assert list(found) == ["smb"] and found["smb"].dates == 60
    assert abs(found["smb"].pearson_r.estimate - found["smb"].truths_r) < 0.05
    assert found["smb"].own_within_tolerance.estimate > 5 * found["smb"].within_tolerance.estimate


def test_answers_shuffled_within_a_date_tell_a_name_from_a_month() -> None:
    others = {str(seed): asked(returns(60, seed), returns(60, seed)) for seed in range(5, 9)}
    knows = sibling_null(asked(TRUTH, TRUTH + NOISE), others, tolerance=0.25, settings=FEW)
    assert knows is not None and knows.dates == 60
    assert knows.within_tolerance.p_value == pytest.approx(P_LEAST)
    assert knows.within_tolerance.expected == pytest.approx(
        knows.within_tolerance.observed / 5, abs=0.05
    )
    same = {name: asked(TRUTH, TRUTH + NOISE) for name in "ab"}
    confused = sibling_null(asked(TRUTH, TRUTH + NOISE), same, tolerance=0.25, settings=FEW)
    assert confused is not None and confused.pearson_r.p_value == 1


def test_without_a_common_date_nothing_is_shuffled_within_it() -> None:
    far = asked(TRUTH, TRUTH, months=range(100, 160))
    assert sibling_null(asked(TRUTH, TRUTH), {"far": far}, tolerance=1, settings=FEW) is None


def _year_means(values: Array) -> Array:
    return np.repeat(values.reshape(-1, 12).mean(axis=1), 12)


WALK = np.cumsum(returns(60, seed=3)) / 4
VALUES = {month(index): float(value) for index, value in enumerate(WALK)}


def test_a_year_of_a_level_reaches_a_high_r_without_memory() -> None:
    found = score_baselines(asked(WALK, _year_means(WALK)), VALUES, tolerance=0.25)["year"]
    assert found.pearson_r > 0.8
    assert found.mae == pytest.approx(np.abs(WALK - _year_means(WALK)).mean())
    assert found.gain[:3] == pytest.approx((0, 0, 0))
    assert found.within_gain.estimate == 0
    assert found.partial_r.estimate == 0


def test_memory_gains_on_every_baseline() -> None:
    found = score_baselines(asked(WALK, WALK + NOISE), VALUES, tolerance=0.25)
    assert set(found) == {"constant", "year", "season", "year_and_season", "previous"}
    assert all(each.gain.ci_low > 0.5 for each in found.values())
    assert all(found[name].partial_r.ci_low > 0.8 for name in ("year", "season", "previous"))
    assert found["previous"].gain.n == 59


def test_one_who_knows_only_the_year_scores_by_chance_within_it() -> None:
    said = asked(WALK, _year_means(WALK) + NOISE)
    found = shuffle_nulls(said, VALUES, tolerance=0.25, settings=FEW)
    assert found["any_date"].pearson_r.p_value == pytest.approx(P_LEAST)
    assert found["same_year"].pearson_r.p_value > 0.05
    known = shuffle_nulls(asked(WALK, WALK + NOISE), VALUES, tolerance=0.25, settings=FEW)
    assert known["same_year"].pearson_r.p_value == pytest.approx(P_LEAST)
    assert known["same_year"].mae.expected > 2 * known["same_year"].mae.observed


def test_the_year_with_noise_gains_nothing() -> None:
    found = score_baselines(asked(WALK, _year_means(WALK) + NOISE), VALUES, tolerance=0.25)["year"]
    assert found.gain.estimate < 0
    assert found.partial_r.ci_low < 0 < found.partial_r.ci_high


def test_too_few_values_of_a_year_make_no_mean() -> None:
    few = {month(index): float(index) for index in (0, 1, 12, 13)}
    found = score_baselines(asked([1, 2], [1, 2]), few, tolerance=0.25)
    assert "year" not in found and found["constant"].mae == pytest.approx(5)
    assert score_baselines(asked([1, 2], [1, 2]), {}, tolerance=0.25) == {}


def test_a_value_is_previous_only_if_it_is_one_period_earlier() -> None:
    gap = {at: value for at, value in VALUES.items() if at not in (month(7), month(8))}
    found = score_baselines(asked(WALK, WALK), gap, tolerance=0.25)["previous"]
    assert found.gain.n == 56, "not the first of 58, and not the one after the gap"
    friday, monday, later = (Period.parse(f"2020-03-{day:02d}", "daily") for day in (6, 9, 18))
    days = {friday: 1.0, monday: 2.0, later: 4.0, later.shift(1): 5.0}
    guessed = guesses_without_memory({**days, **{later.shift(n): 5.0 for n in range(2, 9)}})
    assert monday in guessed["previous"] and later not in guessed["previous"]


def test_the_values_of_a_few_periods_give_no_previous_ones_and_means_of_others() -> None:
    few = {at: value for place, (at, value) in enumerate(VALUES.items()) if place % 3 == 0}
    guessed = guesses_without_memory(few)
    assert set(guessed) == {"constant", "year", "season"}
    assert guessed["year"][month(0)] == pytest.approx(WALK[[3, 6, 9]].mean())
    lone = guesses_without_memory({month(at): float(at) for at in range(0, 60, 6)})
    assert not lone["year"], "one other value is no mean of a year"
    half = {at: value for place, (at, value) in enumerate(VALUES.items()) if place % 2 == 0}
    assert "year" in score_baselines(asked(WALK, WALK), half, tolerance=0.25)


@pytest.mark.parametrize(
    "dates",
    [
        [Period(date(year, 1, 1), "annual") for year in range(1900, 2020, 2)],
        [Period(date(2020, 1, 6) + timedelta(days=14 * n), "weekly") for n in range(60)],
        [month(2 * n) for n in range(60)],
        [month(2 * n) for n in range(60) if n % 9],
        [
            Period(date(2020, 1, 6) + timedelta(days=n // 3 * 7 + n % 3 * 2), "daily")
            for n in range(60)
        ],
    ],
    ids=["every other year", "every other week", "every other month", "gaps", "three days a week"],
)
def test_a_series_of_every_other_period_has_previous_values(dates: list[Period]) -> None:
    guessed = guesses_without_memory(dict(zip(dates, WALK.tolist(), strict=False)))
    assert 2 * len(guessed["previous"]) > len(dates)


Floats = NDArray[np.float64]
SETTINGS = AuditSettings(draws=200, seed=1)
FIRST = Period.parse("1980-01", "monthly")


def slow(seed: int) -> Floats:
    rng, level = np.random.default_rng([seed, 9]), np.zeros(480)
    for step in range(1, 480):
        level[step] = 0.985 * level[step - 1] + rng.normal(0, 0.2)
    return level + 6


def p_values(values: Floats, said: Floats) -> tuple[float, float]:
    """Return p of r over drifting paths, and over answers dealt out among all dates."""
    months = [FIRST.shift(at) for at in range(480)]
    series = dict(zip(months, values.tolist(), strict=True))
    points = [
        Point(period=month, variant="value", truth=series[month], estimate=value, status="parsed")
        for month, value in list(zip(months, said.tolist(), strict=True))[::12]
    ]
    drift = drift_null(points, series, tolerance=0.25, settings=SETTINGS)
    dealt = shuffle_nulls(points, series, tolerance=0.25, settings=SETTINGS)["any_date"]
    assert drift is not None
    return drift.pearson_r.p_value, dealt.pearson_r.p_value


def test_two_paths_that_drift_fool_a_permutation_and_not_drift() -> None:
    found = np.array([p_values(slow(seed), slow(seed + 500)) for seed in range(60)])
    drift, dealt = (found <= 0.05).sum(axis=0)
    assert dealt >= 9, "answers dealt out among dates call one in six of them related"
    assert drift <= 7  # of 60 tests at 5 %: more in one of 100 times


def test_who_knows_each_year_follows_the_series() -> None:
    for seed in range(10):
        values = slow(seed)
        years = np.repeat(values.reshape(-1, 12).mean(axis=1), 12)
        assert p_values(values, years)[0] <= 0.05


def test_who_knows_the_season_follows_a_seasonal_series() -> None:
    season = -20 * np.cos(2 * np.pi * np.arange(480) / 12)
    rng = np.random.default_rng(3)
    values = 50 + season + rng.normal(0, 2, 480)
    months = [FIRST.shift(at) for at in range(480)]
    series = dict(zip(months, values.tolist(), strict=True))
    points = [
        Point(period=months[at], variant="value", truth=values[at], estimate=50 + season[at],
              status="parsed")
        for at in range(0, 480, 11)
    ]  # fmt: skip
    null = drift_null(points, series, tolerance=0.25, settings=SETTINGS)
    assert null is not None and null.pearson_r.p_value <= 0.05


@pytest.mark.parametrize("known", [0, 10])
def test_of_a_series_that_is_hardly_known_nothing_is_drawn(known: int) -> None:
    months = [FIRST.shift(at) for at in range(known)]
    series = {month: float(at) for at, month in enumerate(months)}
    points = [
        Point(period=month, variant="value", truth=series[month], estimate=series[month],
              status="parsed")
        for month in months
    ]  # fmt: skip
    assert drift_null(points, series, tolerance=0.25, settings=SETTINGS) is None
