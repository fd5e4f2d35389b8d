"""Do recalled values reach comparisons? Which of two dates was higher, and what values would say.

A model that answers for both dates with its usual errors puts some pairs in the wrong order. How
often is read off its own value answers: of all pairs of answered dates, those whose true difference
is nearest to the one that was asked about. No form of the errors is assumed; pairs are compared
with pairs as hard.
"""

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Comparison, Point
from coreeval.evaluation.numleak.statistics.answers import Answers, Indices, answers_of, numbered
from coreeval.evaluation.numleak.statistics.intervals import MIN_DATES, UNDEFINED, share
from coreeval.evaluation.numleak.statistics.measured import Metric, Ranks, Settings
from coreeval.evaluation.statistics import LEVEL, Array, bootstrap_sums


def ranks(
    comparisons: Sequence[Comparison],
    points: Sequence[Point],
    values: Mapping[Period, float],
    *,
    settings: Settings,
) -> Ranks:
    """Return how well pairs are ordered, beside what the value answers would give."""
    read = [each for each in comparisons if each.chosen is not None]
    parsed = [each.chosen is not None for each in comparisons]
    expected, gap = _decoupling(read, answers_of(points), values, settings)
    return Ranks(
        asked=len(comparisons),
        parse_rate=share(parsed, numbered(_pairs(comparisons))[1]),
        accuracy=_rate([each.chosen == each.higher for each in read], read),
        expected=expected,
        gap=gap,
        coherence=_coherence(read, answers_of(points)),
    )


def _pairs(comparisons: Sequence[Comparison]) -> list[frozenset[Period]]:
    return [frozenset((each.first, each.second)) for each in comparisons]


def _rate(hits: Sequence[bool], comparisons: Sequence[Comparison]) -> Metric:
    return share(hits, numbered(_pairs(comparisons))[1])


def _coherence(read: Sequence[Comparison], answers: Answers) -> Metric:
    """Compare choices with the order of the model's own answers for both dates."""
    said = dict(zip(answers.periods, answers.means(answers.estimate), strict=True))
    both = [
        each
        for each in read
        if each.first in said and each.second in said and said[each.first] != said[each.second]
    ]
    agree = [(each.chosen == "first") == (said[each.first] > said[each.second]) for each in both]
    return _rate(agree, both)


class _Orders(NamedTuple):
    """Pairs of answered dates: how far apart their truths are, and whether answers order them."""

    first: Indices
    second: Indices
    apart: Array
    """Sorted."""
    right: Array
    """1, or 0, or a half where the answers tie."""


def _orders(answers: Answers) -> _Orders:
    truth, said = answers.means(answers.truth), answers.means(answers.estimate)
    first, second = np.triu_indices(len(truth), k=1)
    true, claimed = truth[first] - truth[second], said[first] - said[second]
    kept = true != 0
    order = np.flatnonzero(kept)[np.argsort(np.abs(true[kept]), kind="stable")]
    right = (1 + np.sign(true) * np.sign(claimed)) / 2
    return _Orders(first[order], second[order], np.abs(true[order]), right[order])


def _decoupling(
    read: Sequence[Comparison],
    answers: Answers,
    values: Mapping[Period, float],
    settings: Settings,
) -> tuple[Metric, Metric]:
    """Return the accuracy that values would give, and by how much comparisons fall short of it."""
    due = dict(values) | dict(zip(answers.periods, answers.means(answers.truth), strict=True))
    known = [each for each in read if each.first in due and each.second in due]
    orders = _orders(answers)
    pairs, question = numbered(_pairs(known))
    if not len(orders.apart) or not known:
        return UNDEFINED, UNDEFINED
    distances = np.array([abs(due[each.first] - due[each.second]) for each in known])
    likely, right, all_pairs = _neighbours(orders, distances, len(answers.periods))
    hits = np.array([each.chosen == each.higher for each in known], np.float64)
    n, dates = len(known), len(pairs)
    expected, gap = float(likely.mean()), float((likely - hits).mean())
    if min(len(answers.periods), dates) < MIN_DATES:
        return Metric(expected, np.nan, np.nan, n, dates), Metric(gap, np.nan, np.nan, n, dates)
    rng = np.random.default_rng(settings.seed)
    values_drawn = _redrawn(right, all_pairs, settings, rng) - expected
    rows = np.stack([np.ones(n), likely, likely - hits])
    sums = np.stack([np.bincount(question, weights=row) for row in rows], axis=1).astype(np.float64)
    drawn = bootstrap_sums(sums, settings.draws, rng)
    return (
        _percentile(expected, drawn[:, 1] / drawn[:, 0] + values_drawn, n, dates, within=(0, 1)),
        _percentile(gap, drawn[:, 2] / drawn[:, 0] + values_drawn, n, dates, within=(-1, 1)),
    )


def _neighbours(orders: _Orders, distances: Array, dates: int) -> tuple[Array, Array, Array]:
    """Return how likely the answers order each asked difference, and the weights behind it.

    From the nearest differences, the square root of their number (a rule of thumb for neighbours:
    Duda, Hart and Stork 2001, section 4.4). Weights are summed by pair of dates, shape
    (dates, dates): of right orders, and of all.
    """
    count = len(orders.apart)
    taken = min(count, ceil(sqrt(count)))
    right, everything = np.zeros((dates, dates)), np.zeros((dates, dates))
    likely = np.empty(len(distances))
    for row, distance in enumerate(distances):
        place = int(np.searchsorted(orders.apart, distance))
        window = slice(max(0, place - taken), place + taken)
        closest = np.argsort(np.abs(orders.apart[window] - distance), kind="stable")[:taken]
        chosen = closest + window.start
        likely[row] = orders.right[chosen].mean()
        where = orders.first[chosen], orders.second[chosen]
        np.add.at(right, where, orders.right[chosen])
        np.add.at(everything, where, 1.0)
    return likely, right, everything


def _redrawn(
    right: Array, everything: Array, settings: Settings, rng: np.random.Generator
) -> Array:
    """Return the expected accuracy with the answered dates resampled.

    The error of the answers and that of the pairs are added, as is right for small ones.
    """
    weights = bootstrap_sums(np.eye(len(right)), settings.draws, rng)
    found, of = (((weights @ each) * weights).sum(axis=1) for each in (right, everything))
    return np.asarray(found / np.maximum(of, 1e-300))


def _percentile(
    value: float, drawn: Array, n: int, dates: int, *, within: tuple[float, float]
) -> Metric:
    low, high = np.clip(np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]), *within)
    return Metric(value, float(low), float(high), n, dates)
