"""How well raters agree: pairs, Fleiss' kappa, Krippendorff's alpha, with bootstrap intervals.

Every statistic is made of sums over items, so that a resample of the items is one product.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from coreeval.evaluation.annotation.guideline import Level
from coreeval.evaluation.decomposition.intervals import expanded
from coreeval.evaluation.resampling import bootstrap_sums
from coreeval.evaluation.scoring.classification import DRAWS, NOTHING, Score
from coreeval.evaluation.statistics import Array, wilson

Ratings = Mapping[str, Mapping[str, int]]
"""Of one criterion: item -> rater -> value."""
Statistic = Callable[[Array], Array]
"""From sums of shape (draws, columns) to one value a draw; nan where it is not defined."""
_SETTLED: Final = 1e-12
"""An expected disagreement below this is none: sums of floats differ in the last bits."""


RARE: Final = 5
"""Items with another rating than the commonest from which there is an interval. With two of 20 it
would hold the truth in 0.68 to 0.75 of simulated studies; see docs/annotation.md for these."""


def counts_of(ratings: Ratings, values: Sequence[int]) -> Array:
    """Return how many raters gave each value, of shape (items, values)."""
    rows = [[list(by.values()).count(value) for value in values] for by in ratings.values()]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(values))


def agreed(ratings: Ratings, values: Sequence[int]) -> Score:
    """Return the share of pairs of raters who say the same, averaged over items with two or more.

    Wilson's interval, of as many trials as there are items: no share of an item varies more.
    """
    counts = _paired(counts_of(ratings, values))
    return share_of([float(each) for each in _same(counts)])


def share_of(shares: Sequence[float]) -> Score:
    """Return the mean of shares, 0 to 1, with Wilson's interval; each counts as one trial."""
    n = len(shares)
    if not n:
        return NOTHING
    mean = sum(shares) / n
    low, high = wilson(mean, n)
    return Score(estimate=mean, ci_low=low, ci_high=high, n=n)


def fleiss(
    ratings: Ratings, values: Sequence[int], *, raters: int, seed: int, draws: int = DRAWS
) -> Score:
    """Return kappa on the items that all raters rated (Fleiss 1971, equations 1 to 7)."""
    counts = counts_of(ratings, values)
    counts = counts[counts.sum(axis=1) == raters]
    if raters < 2:
        return NOTHING
    sums = np.column_stack([counts, _same(counts), np.ones(len(counts))])
    return _resampled(counts, sums, _kappa, seed, draws)


def krippendorff(
    ratings: Ratings, values: Sequence[int], level: Level, *, seed: int, draws: int = DRAWS
) -> Score:
    """Return alpha on all items with two ratings or more (Krippendorff 2019, chapter 12)."""
    counts = _paired(counts_of(ratings, values))
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(values))
    weight = counts.sum(axis=1) - 1
    sums = (pairs / weight[:, None, None]).reshape(len(counts), len(values) ** 2)
    return _resampled(counts, sums, lambda total: _alpha(total, len(values), level), seed, draws)


def _paired(counts: Array) -> Array:
    return np.asarray(counts[counts.sum(axis=1) >= 2])


def _same(counts: Array) -> Array:
    """Return each item's share of pairs of ratings that are the same value."""
    n = counts.sum(axis=1)
    return np.asarray((counts * (counts - 1)).sum(axis=1) / (n * (n - 1)))


def _kappa(total: Array) -> Array:
    shares = total[:, :-2] / total[:, :-2].sum(axis=1, keepdims=True)
    seen, expected = total[:, -2] / total[:, -1], (shares**2).sum(axis=1)
    return _over(seen - expected, 1 - expected)


def _alpha(total: Array, values: int, level: Level) -> Array:
    """Return 1 - (n - 1) sum(o delta) / sum(n n delta) of coincidence matrices o, a row each."""
    matrix = total.reshape(-1, values, values)
    margins = matrix.sum(axis=2)
    apart = _apart(margins, level)
    n = margins.sum(axis=1)
    seen = (n - 1) * (matrix * apart).sum(axis=(1, 2))
    expected = (margins[:, :, None] * margins[:, None, :] * apart).sum(axis=(1, 2))
    return _over(expected - seen, expected)


def _apart(margins: Array, level: Level) -> Array:
    """Return the squared difference of each two values, of shape (draws, values, values).

    Ordinal: all ratings between the two, and half of theirs, that is between their mid-ranks.
    """
    if level == "nominal":
        return np.broadcast_to(1 - np.eye(margins.shape[1]), (*margins.shape, margins.shape[1]))
    middle = np.cumsum(margins, axis=1) - margins / 2
    return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)


def _over(above: Array, below: Array) -> Array:
    """Return a quotient; nan where nothing is expected to differ."""
    defined = np.abs(below) > _SETTLED
    return np.asarray(np.divide(above, below, out=np.full(len(below), np.nan), where=defined))


def _resampled(counts: Array, sums: Array, statistic: Statistic, seed: int, draws: int) -> Score:
    """Return a statistic with its expanded percentile interval (see `expanded`).

    There is none where all agree, or hardly an item has another rating than the commonest: the
    resamples would say the same, however few items there are.
    """
    n = len(sums)
    value = statistic(sums.sum(axis=0, keepdims=True)) if n else np.array([np.nan])
    if not np.isfinite(value[0]):
        return NOTHING.model_copy(update={"n": n})
    if value[0] > 1 - _SETTLED or uncommon(counts) < RARE:
        return Score(estimate=float(value[0]), ci_low=None, ci_high=None, n=n)
    drawn = statistic(bootstrap_sums(sums, draws, np.random.default_rng(seed)))
    return expanded(np.concatenate([value, drawn]), n)


def uncommon(counts: Array) -> int:
    """Return how many items have a rating other than the commonest."""
    commonest = counts.sum(axis=0).argmax()
    return int(np.count_nonzero(counts.sum(axis=1) > counts[:, commonest]))
