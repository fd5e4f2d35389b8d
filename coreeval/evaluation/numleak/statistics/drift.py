"""What r would be if the answers followed a made-up path and the series were another like it.

Two paths that drift are correlated for no reason (Yule 1926), and dealing answers out among dates
destroys the drift. So the truth is drawn anew instead, with its own persistence, trend and size of
season: paths of the same spectrum with random phases (Theiler and others 1992; for a correlation:
Ebisuzaki 1997). The truth is known on all its dates, answers only on a few: its persistence is the
one that can be estimated, and whichever side is drawn anew, r means nothing if both are unrelated.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import Answers, answers_of, standard, vary
from coreeval.evaluation.numleak.statistics.measured import Null, Settings
from coreeval.evaluation.numleak.statistics.metrics import near
from coreeval.evaluation.numleak.statistics.nulls import Drawn, null_of
from coreeval.evaluation.numleak.statistics.yearbook import Values, season, season_means
from coreeval.evaluation.statistics import PIECE, Array

LEAST_VALUES: Final = 20
"""Ours: the spectrum of a shorter series is hardly known."""
MOST_PATHS: Final = 2_000
"""Paths are as long as the series, so that more would take minutes for a daily one."""


def drift_null(
    points: Sequence[Point], values: Values, *, tolerance: float, settings: Settings
) -> Null | None:
    """Return how well the answers follow series that drift as the true one does, but unrelated.

    None if the answers or truths do not vary, or fewer than `LEAST_VALUES` values are known.
    """
    answers = answers_of(point for point in points if point.period in values)
    dates = len(answers.periods)
    if dates < 3 or len(values) < LEAST_VALUES:
        return None
    said, truth = answers.means(answers.estimate), answers.means(answers.truth)
    if not vary(said, truth):
        return None
    pieces = [_scores(said, each, tolerance) for each in _paths(answers, values, settings)]
    seen = _scores(said, truth[None], tolerance)
    r, mae, within = (np.concatenate(each) for each in zip(*pieces, strict=True))
    return null_of(seen, (r, mae, within), dates, dates)


def _paths(answers: Answers, values: Values, settings: Settings) -> Iterator[Array]:
    """Yield unrelated series at the dates of the answers, shape (paths, dates)."""
    ordered = sorted(values)
    places = {period: place for place, period in enumerate(ordered)}
    asked = np.array([places[period] for period in answers.periods])
    level = np.array([values[period] for period in ordered])
    seasons, months = _season_of(values)
    rng = np.random.default_rng(settings.seed)
    left, most = min(settings.draws, MOST_PATHS), max(1, PIECE // len(level))
    while left > 0:
        size = min(left, most)
        drawn = _without_phase(level - seasons[months], size, rng)[:, asked]
        dealt = rng.permuted(np.broadcast_to(seasons, (size, len(seasons))), axis=1)
        yield drawn + dealt[:, months[asked]]
        left -= size


def _season_of(values: Values) -> tuple[Array, "np.ndarray[tuple[int], np.dtype[np.intp]]"]:
    """Return each season's distance from the mean, and which season each value is in."""
    means, ordered = season_means(values), sorted(values)
    if len(means) < len(values):
        return np.zeros(1), np.zeros(len(ordered), np.intp)
    names, months = np.unique([season(period) for period in ordered], return_inverse=True)
    level = np.array([means[period] for period in ordered])
    found = np.array([level[months == place].mean() for place in range(len(names))])
    return found - found.mean(), months.astype(np.intp)


def _without_phase(level: Array, paths: int, rng: np.random.Generator) -> Array:
    """Return paths with the spectrum of a level's steps, its trend up in half of them."""
    steps = np.diff(level)
    trend = float(steps.mean())
    size = np.abs(np.fft.rfft(steps - trend))
    phases = np.exp(2j * np.pi * rng.random((paths, len(size))))
    drawn = np.cumsum(np.fft.irfft(size * phases, len(steps), axis=1), axis=1)
    way = rng.choice((-1.0, 1.0), (paths, 1)) * trend * np.arange(len(level))
    path = np.concatenate([np.zeros((paths, 1)), drawn], axis=1) + way
    return np.asarray(path - path.mean(axis=1, keepdims=True) + level.mean())


def _scores(said: Array, truths: Array, tolerance: float) -> Drawn:
    """Return r, mean absolute error and share within tolerance of answers for each truth."""
    centred = truths - truths.mean(axis=1, keepdims=True)
    spread = np.maximum(np.std(truths, axis=1), np.finfo(np.float64).tiny)
    distance = np.abs(said - truths)
    r = (standard(said) * centred).mean(axis=1) / spread
    return np.asarray(r), distance.mean(axis=1), near(distance, tolerance).mean(axis=1)
