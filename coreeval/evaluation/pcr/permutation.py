"""Items dealt out anew between two splits, for a test whether their PCR differs.

Plain permutation asks whether the splits are alike in everything; one that is merely harder, with
the same PCR, then counts as different far too often if it also has another size (a fifth of such
studies in benchmarks/pcr.py). Divided by its standard error the difference is tested alone: exact
for alike splits, right in the limit for others (Janssen 1997; Chung and Romano 2013). What is dealt
are clusters, and the standard error is that of a ratio of sums over clusters, so that documents
with several questions neither count as many nor pass for alike in size (Cochran 1977, section 6.3).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.pcr.measured import Measured, Scores
from coreeval.evaluation.pcr.ratio import SLOPES, Scale, performance_consistency_ratio
from coreeval.evaluation.resampling import cluster_sums, leave_one_out, permuted_sums
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
    members: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    clusters: NDArray[np.str_],
    draws: int,
    rng: np.random.Generator,
) -> Dealt:
    """Permute the clusters of two groups, whose member items are marked, between them."""
    rows = [
        cluster_sums(np.column_stack([items.rows[own], np.ones(own.sum())]), clusters[own])
        for own in members
    ]
    pooled = np.concatenate(rows)
    extended = np.column_stack([pooled[:, :-1], _products(items, pooled[:, :-1], pooled[:, -1])])
    one, other = extended[: len(rows[0])], extended[len(rows[0]) :]
    drawn = permuted_sums(one, other, draws, rng)

    def groups(sums: tuple[Array, Array]) -> tuple[Group, Group]:
        return _group(items, sums[0]), _group(items, sums[1])

    return Dealt(seen=groups((one.sum(axis=0), other.sum(axis=0))), drawn=groups(drawn))


def studentised(groups: tuple[Group, Group], *, alpha: float, scale: Scale) -> Array:
    """Return PCR of the first group minus that of the second over its standard error.

    By the delta method; 0 where there is no difference, even without any spread.
    """
    (first, one), (second, other) = (_ratio(group, alpha, scale) for group in groups)
    return _over_error(first - second, one + other)


def studentised_performance(groups: tuple[Group, Group]) -> Array:
    """Return M of the first group minus that of the second over its standard error."""
    first, second = groups
    gap = first.scores.performance - second.scores.performance
    return _over_error(gap, np.maximum(first.spread[0] + second.spread[0], 0.0))


def _over_error(gap: Array, variance: Array) -> Array:
    return np.where(gap == 0, 0.0, gap / np.sqrt(variance))


def _products(items: Measured, rows: Array, sizes: Array) -> Array:
    """Return the influence of each cluster on M and on C, its size, and their products.

    The influence is (N - n) times the score minus the score without the cluster, of N items in both
    groups together: for a mean, the sum of its items less the mean.
    """
    without, whole, total = (items.scores(leave_one_out(rows)), items.scores(rows.sum(axis=0)),
                             sizes.sum())  # fmt: skip
    m, c = (
        (total - sizes) * (all_of - each)
        for all_of, each in (
            (whole.performance, without.performance),
            (whole.consistency, without.consistency),
        )
    )
    n = sizes
    return np.column_stack([m, c, n, m * m, m * c, c * c, m * n, c * n, n * n])


_PRODUCTS = 9


def _group(items: Measured, sums: Array) -> Group:
    m, c, n, mm, mc, cc, mn, cn, nn = np.moveaxis(sums[..., -_PRODUCTS:], -1, 0)
    by_m, by_c = m / n, c / n
    spread = (
        mm - 2 * by_m * mn + by_m * by_m * nn,
        mc - by_m * cn - by_c * mn + by_m * by_c * nn,
        cc - 2 * by_c * cn + by_c * by_c * nn,
    )
    variance, both, other = (each / (n * n) for each in spread)
    return Group(items.scores(sums[..., :-_PRODUCTS]), (variance, both, other))


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
