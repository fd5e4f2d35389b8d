"""Shuffles, siblings and baselines: who knows no date scores by chance, whatever else is known."""

import math

import numpy as np
import pytest

from coreeval.evaluation.numleak.statistics.baselines import baselines
from coreeval.evaluation.numleak.statistics.nulls import shuffled
from coreeval.evaluation.numleak.statistics.siblings import cross_series, within_date
from coreeval.evaluation.statistics import Array
from tests.evaluation.numleak.statistics.kit import FEW, asked, at, month, returns

TRUTH = returns(60)
LEVEL = np.repeat(np.arange(15.0), 4) + np.tile([0.1, -0.1, 0.2, -0.2], 15)
"""Four months at each level: to know the level is not to know the month."""
NOISE = np.random.default_rng(8).normal(0, 0.3, 60)
P_LEAST = 1 / (1 + FEW.draws)


def test_recall_is_beyond_every_shuffle() -> None:
    found = shuffled(asked(TRUTH, TRUTH + NOISE), {}, tolerance=0.25, settings=FEW)
    assert list(found) == ["any_date", "same_era", "same_season"]
    for null in found.values():
        assert null.dates == null.movable == 60
        for chance in (null.pearson_r, null.mae, null.within_tolerance):
            assert chance.p_value == pytest.approx(P_LEAST)
        assert null.pearson_r.low < null.pearson_r.expected < null.pearson_r.high < 0.8


def test_a_shuffle_expects_what_all_pairs_of_dates_score() -> None:
    found = shuffled(asked(TRUTH, TRUTH + NOISE), {}, tolerance=0.25, settings=FEW)["any_date"]
    everything = np.abs(TRUTH + NOISE - TRUTH[:, None])
    assert found.mae.expected == pytest.approx(everything.mean(), rel=0.02)
    assert found.within_tolerance.expected == pytest.approx((everything <= 0.25).mean(), rel=0.15)


def test_one_who_knows_only_the_era_scores_by_chance_within_it() -> None:
    said = np.repeat(np.arange(15.0), 4) + NOISE
    found = shuffled(asked(LEVEL, said), {}, tolerance=0.25, settings=FEW)
    assert found["any_date"].pearson_r.p_value == pytest.approx(P_LEAST)
    era = found["same_era"].pearson_r
    assert era.observed > 0.99 and era.p_value > 0.05
    assert era.expected == pytest.approx(era.observed, abs=0.002)


def test_one_who_knows_only_the_season_scores_by_chance_within_it() -> None:
    seasonal = np.tile(10 * np.sin(np.arange(12) / 2), 5)
    truth = seasonal + returns(60, seed=4) / 10
    found = shuffled(asked(truth, seasonal + NOISE), {}, tolerance=0.25, settings=FEW)
    assert found["same_era"].pearson_r.p_value == pytest.approx(P_LEAST)
    assert found["same_season"].pearson_r.p_value > 0.05


def test_a_date_asked_again_is_dealt_out_once() -> None:
    twice = [each for seed in range(2) for each in asked(TRUTH, TRUTH + NOISE, seed=seed)]
    once = shuffled(asked(TRUTH, TRUTH + NOISE), {}, tolerance=0.25, settings=FEW)
    for name, null in shuffled(twice, {}, tolerance=0.25, settings=FEW).items():
        assert null.dates == 60 and null.mae == pytest.approx(once[name].mae)


def test_answers_that_never_vary_are_as_good_as_chance() -> None:
    null = shuffled(asked(TRUTH, np.ones(60)), {}, tolerance=0.25, settings=FEW)["any_date"]
    assert math.isnan(null.pearson_r.p_value)
    assert null.mae.p_value == null.within_tolerance.p_value == 1


def test_seasons_asked_about_once_can_tell_nothing() -> None:
    lone = asked(TRUTH[:12], TRUTH[:12])
    assert "same_season" not in shuffled(lone, {}, tolerance=0.25, settings=FEW)
    some = asked(TRUTH[:20], TRUTH[:20])
    null = shuffled(some, {}, tolerance=0.25, settings=FEW)["same_season"]
    assert (null.dates, null.movable) == (20, 16)


def test_years_have_no_season_and_one_date_no_shuffle() -> None:
    points = asked([1.0, 2.0], [1.0, 2.0])
    yearly = [
        type(each)(**{**vars(each), "period": at(1990 + index, "annual")})
        for index, each in enumerate(points)
    ]
    assert "same_season" not in shuffled(yearly, {}, tolerance=0.25, settings=FEW)
    assert shuffled(points[:1], {}, tolerance=0.25, settings=FEW) == {}


def test_siblings_truths_are_another_series() -> None:
    other = returns(60, seed=9)
    points = asked(TRUTH, TRUTH + NOISE)
    found = cross_series(points, {"smb": asked(other, other), "far": []}, tolerance=0.25)
    assert list(found) == ["smb"] and found["smb"].dates == 60
    assert abs(found["smb"].pearson_r.estimate - found["smb"].truths_r) < 0.05
    assert found["smb"].own_within_tolerance.estimate > 5 * found["smb"].within_tolerance.estimate


def test_answers_shuffled_within_a_date_tell_a_name_from_a_month() -> None:
    others = {str(seed): asked(returns(60, seed), returns(60, seed)) for seed in range(5, 9)}
    knows = within_date(asked(TRUTH, TRUTH + NOISE), others, tolerance=0.25, settings=FEW)
    assert knows is not None and knows.dates == 60
    assert knows.within_tolerance.p_value == pytest.approx(P_LEAST)
    assert knows.within_tolerance.expected == pytest.approx(
        knows.within_tolerance.observed / 5, abs=0.05
    )
    same = {name: asked(TRUTH, TRUTH + NOISE) for name in "ab"}
    confused = within_date(asked(TRUTH, TRUTH + NOISE), same, tolerance=0.25, settings=FEW)
    assert confused is not None and confused.pearson_r.p_value == 1


def test_without_a_common_date_nothing_is_shuffled_within_it() -> None:
    far = asked(TRUTH, TRUTH, months=range(100, 160))
    assert within_date(asked(TRUTH, TRUTH), {"far": far}, tolerance=1, settings=FEW) is None


def _year_means(values: Array) -> Array:
    return np.repeat(values.reshape(-1, 12).mean(axis=1), 12)


WALK = np.cumsum(returns(60, seed=3)) / 4
VALUES = {month(index): float(value) for index, value in enumerate(WALK)}


def test_a_year_of_a_level_reaches_a_high_r_without_memory() -> None:
    found = baselines(asked(WALK, _year_means(WALK)), VALUES, tolerance=0.25)["year"]
    assert found.pearson_r > 0.8
    assert found.mae == pytest.approx(np.abs(WALK - _year_means(WALK)).mean())
    assert found.gain[:3] == pytest.approx((0, 0, 0))
    assert found.within_gain.estimate == 0
    assert found.partial_r.estimate == 0


def test_memory_gains_on_every_baseline() -> None:
    found = baselines(asked(WALK, WALK + NOISE), VALUES, tolerance=0.25)
    assert set(found) == {"constant", "year", "season", "year_and_season", "previous"}
    assert all(each.gain.ci_low > 0.5 for each in found.values())
    assert all(found[name].partial_r.ci_low > 0.8 for name in ("year", "season", "previous"))
    assert found["previous"].gain.n == 59


def test_one_who_knows_only_the_year_scores_by_chance_within_it() -> None:
    said = asked(WALK, _year_means(WALK) + NOISE)
    found = shuffled(said, VALUES, tolerance=0.25, settings=FEW)
    assert found["any_date"].pearson_r.p_value == pytest.approx(P_LEAST)
    assert found["same_year"].pearson_r.p_value > 0.05
    known = shuffled(asked(WALK, WALK + NOISE), VALUES, tolerance=0.25, settings=FEW)
    assert known["same_year"].pearson_r.p_value == pytest.approx(P_LEAST)
    assert known["same_year"].mae.expected > 2 * known["same_year"].mae.observed


def test_the_year_with_noise_gains_nothing() -> None:
    found = baselines(asked(WALK, _year_means(WALK) + NOISE), VALUES, tolerance=0.25)["year"]
    assert found.gain.estimate < 0
    assert found.partial_r.ci_low < 0 < found.partial_r.ci_high


def test_too_few_values_of_a_year_make_no_mean() -> None:
    few = {month(index): float(index) for index in (0, 1, 2, 12, 13, 14)}
    found = baselines(asked([1, 2], [1, 2]), few, tolerance=0.25)
    assert "year" not in found and found["constant"].mae == pytest.approx(5.5)
    assert baselines(asked([1, 2], [1, 2]), {}, tolerance=0.25) == {}
