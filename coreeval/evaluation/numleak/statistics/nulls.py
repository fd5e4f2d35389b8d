"""What the numbers would be if answers had nothing to do with their dates."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import Answers, Indices, answers_of, standard
from coreeval.evaluation.numleak.statistics.measured import Chance, Null, NullName, Settings
from coreeval.evaluation.numleak.statistics.metrics import near
from coreeval.evaluation.numleak.statistics.yearbook import Values, season, year_means
from coreeval.evaluation.statistics import LEVEL, PIECE, Array

ERA_DATES: Final = 4
"""Asked dates that follow each other and are shuffled among themselves: one who knows about when
things were high scores like that. Ours: two would be nearer in time, and tell too little."""
_EXACT: Final = 1e-9
Drawn = tuple[Array, Array, Array]
"""Correlation, mean absolute error and share within tolerance; of each draw, or one of each."""


def shuffled(
    points: Sequence[Point], values: Values, *, tolerance: float, settings: Settings
) -> dict[NullName, Null]:
    """Deal the truths out anew among all dates, those of one era, and those of one season.

    And, where the year's means are known, what the truths differ from them: one who knows each
    year and nothing within it scores like that (Freedman and Lane 1983). Left out is a null under
    which most dates are alone: it can tell nothing.
    """
    answers = answers_of(points)
    if len(answers.periods) < 2:
        return {}
    table = _Table(answers, tolerance)
    nulls: dict[NullName, Null] = {
        "any_date": table.null(_everywhere(answers), settings),
        "same_era": table.null(_eras(answers), settings),
    }
    if answers.periods[0].frequency != "annual":
        seasons = np.array([season(each) for each in answers.periods], np.intp)
        nulls["same_season"] = table.null(seasons, settings)
    within = _beyond(points, year_means(values))
    if len(within.periods) > 1:
        nulls["same_year"] = _Table(within, tolerance).null(_everywhere(within), settings)
    return {name: null for name, null in nulls.items() if 2 * null.movable >= null.dates}


def _beyond(points: Sequence[Point], level: Values) -> Answers:
    """Return answers and truths as their differences from a level, where that is known."""
    answers = answers_of(point for point in points if point.period in level)
    due = np.array([level[period] for period in answers.periods])[answers.date]
    return answers._replace(estimate=answers.estimate - due, truth=answers.truth - due)


def _everywhere(answers: Answers) -> Indices:
    return np.zeros(len(answers.periods), np.intp)


def _eras(answers: Answers) -> Indices:
    dates = len(answers.periods)
    return np.minimum(np.arange(dates) // ERA_DATES, max(0, dates // ERA_DATES - 1))


class _Table:
    """What each date's answers score against each date's truth: a permutation only looks up."""

    def __init__(self, answers: Answers, tolerance: float) -> None:
        truth = answers.means(answers.truth)
        said = answers.means(answers.estimate)
        distance = np.abs(answers.estimate[:, None] - truth)
        counts = np.bincount(answers.date)[:, None]
        self._product = standard(said)[:, None] * standard(truth)
        self._error = answers.per_date(*distance.T) / counts
        self._near = answers.per_date(*near(distance, tolerance).T) / counts

    def null(self, strata: Indices, settings: Settings) -> Null:
        """Permute the truths within strata."""
        dates = len(strata)
        rng = np.random.default_rng(settings.seed)
        orders = _orders(strata, settings.draws, rng)
        pieces = [self._scores(order) for order in orders]
        seen = self._scores(np.arange(dates)[None])
        drawn = [np.concatenate(each) for each in zip(*pieces, strict=True)]
        movable = int(np.count_nonzero(np.bincount(strata)[strata] > 1))
        return null_of((seen[0], seen[1], seen[2]), (drawn[0], drawn[1], drawn[2]), dates, movable)

    def _scores(self, order: Indices) -> Drawn:
        rows = np.arange(order.shape[1])
        product, error, close = (
            table[rows, order].mean(axis=1) for table in (self._product, self._error, self._near)
        )
        return product, error, close


def _orders(strata: Indices, draws: int, rng: np.random.Generator) -> Iterator[Indices]:
    """Yield permutations within strata, some rows at a time."""
    dates = len(strata)
    places = np.argsort(strata, kind="stable")
    most = max(1, PIECE // dates)
    for start in range(0, draws, most):
        keys = rng.random((min(most, draws - start), dates)) + strata
        order = np.empty(keys.shape, np.intp)
        order[:, places] = np.argsort(keys, axis=1)
        yield order


def null_of(seen: Drawn, drawn: Drawn, dates: int, movable: int) -> Null:
    """Put what was seen beside what was drawn."""
    return Null(
        dates=dates,
        movable=movable,
        pearson_r=_chance(float(seen[0][0]), drawn[0]),
        mae=_chance(float(seen[1][0]), drawn[1], lower=True),
        within_tolerance=_chance(float(seen[2][0]), drawn[2]),
    )


def _chance(observed: float, drawn: Array, *, lower: bool = False) -> Chance:
    if np.isnan(observed) or np.isnan(drawn).any():
        return Chance(observed, *[float("nan")] * 4)
    ahead = (observed - drawn) if lower else (drawn - observed)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    as_good = (1 + int(np.count_nonzero(ahead >= -_EXACT))) / (1 + len(drawn))
    return Chance(observed, float(drawn.mean()), float(low), float(high), as_good)
