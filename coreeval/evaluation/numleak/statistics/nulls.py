"""Null distributions: the numbers if answers were unrelated to their dates.

Shuffled: the answers are permuted among dates, or among the series of a family on one date.

Drift: two drifting paths are correlated for no reason (Yule 1926), and a permutation of answers
among dates destroys the drift. So new truths are drawn instead, with the same persistence, trend
and size of season: paths of the same spectrum with random phases (Theiler and others 1992; for a
correlation: Ebisuzaki 1997). The truth is known on all dates, answers only on a few, so only the
persistence of the truth can be estimated; either side may be drawn, because r has no meaning if
both are unrelated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Point
from coreeval.evaluation.numleak.statistics.baselines import (
    SeriesValues,
    find_season,
    season_means,
    year_means,
)
from coreeval.evaluation.numleak.statistics.date_intervals import (
    Answers,
    Indices,
    all_vary,
    collect_answers,
    standardise,
)
from coreeval.evaluation.numleak.statistics.measurements import (
    AuditSettings,
    Chance,
    CrossSeries,
    Null,
    NullName,
)
from coreeval.evaluation.numleak.statistics.metrics import (
    correlation,
    mark_near,
    pearson_r,
    within_tolerance,
)
from coreeval.evaluation.statistics import Array, middle_range, split_draws

ERA_DATES: Final = 4
"""The number of consecutive asked dates that are shuffled among themselves.

This is the score of a model that knows roughly when values were high. Our choice: two would be
closer in time, but less informative.
"""
_EXACT: Final = 1e-9
NullDraws = tuple[Array, Array, Array]
"""Correlation, mean absolute error and share within tolerance, for each draw or for one each."""


def shuffle_nulls(
    points: Sequence[Point], values: SeriesValues, *, tolerance: float, settings: AuditSettings
) -> dict[NullName, Null]:
    """Permute the truths among all dates, among those of one era, and among those of one season.

    If the years' means are known, also permute the truths' differences from them: this is the score
    of a model that knows each year but nothing within it (Freedman and Lane 1983). A null in which
    most dates are alone is left out, because it is not informative.
    """
    answers = collect_answers(points)
    if len(answers.periods) < 2:
        return {}
    table = _PermutationTable(answers, tolerance)
    nulls: dict[NullName, Null] = {
        "any_date": table.null(_everywhere(answers), settings),
        "same_era": table.null(_eras(answers), settings),
    }
    if answers.periods[0].frequency != "annual":
        seasons = np.array([find_season(each) for each in answers.periods], np.intp)
        nulls["same_season"] = table.null(seasons, settings)
    within = _residuals(points, year_means(values))
    if len(within.periods) > 1:
        nulls["same_year"] = _PermutationTable(within, tolerance).null(
            _everywhere(within), settings
        )
    return {name: null for name, null in nulls.items() if 2 * null.movable >= null.dates}


def _residuals(points: Sequence[Point], level: SeriesValues) -> Answers:
    """Return answers and truths minus a level, for the dates whose level is known."""
    answers = collect_answers(point for point in points if point.period in level)
    due = np.array([level[period] for period in answers.periods])[answers.date]
    return answers._replace(estimate=answers.estimate - due, truth=answers.truth - due)


def _everywhere(answers: Answers) -> Indices:
    return np.zeros(len(answers.periods), np.intp)


def _eras(answers: Answers) -> Indices:
    dates = len(answers.periods)
    return np.minimum(np.arange(dates) // ERA_DATES, max(0, dates // ERA_DATES - 1))


class _PermutationTable:
    """The score of each date's answers for each date's truth, as a table for permutations."""

    def __init__(self, answers: Answers, tolerance: float) -> None:
        truth = answers.means(answers.truth)
        said = answers.means(answers.estimate)
        distance = np.abs(answers.estimate[:, None] - truth)
        counts = np.bincount(answers.date)[:, None]
        self._product = standardise(said)[:, None] * standardise(truth)
        self._error = answers.per_date(*distance.T) / counts
        self._near = answers.per_date(*mark_near(distance, tolerance).T) / counts

    def null(self, strata: Indices, settings: AuditSettings) -> Null:
        """Permute the truths within strata."""
        dates = len(strata)
        rng = np.random.default_rng(settings.seed)
        orders = _orders(strata, settings.draws, rng)
        pieces = [self._scores(order) for order in orders]
        seen = self._scores(np.arange(dates)[None])
        drawn = [np.concatenate(each) for each in zip(*pieces, strict=True)]
        movable = int(np.count_nonzero(np.bincount(strata)[strata] > 1))
        return make_null(
            (seen[0], seen[1], seen[2]), (drawn[0], drawn[1], drawn[2]), dates, movable
        )

    def _scores(self, order: Indices) -> NullDraws:
        rows = np.arange(order.shape[1])
        product, error, close = (
            table[rows, order].mean(axis=1) for table in (self._product, self._error, self._near)
        )
        return product, error, close


def _orders(strata: Indices, draws: int, rng: np.random.Generator) -> Iterator[Indices]:
    """Yield permutations within strata, several rows at a time."""
    dates = len(strata)
    places = np.argsort(strata, kind="stable")
    for size in split_draws(draws, dates):
        keys = rng.random((size, dates)) + strata
        order = np.empty(keys.shape, np.intp)
        order[:, places] = np.argsort(keys, axis=1)
        yield order


def make_null(seen: NullDraws, drawn: NullDraws, dates: int, movable: int) -> Null:
    """Compare the observed scores with the drawn ones."""
    return Null(
        dates=dates,
        movable=movable,
        pearson_r=_compare_draws(float(seen[0][0]), drawn[0]),
        mae=_compare_draws(float(seen[1][0]), drawn[1], lower=True),
        within_tolerance=_compare_draws(float(seen[2][0]), drawn[2]),
    )


def _compare_draws(observed: float, drawn: Array, *, lower: bool = False) -> Chance:
    if np.isnan(observed) or np.isnan(drawn).any():
        return Chance(observed, *[float("nan")] * 4)
    ahead = (observed - drawn) if lower else (drawn - observed)
    as_good = (1 + int(np.count_nonzero(ahead >= -_EXACT))) / (1 + len(drawn))
    return Chance(observed, float(drawn.mean()), *middle_range(drawn), as_good)


LEAST_VALUES: Final = 20
"""The fewest values for a drift null.

Our choice: the spectrum of a shorter series is not well known.
"""
MOST_PATHS: Final = 2_000
"""The largest number of paths.

Each is as long as the series, so more would take minutes for a daily one.
"""


def drift_null(
    points: Sequence[Point], values: SeriesValues, *, tolerance: float, settings: AuditSettings
) -> Null | None:
    """Return how well the answers fit series that drift like the true one but are unrelated to it.

    None if the answers or truths do not vary, or fewer than `LEAST_VALUES` values are known.
    """
    answers = collect_answers(point for point in points if point.period in values)
    dates = len(answers.periods)
    if dates < 3 or len(values) < LEAST_VALUES:
        return None
    said, truth = answers.means(answers.estimate), answers.means(answers.truth)
    if not all_vary(said, truth):
        return None
    pieces = [
        _score_paths(said, each, tolerance) for each in _draw_paths(answers, values, settings)
    ]
    seen = _score_paths(said, truth[None], tolerance)
    r, mae, within = (np.concatenate(each) for each in zip(*pieces, strict=True))
    return make_null(seen, (r, mae, within), dates, dates)


def _draw_paths(answers: Answers, values: SeriesValues, settings: AuditSettings) -> Iterator[Array]:
    """Yield unrelated series at the dates of the answers, with shape (paths, dates)."""
    ordered = sorted(values)
    places = {period: place for place, period in enumerate(ordered)}
    asked = np.array([places[period] for period in answers.periods])
    level = np.array([values[period] for period in ordered])
    seasons, months = _season_of(values)
    rng = np.random.default_rng(settings.seed)
    for size in split_draws(min(settings.draws, MOST_PATHS), len(level)):
        drawn = _without_phase(level - seasons[months], size, rng)[:, asked]
        dealt = rng.permuted(np.broadcast_to(seasons, (size, len(seasons))), axis=1)
        yield drawn + dealt[:, months[asked]]


def _season_of(values: SeriesValues) -> tuple[Array, "np.ndarray[tuple[int], np.dtype[np.intp]]"]:
    """Return each season's distance from the mean, and the season index of each value."""
    means, ordered = season_means(values), sorted(values)
    if len(means) < len(values):
        return np.zeros(1), np.zeros(len(ordered), np.intp)
    names, months = np.unique([find_season(period) for period in ordered], return_inverse=True)
    level = np.array([means[period] for period in ordered])
    found = np.array([level[months == place].mean() for place in range(len(names))])
    return found - found.mean(), months.astype(np.intp)


def _without_phase(level: Array, paths: int, rng: np.random.Generator) -> Array:
    """Return random paths with the spectrum of a level's steps; the trend is up in half of them."""
    steps = np.diff(level)
    trend = float(steps.mean())
    size = np.abs(np.fft.rfft(steps - trend))
    phases = np.exp(2j * np.pi * rng.random((paths, len(size))))
    drawn = np.cumsum(np.fft.irfft(size * phases, len(steps), axis=1), axis=1)
    way = rng.choice((-1.0, 1.0), (paths, 1)) * trend * np.arange(len(level))
    path = np.concatenate([np.zeros((paths, 1)), drawn], axis=1) + way
    return np.asarray(path - path.mean(axis=1, keepdims=True) + level.mean())


def _score_paths(said: Array, truths: Array, tolerance: float) -> NullDraws:
    """Return r, the mean absolute error and the share within tolerance for each row of truths."""
    centred = truths - truths.mean(axis=1, keepdims=True)
    spread = np.maximum(np.std(truths, axis=1), np.finfo(np.float64).tiny)
    distance = np.abs(said - truths)
    r = (standardise(said) * centred).mean(axis=1) / spread
    return np.asarray(r), distance.mean(axis=1), mark_near(distance, tolerance).mean(axis=1)


def sibling_null(
    points: Sequence[Point],
    others: Mapping[str, Sequence[Point]],
    *,
    tolerance: float,
    settings: AuditSettings,
) -> Null | None:
    """Permute the answers of each date among the series that were asked about on it.

    This is the score of a model that knows what a month was like, but confuses the series.
    """
    answers = collect_answers(points)
    truth = dict(zip(answers.periods, answers.means(answers.truth), strict=True))
    said = [_mean_answers(each) for each in (points, *others.values())]
    dates = [date for date in answers.periods if any(date in other for other in said[1:])]
    if len(dates) < 2:
        return None
    table = np.full((len(dates), len(said)), np.nan)
    for row, date in enumerate(dates):
        found = [each[date] for each in said if date in each]
        table[row, : len(found)] = found
    due = np.array([truth[date] for date in dates])
    count = np.count_nonzero(np.isfinite(table), axis=1)
    drawn = [
        _score_rows(table[np.arange(len(dates)), chosen], due, tolerance)
        for chosen in _draw_choices(count, settings)
    ]
    stacked = [np.concatenate(each) for each in zip(*drawn, strict=True)]
    seen = _score_rows(table[:, 0][None], due, tolerance)
    return make_null(seen, (stacked[0], stacked[1], stacked[2]), len(dates), len(dates))


def _draw_choices(count: Indices, settings: AuditSettings) -> Iterator[Indices]:
    rng = np.random.default_rng(settings.seed)
    for size in split_draws(settings.draws, len(count)):
        yield rng.integers(count, size=(size, len(count)))


def _score_rows(said: Array, truth: Array, tolerance: float) -> NullDraws:
    """Score rows of answers; r is nan if the truths are constant, 0 if a row is constant."""
    distance = np.abs(said - truth)
    centred = said - said.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=1))
    r = (centred * standardise(truth)).mean(axis=1) / np.where(spread > 0, spread, np.inf)
    return r, distance.mean(axis=1), mark_near(distance, tolerance).mean(axis=1)


def _mean_answers(points: Sequence[Point]) -> dict[Period, float]:
    """Return the mean answer of each date."""
    answers = collect_answers(points)
    return dict(zip(answers.periods, map(float, answers.means(answers.estimate)), strict=True))


def compare_siblings(
    points: Sequence[Point], others: Mapping[str, Sequence[Point]], *, tolerance: float
) -> dict[str, CrossSeries]:
    """Compare the answers with the truths of each sibling on the same dates."""
    found = {name: _compare_sibling(points, other, tolerance) for name, other in others.items()}
    return {name: each for name, each in found.items() if each.dates}


def _compare_sibling(
    points: Sequence[Point], other: Sequence[Point], tolerance: float
) -> CrossSeries:
    due = {point.period: point.truth for point in other if point.truth is not None}
    own = [point for point in points if point.period in due]
    taken = [replace(point, truth=due[point.period]) for point in own]
    answers, swapped = collect_answers(own), collect_answers(taken)
    same = len(answers.date) == len(swapped.date)
    return CrossSeries(
        dates=len(swapped.periods),
        pearson_r=pearson_r(taken),
        within_tolerance=within_tolerance(taken, tolerance),
        own_within_tolerance=within_tolerance(own, tolerance),
        truths_r=correlation(answers.truth, swapped.truth) if same else float("nan"),
    )
