"""What one would score who remembers no date: a level that persists gives a high r for nothing."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import Answers, answers_of, standard, vary
from coreeval.evaluation.numleak.statistics.intervals import FISHER, RATIO, UNDEFINED, jackknifed
from coreeval.evaluation.numleak.statistics.measured import Baseline, BaselineName, Metric
from coreeval.evaluation.numleak.statistics.metrics import NO_SPREAD, correlation, near
from coreeval.evaluation.numleak.statistics.yearbook import Values, season_means, year_means
from coreeval.evaluation.statistics import Array


def baselines(
    points: Sequence[Point], values: Values, *, tolerance: float
) -> dict[BaselineName, Baseline]:
    """Return what each way of answering without memory scores on the dates that were answered.

    A mean is that of all published values, the asked one among them: what a yearbook tells.
    """
    guesses = guesses_without_memory(values) if values else {}
    compared = {name: _compare(points, guess, tolerance) for name, guess in guesses.items()}
    return {name: each for name, each in compared.items() if each is not None}


def guesses_without_memory(values: Values) -> dict[BaselineName, Values]:
    """Return what each way of answering without memory says of the dates that it knows."""
    overall = float(np.mean(list(values.values())))
    ordered = sorted(values)
    years, seasons = year_means(values), season_means(values)
    return {
        "constant": dict.fromkeys(values, overall),
        "year": years,
        "season": seasons,
        "year_and_season": {
            date: years[date] + seasons[date] - overall for date in years.keys() & seasons.keys()
        },
        "previous": {date: values[before] for before, date in pairwise(ordered)},
    }


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
    if len(answers.periods) < 4 or not vary(*columns):
        return UNDEFINED._replace(n=len(guessed), dates=len(answers.periods))
    x, y, z = map(standard, columns)
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
