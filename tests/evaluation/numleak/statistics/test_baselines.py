"""Exact answers beside those of one who remembers nothing."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Point
from coreeval.evaluation.numleak.statistics.baselines import find_step, measure_exactness
from coreeval.evaluation.numleak.statistics.measurements import Exactness

Floats = NDArray[np.float64]
FIRST = Period.parse("1980-01", "monthly")
ASKED = slice(24, 464, 11)
"""Forty dates."""


def slow(seed: int = 5) -> Floats:
    """Return a level that moves by about two digits a month, with one decimal."""
    return np.round(6 + np.cumsum(np.random.default_rng(seed).normal(0, 0.2, 480)), 1)


def noise(seed: int = 5) -> Floats:
    return np.round(np.random.default_rng(seed).normal(0.5, 4, 480), 2)


def counted(values: Floats, said: Floats, decimals: int) -> Exactness:
    months = [FIRST.shift(at) for at in range(len(values))]
    series: Mapping[Period, float] = dict(zip(months, values.tolist(), strict=True))
    points = [
        Point(period=month, variant="value", truth=series[month], estimate=value, status="parsed")
        for month, value in zip(months[ASKED], said[ASKED].tolist(), strict=True)
    ]
    return measure_exactness(points, series, decimals)


@pytest.mark.parametrize(("values", "decimals"), [(slow(), 1), (noise(), 2)], ids=["slow", "noise"])
def test_every_value_is_exact_whatever_its_neighbours_are(values: Floats, decimals: int) -> None:
    found = counted(values, values, decimals)
    assert found.share.estimate == 1 and found.share.ci_low > 0.5
    assert (found.shift, found.factor, found.near) == (0, 1.0, 40)
    assert found.p_value < 1e-6


def test_a_quarter_by_heart_is_told_from_guesses_that_are_far_off() -> None:
    values = noise()
    rng = np.random.default_rng(8)
    said = np.where(np.arange(480) % 4 == 0, values, rng.normal(0.5, 4, 480).round(2))
    found = counted(values, said, 2)
    assert found.share.estimate == pytest.approx(0.25, abs=0.03) and found.p_value < 1e-4


def test_who_knows_the_level_is_exact_now_and_then_and_does_not_recite() -> None:
    rejected = 0
    for seed in range(40):
        values = slow(seed)
        level = np.repeat(values.reshape(-1, 12).mean(axis=1), 12).round(1)
        found = counted(values, level, 1)
        assert found.expected > 0.2, "near answers are exact in a fifth by knowing nothing else"
        rejected += found.p_value <= 0.05
    assert rejected <= 5  # of 40 tests at 5 %, more than 5 in one of 70 times


def test_one_number_for_all_dates_is_no_memory_however_often_it_is_exact() -> None:
    values = np.where(np.arange(480) % 2 == 0, 5.0, np.round(5 + noise() / 10, 1))
    assert counted(values, np.full(480, 5.0), 1).p_value > 0.05


@pytest.mark.parametrize("lag", [-12, -3, -1, 1, 6])
@pytest.mark.parametrize(("make", "decimals"), [(slow, 1), (noise, 2)])
def test_values_of_other_dates_are_named_by_their_shift(
    lag: int, make: Callable[[int], Floats], decimals: int
) -> None:
    values = make(3)
    found = counted(values, np.roll(values, -lag), decimals)
    assert (found.shift, found.share.estimate) == (lag, 1.0) and found.p_value < 1e-4


@pytest.mark.parametrize("factor", [0.001, 0.01, 100.0, 1000.0])
def test_values_in_another_unit_are_named_by_their_factor(factor: float) -> None:
    values = noise()
    found = counted(values, values * factor, 2)
    assert (found.shift, found.factor) == (0, factor) and found.p_value < 1e-4


def test_zeros_are_the_same_in_every_unit_and_tell_no_factor() -> None:
    rng = np.random.default_rng(4)
    usual = np.tile([9.0, 7, 4, 1, 0, 0, 0, 0, 0, 1, 4, 8], 40)
    values = np.maximum(0, np.round(usual + rng.normal(0, 1.5, 480) * (usual > 0)))
    found = counted(values, usual, 0)
    assert found.factor == 1 and found.p_value > 0.05


def test_whoever_guesses_is_seldom_exact_at_any_shift() -> None:
    values = noise()
    found = [
        counted(values, np.random.default_rng([seed, 2]).normal(0.5, 4, 480).round(2), 2)
        for seed in range(60)
    ]
    assert sum(each.p_value <= 0.05 for each in found) <= 4
    assert {each.scanned for each in found} == {29}


def test_a_rate_known_only_at_the_asked_dates_is_guessed_from_its_neighbours() -> None:
    rates = np.repeat(np.random.default_rng(7).integers(1, 9, 40) / 4, 12)
    at_dates = np.arange(5, 480, 4)
    series = {FIRST.shift(int(at)): float(rates[at]) for at in at_dates}
    said = [
        Point(period=at, variant="value", truth=value, estimate=value, status="parsed")
        for at, value in series.items()
    ]
    found = measure_exactness(said, series, 2)
    assert found.expected == 1 and found.p_value == 1, "one of two neighbours has the same rate"
    assert found.scanned == 5, "no shifts"


def test_a_rate_that_moves_in_quarters_is_near_in_quarters() -> None:
    assert find_step(np.array([25.0, 50.0, 525.0, 475.0])) == 25
    assert find_step(np.array([25.0, 50.0, 525.0, 476.0])) == 1


def test_without_answers_nothing_is_counted() -> None:
    found = measure_exactness([], {}, 1)
    assert found.share.n == 0 and math.isnan(found.p_value)
