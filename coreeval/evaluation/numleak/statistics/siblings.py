"""Are the answers about this series, or about any of its family? Siblings on the same dates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import Indices, answers_of, standard
from coreeval.evaluation.numleak.statistics.measured import CrossSeries, Null, Settings
from coreeval.evaluation.numleak.statistics.metrics import (
    correlation,
    near,
    pearson_r,
    within_tolerance,
)
from coreeval.evaluation.numleak.statistics.nulls import Drawn, null_of
from coreeval.evaluation.statistics import PIECE, Array


def within_date(
    points: Sequence[Point],
    others: Mapping[str, Sequence[Point]],
    *,
    tolerance: float,
    settings: Settings,
) -> Null | None:
    """Deal the answers of one date out anew among the series that were asked on it.

    One who knows what a month was like, but not which series is which, scores like that.
    """
    answers = answers_of(points)
    truth = dict(zip(answers.periods, answers.means(answers.truth), strict=True))
    said = [_said(each) for each in (points, *others.values())]
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
        _compared(table[np.arange(len(dates)), chosen], due, tolerance)
        for chosen in _choices(count, settings)
    ]
    stacked = [np.concatenate(each) for each in zip(*drawn, strict=True)]
    seen = _compared(table[:, 0][None], due, tolerance)
    return null_of(seen, (stacked[0], stacked[1], stacked[2]), len(dates), len(dates))


def _choices(count: Indices, settings: Settings) -> Iterator[Indices]:
    rng = np.random.default_rng(settings.seed)
    most = max(1, PIECE // len(count))
    for start in range(0, settings.draws, most):
        yield rng.integers(count, size=(min(most, settings.draws - start), len(count)))


def _compared(said: Array, truth: Array, tolerance: float) -> Drawn:
    """Score rows of answers; r is nan where the truths never vary, 0 where a row does not."""
    distance = np.abs(said - truth)
    centred = said - said.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=1))
    r = (centred * standard(truth)).mean(axis=1) / np.where(spread > 0, spread, np.inf)
    return r, distance.mean(axis=1), near(distance, tolerance).mean(axis=1)


def _said(points: Sequence[Point]) -> dict[Period, float]:
    """Return the mean answer of each date."""
    answers = answers_of(points)
    return dict(zip(answers.periods, map(float, answers.means(answers.estimate)), strict=True))


def cross_series(
    points: Sequence[Point], others: Mapping[str, Sequence[Point]], *, tolerance: float
) -> dict[str, CrossSeries]:
    """Compare the answers with the truth of each sibling on the same dates."""
    found = {name: _crossed(points, other, tolerance) for name, other in others.items()}
    return {name: each for name, each in found.items() if each.dates}


def _crossed(points: Sequence[Point], other: Sequence[Point], tolerance: float) -> CrossSeries:
    due = {point.period: point.truth for point in other if point.truth is not None}
    own = [point for point in points if point.period in due]
    taken = [replace(point, truth=due[point.period]) for point in own]
    answers, swapped = answers_of(own), answers_of(taken)
    same = len(answers.date) == len(swapped.date)
    return CrossSeries(
        dates=len(swapped.periods),
        pearson_r=pearson_r(taken),
        within_tolerance=within_tolerance(taken, tolerance),
        own_within_tolerance=within_tolerance(own, tolerance),
        truths_r=correlation(answers.truth, swapped.truth) if same else float("nan"),
    )
