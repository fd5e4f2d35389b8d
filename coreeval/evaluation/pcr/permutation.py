"""Items dealt out anew between two splits, for a test whether their PCR differs.

Plain permutation asks whether the splits are alike in everything; one that is merely harder, with
the same PCR, then counts as different far too often if it also has another size (a fifth of such
studies in benchmarks/pcr.py). Divided by its standard error the difference is tested alone: exact
for alike splits, right in the limit for others (Janssen 1997; Chung and Romano 2013).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.pcr.measured import Measured, Scores
from coreeval.evaluation.pcr.ratio import SLOPES, Scale, performance_consistency_ratio
from coreeval.evaluation.resampling import leave_one_out, permuted_sums
from coreeval.evaluation.statistics import Array


class Group(NamedTuple):
    """The scores of a group of items, and how sure they are; arrays over permutations."""

    scores: Scores
    spread: tuple[Array, Array, Array]
    """Variance of M, covariance of M and C, variance of C."""


class Dealt(NamedTuple):
    """Both groups as they are, and as they were dealt out each time."""

    seen: tuple[Group, Group]
    drawn: tuple[Group, Group]


def deal(
    items: Measured,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    draws: int,
    rng: np.random.Generator,
) -> Dealt:
    """Permute the items of two groups, whose members are marked, between them."""
    rows = items.rows[first | second]
    extended = np.column_stack([rows, _products(items, rows)])
    one, other = extended[first[first | second]], extended[second[first | second]]
    drawn = permuted_sums(one, other, draws, rng)
    sizes = (len(one), len(other))

    def groups(sums: tuple[Array, Array]) -> tuple[Group, Group]:
        return _group(items, sums[0], sizes[0]), _group(items, sums[1], sizes[1])

    return Dealt(seen=groups((one.sum(axis=0), other.sum(axis=0))), drawn=groups(drawn))


def studentised(groups: tuple[Group, Group], *, alpha: float, scale: Scale) -> Array:
    """Return PCR of the first group minus that of the second over its standard error.

    By the delta method; 0 where there is no difference, even without any spread.
    """
    (first, one), (second, other) = (_ratio(group, alpha, scale) for group in groups)
    gap = first - second
    return np.where(gap == 0, 0.0, gap / np.sqrt(one + other))


def _products(items: Measured, rows: Array) -> Array:
    """Return each item's influence on M and on C, and their products: the sums give a spread.

    As the jackknife has it, (n - 1) (mean - value without the item), over both groups together.
    """
    without, n = items.scores(leave_one_out(rows)), len(rows)
    m, c = ((n - 1) * (each.mean() - each) for each in (without.performance, without.consistency))
    return np.column_stack([m, c, m * m, m * c, c * c])


def _group(items: Measured, sums: Array, n: int) -> Group:
    m, c, mm, mc, cc = np.moveaxis(sums[..., -5:] / n, -1, 0)
    spread = (mm - m * m, mc - m * c, cc - c * c)
    scores = items.scores(sums[..., :-5])
    return Group(scores, (spread[0] / n, spread[1] / n, spread[2] / n))


def _ratio(group: Group, alpha: float, scale: Scale) -> tuple[Array, Array]:
    """Return PCR and its variance."""
    performance, consistency = group.scores.performance, group.scores.consistency
    found = np.asarray(
        performance_consistency_ratio(performance, consistency, alpha=alpha, scale=scale)
    )
    by_m = SLOPES[scale](found) / (consistency + alpha)
    by_c = -by_m * (performance + alpha) / (consistency + alpha)
    m, both, c = group.spread
    variance = by_m * by_m * m + 2 * by_m * by_c * both + by_c * by_c * c
    return found, np.maximum(variance, 0.0)
