"""Answers to a question put in another way, beside the plain answers on the same dates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import Answers, answers_of, standard, vary
from coreeval.evaluation.numleak.statistics.intervals import UNDEFINED, jackknifed, share
from coreeval.evaluation.numleak.statistics.measured import Metric, Settings, Signature
from coreeval.evaluation.numleak.statistics.metrics import correlation_of_sums, near, signature
from coreeval.evaluation.statistics import Array

_SAME = 1e-9
"""Of a unit: errors nearer to each other are the same."""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What one way of asking gets, and what the plain question gets on the same dates.

    Differences are this way minus the plain one, with the jackknife's interval over dates.
    """

    asked: Signature
    """All its questions."""
    dates: int
    """Those that both ways got an answer for; all below rests on them."""
    own: Signature
    plain: Signature
    pearson_r: Metric
    mae: Metric
    within_tolerance: Metric
    worse: Metric
    """Share of the dates on which this way errs by more."""
    better: Metric
    """Share on which it errs by less; on the others both err alike."""


@dataclass(frozen=True)
class Pairs:
    """The mean answers of both ways on each date that both have one for, in order of time."""

    periods: tuple[Period, ...]
    truth: Array
    plain: Array
    own: Array

    @property
    def errors(self) -> tuple[Array, Array]:
        """How far the plain answers and the others lie from the truth."""
        return np.abs(self.plain - self.truth), np.abs(self.own - self.truth)


def pairs_of(plain: Sequence[Point], own: Sequence[Point]) -> Pairs:
    """Return the answers to both questions, date by date."""
    first, second = answers_of(plain), answers_of(own)
    said, others = _by_date(first), _by_date(second)
    truth = dict(zip(second.periods, second.means(second.truth).tolist(), strict=True))
    both = tuple(period for period in second.periods if period in said)
    return Pairs(
        periods=both,
        truth=np.array([truth[each] for each in both], np.float64),
        plain=np.array([said[each] for each in both], np.float64),
        own=np.array([others[each] for each in both], np.float64),
    )


def beside(
    plain: Sequence[Point], own: Sequence[Point], *, tolerance: float, settings: Settings
) -> Beside:
    """Compare one way of asking with the plain question."""
    pairs = pairs_of(plain, own)
    both = frozenset(pairs.periods)

    def there(points: Sequence[Point]) -> Signature:
        kept = [each for each in points if each.period in both and each.estimate is not None]
        return signature(kept, tolerance=tolerance, settings=settings)

    before, after = pairs.errors
    hits = near(after, tolerance) - near(before, tolerance)
    each = np.arange(len(both))
    return Beside(
        asked=signature(own, tolerance=tolerance, settings=settings),
        dates=len(both),
        own=there(own),
        plain=there(plain),
        pearson_r=_r_difference(pairs),
        mae=_mean(after - before),
        within_tolerance=_mean(hits),
        worse=share(after > before + _SAME, each),
        better=share(after < before - _SAME, each),
    )


def _by_date(answers: Answers) -> dict[Period, float]:
    means = answers.means(answers.estimate).tolist()
    return dict(zip(answers.periods, means, strict=True))


def _mean(values: Array) -> Metric:
    if not len(values):
        return UNDEFINED
    sums = np.stack([np.ones(len(values)), values], axis=1)
    return jackknifed(sums, len(values), lambda rows: np.asarray(rows[..., 1] / rows[..., 0]))


def _r_difference(pairs: Pairs) -> Metric:
    """Return r of these answers minus r of the plain ones."""
    dates = len(pairs.periods)
    if dates < 3 or not vary(pairs.truth, pairs.plain, pairs.own):
        return UNDEFINED._replace(n=dates, dates=dates)
    x, y, z = (standard(each) for each in (pairs.truth, pairs.plain, pairs.own))
    one = np.ones(dates)
    first = np.stack([one, x, y, x * x, x * y, y * y], axis=1)
    second = np.stack([one, x, z, x * x, x * z, z * z], axis=1)
    return jackknifed(
        np.concatenate([first, second], axis=1),
        dates,
        lambda sums: correlation_of_sums(sums[..., 6:]) - correlation_of_sums(sums[..., :6]),
    )
