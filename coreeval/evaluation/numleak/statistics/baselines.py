"""What one would score who remembers no date: a level that persists gives a high r for nothing."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import Answers, answers_of
from coreeval.evaluation.numleak.statistics.intervals import FISHER, RATIO, UNDEFINED, jackknifed
from coreeval.evaluation.numleak.statistics.measured import Baseline, BaselineName, Metric
from coreeval.evaluation.numleak.statistics.metrics import NO_SPREAD, correlation, near
from coreeval.evaluation.numleak.statistics.nulls import season
from coreeval.evaluation.statistics import Array

Values = Mapping[Period, float]
_HALF_A_YEAR: Final[dict[Frequency, int]] = {
    "daily": 120, "weekly": 26, "monthly": 6, "quarterly": 2,
}  # fmt: skip
"""A year's mean is taken from at least so many of its values: of fewer, each is half the answer."""


def baselines(
    points: Sequence[Point], values: Values, *, tolerance: float
) -> dict[BaselineName, Baseline]:
    """Return what each way of answering without memory scores on the dates that were answered.

    A mean is that of all published values, the asked one among them: what a yearbook tells.
    """
    guesses = _guesses(values) if values else {}
    compared = {name: _compare(points, guess, tolerance) for name, guess in guesses.items()}
    return {name: each for name, each in compared.items() if each is not None}


def _guesses(values: Values) -> dict[BaselineName, Values]:
    """Return each way's answers."""
    overall = float(np.mean(list(values.values())))
    guesses: dict[BaselineName, Values] = {"constant": dict.fromkeys(values, overall)}
    frequency = next(iter(values)).frequency
    ordered = sorted(values)
    guesses["previous"] = {date: values[before] for before, date in pairwise(ordered)}
    if frequency == "annual":
        return guesses
    years = _means(values, lambda date: date.start.year, _HALF_A_YEAR[frequency])
    seasons = _means(values, season, 2)
    both = years.keys() & seasons.keys()
    guesses["year"], guesses["season"] = years, seasons
    guesses["year_and_season"] = {date: years[date] + seasons[date] - overall for date in both}
    return guesses


def _means(values: Values, group: Callable[[Period], Hashable], least: int) -> Values:
    """Return for each date the mean of its group, where that has enough values."""
    sums: defaultdict[Hashable, float] = defaultdict(float)
    counts = Counter(group(date) for date in values)
    for date, value in values.items():
        sums[group(date)] += value
    kept = (date for date in values if counts[group(date)] >= least)
    return {date: sums[group(date)] / counts[group(date)] for date in kept}


def _compare(points: Sequence[Point], guess: Values, tolerance: float) -> Baseline | None:
    """Compare the model with one way of answering, on the dates for which that has an answer."""
    answers = answers_of(point for point in points if point.period in guess)
    if not answers.periods:
        return None
    guessed = np.array([guess[period] for period in answers.periods])[answers.date]
    error, other = answers.error, np.abs(guessed - answers.truth)
    hits, other_hits = near(error, tolerance), near(other, tolerance)
    sums = answers.per_date(np.ones_like(error), error, other, hits, other_hits)
    n = len(error)
    return Baseline(
        pearson_r=correlation(guessed, answers.truth),
        mae=float(other.mean()),
        within_tolerance=float(other_hits.mean()),
        partial_r=_partial(answers, guessed),
        gain=jackknifed(sums, n, _gain, RATIO),
        within_gain=jackknifed(sums, n, _within_gain),
    )


def _partial(answers: Answers, guessed: Array) -> Metric:
    columns = (answers.truth, answers.estimate, guessed)
    if len(answers.periods) < 4 or any(np.ptp(each) == 0 for each in columns):
        return UNDEFINED._replace(n=len(guessed), dates=len(answers.periods))
    x, y, z = ((each - each.mean()) / each.std() for each in columns)
    sums = answers.per_date(np.ones_like(x), x, y, z, x * x, y * y, z * z, x * y, x * z, y * z)
    return jackknifed(sums, len(x), _partial_r, FISHER)


def _partial_r(sums: Array) -> Array:
    """Return r of what is left of truths and answers; 0 where nothing is left of one of them."""
    n, x, y, z, xx, yy, zz, xy, xz, yz = np.moveaxis(sums, -1, 0)
    vx, vy, vz = xx / n - (x / n) ** 2, yy / n - (y / n) ** 2, zz / n - (z / n) ** 2
    cxy, cxz, cyz = xy / n - x * y / n**2, xz / n - x * z / n**2, yz / n - y * z / n**2
    given = np.maximum(vz, NO_SPREAD)
    left = np.maximum(vx - cxz**2 / given, 0) * np.maximum(vy - cyz**2 / given, 0)
    varies = left > NO_SPREAD
    r = (cxy - cxz * cyz / given) / np.sqrt(np.where(varies, left, 1.0))
    return np.where(varies, np.clip(r, -1, 1), 0.0)


def _gain(sums: Array) -> Array:
    """1 - MAE / MAE of the baseline; nan where the baseline makes no error."""
    wrong = sums[..., 2] > 0
    return np.where(wrong, 1 - sums[..., 1] / np.where(wrong, sums[..., 2], 1.0), np.nan)


def _within_gain(sums: Array) -> Array:
    return np.asarray((sums[..., 3] - sums[..., 4]) / sums[..., 0])
