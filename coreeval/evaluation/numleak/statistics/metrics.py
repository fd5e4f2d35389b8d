"""The joint signature of NumLeak, section 2: five numbers over the answers of one model."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from coreeval.evaluation.numleak.points import Point, Status
from coreeval.evaluation.numleak.statistics.answers import (
    Answers,
    answers_of,
    numbered,
    standard,
    vary,
)
from coreeval.evaluation.numleak.statistics.intervals import (
    FISHER,
    UNDEFINED,
    jackknifed,
    mean_interval,
    share,
)
from coreeval.evaluation.numleak.statistics.measured import Metric, Settings, Signature
from coreeval.evaluation.statistics import Array, leave_one_out

ROUNDING = 1e-9
"""Of a unit: 5.69 - 5.44 is within 0.25."""
NO_SPREAD = 1e-12
"""Variance, of standardised numbers, that rounding alone makes."""


def signature(points: Sequence[Point], *, tolerance: float, settings: Settings) -> Signature:
    """Return the five numbers of some questions."""
    answers = answers_of(points)
    statuses: Counter[Status] = Counter(point.status for point in points)
    return Signature(
        n=len(points),
        parsed=statuses["parsed"],
        dates=len({point.period for point in points}),
        statuses=statuses,
        parse_rate=parse_rate(points),
        pearson_r=_pearson(answers),
        mae=_mae(answers, settings),
        within_tolerance=_within(answers, tolerance),
        sign_accuracy=_sign(answers),
    )


def parse_rate(points: Sequence[Point]) -> Metric:
    """Return the share of questions answered with a number; of a name and date asked together."""
    _, question = numbered([(point.name, point.period) for point in points])
    return share([point.status == "parsed" for point in points], question)


def pearson_r(points: Iterable[Point]) -> Metric:
    """Return the correlation of answers and truths; undefined where one of them never varies."""
    return _pearson(answers_of(points))


def mae(points: Iterable[Point], *, settings: Settings) -> Metric:
    """Return the mean absolute error, in the unit of the series."""
    return _mae(answers_of(points), settings)


def within_tolerance(points: Iterable[Point], tolerance: float) -> Metric:
    """Return the share of answers at most so far from the truth."""
    return _within(answers_of(points), tolerance)


def sign_accuracy(points: Iterable[Point]) -> Metric:
    """Return the share of answers with the truth's sign, where the truth is not 0."""
    return _sign(answers_of(points))


def hits_of_asked(points: Sequence[Point], tolerance: float) -> Metric:
    """Return the share of all questions that got an answer within tolerance."""
    known = [point for point in points if point.truth is not None]
    _, question = numbered([point.period for point in known])
    return share([_hit(point, tolerance) for point in known], question)


def slope(points: Iterable[Point]) -> Metric:
    """Return the least-squares slope of answers on truths, with the jackknife's interval.

    About that of HC3 (MacKinnon and White 1985): errors need not have one variance.
    """
    answers = answers_of(points)
    return line_slope(answers, answers.truth, answers.estimate)


def line_slope(answers: Answers, x: Array, y: Array) -> Metric:
    """Return the slope of y on x, two columns of the answers."""
    if len(answers.periods) < 3 or not vary(x):
        return UNDEFINED._replace(n=len(x), dates=len(answers.periods))
    centred, unit = x - x.mean(), float(np.std(x))
    x = centred / unit
    y = (y - y.mean()) / unit
    sums = answers.per_date(np.ones_like(x), x, y, x * x, x * y)
    return jackknifed(sums, len(x), _slope)


def r_without_one(points: Iterable[Point]) -> float:
    """Return the least correlation after leaving out any one date."""
    sums = _moments(answers := answers_of(points))
    if sums is None or len(answers.periods) < 4:
        return float("nan")
    return float(np.min(correlation_of_sums(leave_one_out(sums))))


def modal(points: Iterable[Point]) -> Metric:
    """Return the share of answers that are the commonest one."""
    answers = answers_of(points)
    if not len(answers.estimate):
        return UNDEFINED
    values, counts = np.unique(answers.estimate, return_counts=True)
    return share(answers.estimate == values[counts.argmax()], answers.date)


def sign_base_rate(points: Iterable[Point]) -> Metric:
    """Return what always saying the commoner sign of these truths would score."""
    answers = _signed(answers_of(points))
    above = answers.truth > 0
    return (
        share(above if above.mean() >= 0.5 else ~above, answers.date) if len(above) else UNDEFINED
    )


def near(distance: Array, tolerance: float) -> Array:
    """Return 1 where a distance is within tolerance, 0 elsewhere."""
    return np.asarray(distance <= tolerance + ROUNDING, np.float64)


def correlation(x: Array, y: Array) -> float:
    """Return Pearson's r; nan where it is not defined."""
    if len(x) < 3 or not vary(x, y):
        return float("nan")
    return float(np.clip(np.mean(standard(x) * standard(y)), -1, 1))


def _hit(point: Point, tolerance: float) -> bool:
    if point.estimate is None or point.truth is None:
        return False
    return abs(point.estimate - point.truth) <= tolerance + ROUNDING


def _pearson(answers: Answers) -> Metric:
    sums = _moments(answers)
    if sums is None:
        return UNDEFINED._replace(n=len(answers.date), dates=len(answers.periods))
    return jackknifed(sums, len(answers.date), correlation_of_sums, FISHER)


def _moments(answers: Answers) -> Array | None:
    """Return each date's sums of standardised answers and truths; None where one never varies."""
    if len(answers.periods) < 3 or not vary(answers.estimate, answers.truth):
        return None
    x, y = standard(answers.truth), standard(answers.estimate)
    return answers.per_date(np.ones_like(x), x, y, x * x, x * y, y * y)


def correlation_of_sums(sums: Array) -> Array:
    """Return r from sums of 1, x, y, xx, xy and yy, shape (..., 6).

    0 where answers or truths do not vary: those show no association.
    """
    n, x, y, xx, xy, yy = np.moveaxis(sums, -1, 0)
    vx, vy = xx / n - (x / n) ** 2, yy / n - (y / n) ** 2
    varies = np.minimum(vx, vy) > NO_SPREAD
    r = (xy / n - x * y / n**2) / np.sqrt(np.where(varies, vx * vy, 1.0))
    return np.where(varies, np.clip(r, -1, 1), 0.0)


def _slope(sums: Array) -> Array:
    n, x, y, xx, xy = np.moveaxis(sums, -1, 0)
    spread = xx / n - (x / n) ** 2
    varies = spread > NO_SPREAD
    return np.where(varies, (xy / n - x * y / n**2) / np.where(varies, spread, 1.0), np.nan)


def _mae(answers: Answers, settings: Settings) -> Metric:
    totals, counts = answers.per_date(answers.error, np.ones(len(answers.date))).T
    return mean_interval(totals, counts, settings)


def _within(answers: Answers, tolerance: float) -> Metric:
    return share(near(answers.error, tolerance) > 0, answers.date)


def _sign(answers: Answers) -> Metric:
    signed = _signed(answers)
    return share(np.sign(signed.estimate) == np.sign(signed.truth), signed.date)


def _signed(answers: Answers) -> Answers:
    """Return the answers whose truth is not 0."""
    kept = answers.truth != 0
    return answers._replace(
        estimate=answers.estimate[kept], truth=answers.truth[kept], date=answers.date[kept]
    )
