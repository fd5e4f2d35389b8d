"""The joint signature of NumLeak, section 2: five numbers over answers, and over parts of them.

Parts are eras, the sides of the cutoff, well-known dates and drawings of dates. Repeated answers to
one question have a spread: memory gives one value, invention gives many.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from coreeval.evaluation.numleak.replies import Point, Status
from coreeval.evaluation.numleak.statistics.date_intervals import (
    FISHER,
    UNDEFINED,
    Answers,
    all_vary,
    collect_answers,
    difference_interval,
    jackknife,
    mean_interval,
    number_keys,
    share_interval,
    standardise,
)
from coreeval.evaluation.numleak.statistics.measurements import (
    AuditSettings,
    Lift,
    Metric,
    Repeats,
    Signature,
)
from coreeval.evaluation.statistics import Array, leave_one_out

ROUNDING = 1e-9
"""Allowance for rounding, in the unit: 5.69 - 5.44 counts as within 0.25."""
NO_SPREAD = 1e-12
"""The largest variance of standardised numbers that rounding alone causes."""


def signature(points: Sequence[Point], *, tolerance: float, settings: AuditSettings) -> Signature:
    """Return the five numbers of a set of questions."""
    answers = collect_answers(points)
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
    """Return the share of questions answered with a number, clustered by name and date."""
    _, question = number_keys([(point.name, point.period) for point in points])
    return share_interval([point.status == "parsed" for point in points], question)


def pearson_r(points: Iterable[Point]) -> Metric:
    """Return the correlation of answers and truths; undefined if either is constant."""
    return _pearson(collect_answers(points))


def within_tolerance(points: Iterable[Point], tolerance: float) -> Metric:
    """Return the share of answers within a tolerance of the truth."""
    return _within(collect_answers(points), tolerance)


def hits_of_asked(points: Sequence[Point], tolerance: float) -> Metric:
    """Return the share of all questions with an answer within tolerance."""
    known = [point for point in points if point.truth is not None]
    _, question = number_keys([point.period for point in known])
    return share_interval([_is_hit(point, tolerance) for point in known], question)


def slope(points: Iterable[Point]) -> Metric:
    """Return the least-squares slope of answers on truths, with the jackknife's interval.

    The interval is close to that of HC3 (MacKinnon and White 1985), which allows unequal variances.
    """
    answers = collect_answers(points)
    return line_slope(answers, answers.truth, answers.estimate)


def line_slope(answers: Answers, x: Array, y: Array) -> Metric:
    """Return the slope of y on x, two columns of the answers."""
    if len(answers.periods) < 3 or not all_vary(x):
        return UNDEFINED._replace(n=len(x), dates=len(answers.periods))
    centred, unit = x - x.mean(), float(np.std(x))
    x = centred / unit
    y = (y - y.mean()) / unit
    sums = answers.per_date(np.ones_like(x), x, y, x * x, x * y)
    return jackknife(sums, len(x), _slope)


def r_without_one(points: Iterable[Point]) -> float:
    """Return the smallest correlation after leaving out any one date."""
    sums = _moments(answers := collect_answers(points))
    if sums is None or len(answers.periods) < 4:
        return float("nan")
    return float(np.min(correlation_of_sums(leave_one_out(sums))))


def modal_share(points: Iterable[Point]) -> Metric:
    """Return the share of the most common answer."""
    answers = collect_answers(points)
    if not len(answers.estimate):
        return UNDEFINED
    values, counts = np.unique(answers.estimate, return_counts=True)
    return share_interval(answers.estimate == values[counts.argmax()], answers.date)


def sign_base_rate(points: Iterable[Point]) -> Metric:
    """Return the score of always giving the more common sign of these truths."""
    answers = _with_sign(collect_answers(points))
    above = answers.truth > 0
    return (
        share_interval(above if above.mean() >= 0.5 else ~above, answers.date)
        if len(above)
        else UNDEFINED
    )


def mark_near(distance: Array, tolerance: float) -> Array:
    """Return 1 for distances within tolerance, 0 for others."""
    return np.asarray(distance <= tolerance + ROUNDING, np.float64)


def correlation(x: Array, y: Array) -> float:
    """Return Pearson's r; nan if it is not defined."""
    if len(x) < 3 or not all_vary(x, y):
        return float("nan")
    return float(np.clip(np.mean(standardise(x) * standardise(y)), -1, 1))


def _is_hit(point: Point, tolerance: float) -> bool:
    if point.estimate is None or point.truth is None:
        return False
    return abs(point.estimate - point.truth) <= tolerance + ROUNDING


def _pearson(answers: Answers) -> Metric:
    sums = _moments(answers)
    if sums is None:
        return UNDEFINED._replace(n=len(answers.date), dates=len(answers.periods))
    return jackknife(sums, len(answers.date), correlation_of_sums, FISHER)


def _moments(answers: Answers) -> Array | None:
    """Return each date's sums of standardised answers and truths; None if either is constant."""
    if len(answers.periods) < 3 or not all_vary(answers.estimate, answers.truth):
        return None
    x, y = standardise(answers.truth), standardise(answers.estimate)
    return answers.per_date(np.ones_like(x), x, y, x * x, x * y, y * y)


def correlation_of_sums(sums: Array) -> Array:
    """Return r from sums of 1, x, y, xx, xy and yy, shape (..., 6).

    r is 0 if answers or truths do not vary, because that shows no association.
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


def _mae(answers: Answers, settings: AuditSettings) -> Metric:
    totals, counts = answers.per_date(answers.error, np.ones(len(answers.date))).T
    return mean_interval(totals, counts, settings)


def _within(answers: Answers, tolerance: float) -> Metric:
    return share_interval(mark_near(answers.error, tolerance) > 0, answers.date)


def _sign(answers: Answers) -> Metric:
    signed = _with_sign(answers)
    return share_interval(np.sign(signed.estimate) == np.sign(signed.truth), signed.date)


def _with_sign(answers: Answers) -> Answers:
    """Return the answers whose truth is not 0."""
    kept = answers.truth != 0
    return answers._replace(
        estimate=answers.estimate[kept], truth=answers.truth[kept], date=answers.date[kept]
    )


DAYS_IN_TEN_YEARS: Final = 3652.5


def compare_signatures(first: Signature, second: Signature) -> Lift:
    """Return two groups' signatures, and their difference (first minus second)."""
    return Lift(
        first=first,
        second=second,
        parse_rate=difference_interval(first.parse_rate, second.parse_rate),
        mae=difference_interval(first.mae, second.mae),
        within_tolerance=difference_interval(first.within_tolerance, second.within_tolerance),
    )


def gradient(points: Iterable[Point]) -> Metric:
    """Return the slope of the absolute error over time, per ten years, up to the cutoff."""
    answers = collect_answers(point for point in points if point.stratum != "post")
    tens = np.array([period.start.toordinal() for period in answers.periods]) / DAYS_IN_TEN_YEARS
    return line_slope(answers, tens[answers.date], answers.error)


def measure_repeats(points: Iterable[Point], *, tolerance: float) -> Repeats:
    """Return the spread of repeated answers, over dates with at least two parsed answers."""
    answers = collect_answers(points)
    counts = np.bincount(answers.date, minlength=len(answers.periods))
    again = counts > 1
    off = answers.estimate - answers.means(answers.estimate)[answers.date]
    squares = answers.per_date(off * off)[again, 0]
    apart = np.array(
        [np.ptp(answers.estimate[answers.date == each]) for each in np.flatnonzero(again)]
    )
    n = int(counts[again].sum())
    spread = jackknife(np.stack([squares, counts[again] - 1.0], axis=1), n, _pool_deviation)
    spread = spread._replace(ci_low=float(np.maximum(spread.ci_low, 0.0)))
    deviation = float(np.std(answers.means(answers.truth))) if answers.periods else 0.0
    return Repeats(
        dates=int(np.count_nonzero(again)),
        spread=spread,
        agreement=share_interval(mark_near(apart, tolerance) > 0, np.arange(len(apart))),
        relative_spread=spread.estimate / deviation if deviation > 0 else float("nan"),
    )


def _pool_deviation(sums: Array) -> Array:
    """Return the standard deviation within dates, from sums of squares and degrees of freedom."""
    return np.sqrt(sums[..., 0] / sums[..., 1])
