"""Made-up paths against paths that drift as the series does."""

import numpy as np
import pytest
from numpy.typing import NDArray

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.drift import drift_null
from coreeval.evaluation.numleak.statistics.measured import Settings
from coreeval.evaluation.numleak.statistics.nulls import shuffled

Floats = NDArray[np.float64]
SETTINGS = Settings(draws=200, seed=1)
FIRST = Period.parse("1980-01", "monthly")


def slow(seed: int) -> Floats:
    rng, level = np.random.default_rng([seed, 9]), np.zeros(480)
    for at in range(1, 480):
        level[at] = 0.985 * level[at - 1] + rng.normal(0, 0.2)
    return level + 6


def p_values(values: Floats, said: Floats) -> tuple[float, float]:
    """Return p of r over drifting paths, and over answers dealt out among all dates."""
    months = [FIRST.shifted(at) for at in range(480)]
    series = dict(zip(months, values.tolist(), strict=True))
    points = [
        Point(period=month, variant="value", truth=series[month], estimate=value, status="parsed")
        for month, value in list(zip(months, said.tolist(), strict=True))[::12]
    ]
    drift = drift_null(points, series, tolerance=0.25, settings=SETTINGS)
    dealt = shuffled(points, series, tolerance=0.25, settings=SETTINGS)["any_date"]
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
    months = [FIRST.shifted(at) for at in range(480)]
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
    months = [FIRST.shifted(at) for at in range(known)]
    series = {month: float(at) for at, month in enumerate(months)}
    points = [
        Point(period=month, variant="value", truth=series[month], estimate=series[month],
              status="parsed")
        for month in months
    ]  # fmt: skip
    assert drift_null(points, series, tolerance=0.25, settings=SETTINGS) is None
