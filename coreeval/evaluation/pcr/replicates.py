"""Scores of splits, of resamples of their items, and of items permuted between two splits.

Clusters are resampled: all items about one document together, any other item by itself.

Plain permutation tests whether the splits are alike in every respect; a split that is only harder,
with the same PCR, then counts as different far too often if it also has another size (in a fifth of
such studies in benchmarks/pcr.py). Divided by its standard error, the difference alone is tested:
the test is exact for alike splits and asymptotically right for others (Janssen 1997; Chung and
Romano 2013). Clusters are permuted, and the standard error is that of a ratio of sums over
clusters, so documents with several questions count once and may differ in size (Cochran 1977,
section 6.3).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.metrics import Consistency, Performance
from coreeval.evaluation.pcr.pairs import (
    Counts,
    Flags,
    Pair,
    PairMeasures,
    PairScores,
    assume_outcomes,
    count_statuses,
    list_score_notes,
    mark_unanswered,
    measure_pairs,
    rates_differ,
)
from coreeval.evaluation.pcr.ratio import SLOPES, Scale, performance_consistency_ratio
from coreeval.evaluation.statistics import (
    Array,
    bootstrap_sums,
    cluster_sums,
    leave_one_out,
    number_clusters,
    permute_sums,
)


class GroupScores(NamedTuple):
    """The scores of a group of items with their variances, as arrays over permutations."""

    scores: PairScores
    spread: tuple[Array, Array, Array]
    """Variance of M, covariance of M and C, and variance of C."""


class Permutations(NamedTuple):
    """The scores of both groups, as observed and in each permutation."""

    seen: tuple[GroupScores, GroupScores]
    drawn: tuple[GroupScores, GroupScores]


def permute(
    items: PairMeasures,
    members: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    clusters: NDArray[np.int64],
    draws: int,
    rng: np.random.Generator,
) -> Permutations:
    """Permute clusters between two groups, given a mask of the items of each group."""
    rows = [
        cluster_sums(np.column_stack([items.rows[own], np.ones(own.sum())]), clusters[own])
        for own in members
    ]
    pooled = np.concatenate(rows)
    extended = np.column_stack([pooled[:, :-1], _products(items, pooled[:, :-1], pooled[:, -1])])
    one, other = extended[: len(rows[0])], extended[len(rows[0]) :]
    drawn = permute_sums(one, other, draws, rng)

    def groups(sums: tuple[Array, Array]) -> tuple[GroupScores, GroupScores]:
        return _score_group(items, sums[0]), _score_group(items, sums[1])

    return Permutations(seen=groups((one.sum(axis=0), other.sum(axis=0))), drawn=groups(drawn))


def studentise_pcr(groups: tuple[GroupScores, GroupScores], *, alpha: float, scale: Scale) -> Array:
    """Return PCR of the first group minus that of the second, divided by its standard error.

    The standard error is by the delta method. The result is 0 if there is no difference, even
    without spread.
    """
    (first, one), (second, other) = (_measure_pcr(group, alpha, scale) for group in groups)
    return _divide_by_error(first - second, one + other)


def studentise_performance(groups: tuple[GroupScores, GroupScores]) -> Array:
    """Return M of the first group minus that of the second, divided by its standard error."""
    first, second = groups
    gap = first.scores.performance - second.scores.performance
    return _divide_by_error(gap, np.maximum(first.spread[0] + second.spread[0], 0.0))


def _divide_by_error(gap: Array, variance: Array) -> Array:
    return np.where(gap == 0, 0.0, gap / np.sqrt(variance))


def _products(items: PairMeasures, rows: Array, sizes: Array) -> Array:
    """Return the influence of each cluster on M and on C, its size, and their products.

    The influence is (N - n) times the score minus the score without the cluster, where N is the
    number of items in both groups: for a mean, the sum of the cluster's items minus the mean.
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


def _score_group(items: PairMeasures, sums: Array) -> GroupScores:
    m, c, n, mm, mc, cc, mn, cn, nn = np.moveaxis(sums[..., -_PRODUCTS:], -1, 0)
    by_m, by_c = m / n, c / n
    spread = (
        mm - 2 * by_m * mn + by_m * by_m * nn,
        mc - by_m * cn - by_c * mn + by_m * by_c * nn,
        cc - 2 * by_c * cn + by_c * by_c * nn,
    )
    variance, both, other = (each / (n * n) for each in spread)
    return GroupScores(items.scores(sums[..., :-_PRODUCTS]), (variance, both, other))


def _measure_pcr(group: GroupScores, alpha: float, scale: Scale) -> tuple[Array, Array]:
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


_DRAWN, _DEALT = 1, 2
"""Random streams under one seed; 0 would be the stream of the seed itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitItems:
    """The items of a split, for resampling together with those of other models."""

    measured: PairMeasures
    """Measures of the pairs of all splits."""
    places: Mapping[str, int]
    """Row of each item in `measured`, by item id."""
    clusters: Mapping[str, int]
    """Number of each item's cluster, by item id."""


@dataclass(frozen=True, kw_only=True)
class SplitReplicates:
    """The scores of a split, and their replicates under resampling of items."""

    n: int
    clusters: int
    """The number of clusters resampled; n if no item has a cluster."""
    scored: int
    """The number of items with a reference, which determine performance."""
    unanswered: int
    """The number of items with an unanswered question."""
    statuses: tuple[Counts, Counts]
    """Status counts of the original and of the modified questions."""
    seen: PairScores
    drawn: PairScores
    """Scores of each bootstrap draw."""
    left_out: PairScores
    """Scores without each cluster."""
    items: SplitItems


@dataclass(frozen=True, kw_only=True)
class FileReplicates:
    """The replicates of a file's splits, and permutations of the two compared ones."""

    splits: Mapping[str, SplitReplicates]
    deal: Callable[[], Permutations] = field(repr=False)
    """Permutes the items on first use and caches the result, since references do not need it."""
    notes: tuple[str, ...]
    draws: int
    seed: int
    extremes: tuple["FileReplicates", ...] = field(default=(), repr=False)
    """Replicates under extreme assumptions; empty if unanswered items do not differ.

    First with the unanswered items of the first split right and those of the second wrong, then the
    reverse.
    """


def resample(
    pairs: Sequence[Pair],
    *,
    performance: Performance,
    consistency: Consistency,
    compared: tuple[str, str],
    draws: int,
    seed: int,
) -> FileReplicates:
    """Score all pairs and resample the items of each split, keeping both answers together.

    Each split draws from its own random stream, so adding a split does not change the others.
    """
    items = measure_pairs(pairs, performance, consistency)
    found = resample_measures(items, pairs, compared=compared, draws=draws, seed=seed)
    silent = mark_unanswered(pairs)
    assumed = [
        assume_outcomes(items, pairs, performance, *flags)
        for flags in list_extremes(pairs, silent, compared)
    ]
    return add_extremes(found, assumed, pairs, compared)


def list_extremes(
    pairs: Sequence[Pair], silent: Flags, compared: tuple[str, str]
) -> list[tuple[Flags, Flags]]:
    """Return the unanswered items to count as right and as wrong, for each extreme assumption.

    There are two extremes if the compared splits differ in their numbers of unanswered items,
    otherwise none.
    """
    first, second = (_mark_split(pairs, name) for name in compared)
    if not rates_differ(silent[first], silent[second]):
        return []
    return [(silent & first, silent & second), (silent & second, silent & first)]


def add_extremes(
    found: FileReplicates,
    assumed: Sequence[PairMeasures],
    pairs: Sequence[Pair],
    compared: tuple[str, str],
) -> FileReplicates:
    """Add the replicates under the extreme assumptions to the replicates of a file."""
    made = (
        resample_measures(each, pairs, compared=compared, draws=found.draws, seed=found.seed)
        for each in assumed
    )
    return replace(found, extremes=tuple(made))


def resample_measures(
    items: PairMeasures, pairs: Sequence[Pair], *, compared: tuple[str, str], draws: int, seed: int
) -> FileReplicates:
    """Resample scored pairs; if a compared split has no pairs, all its numbers are undefined."""
    clusters = number_clusters([_cluster(pair) for pair in pairs])
    first, second = (_mark_split(pairs, name) for name in compared)

    def deal_items() -> Permutations:
        if not (first.any() and second.any()):
            return _NO_PERMUTATIONS
        rng = np.random.default_rng([seed, _DEALT])
        return permute(items, (first, second), clusters, draws, rng)

    return FileReplicates(
        splits={
            name: _replicate_split(
                items, pairs, _mark_split(pairs, name), clusters, draws, _stream(seed, name)
            )
            for name in dict.fromkeys([*(pair.split for pair in pairs), *compared])
        },
        deal=cache(deal_items),
        notes=list_score_notes(pairs, items),
        draws=draws,
        seed=seed,
    )


def _replicate_split(
    items: PairMeasures,
    pairs: Sequence[Pair],
    chosen: NDArray[np.bool_],
    clusters: NDArray[np.int64],
    draws: int,
    rng: np.random.Generator,
) -> SplitReplicates:
    own = [(place, pair) for place, pair in enumerate(pairs) if chosen[place]]
    if not own:
        return _NOTHING
    sums = cluster_sums(items.rows[chosen], clusters[chosen])
    mine = [pair for _, pair in own]
    return SplitReplicates(
        n=len(own),
        clusters=len(sums),
        scored=sum(bool(pair.reference.strip()) for pair in mine),
        unanswered=int(mark_unanswered(mine).sum()),
        statuses=count_statuses(mine),
        seen=items.scores(sums.sum(axis=0)),
        drawn=items.scores(bootstrap_sums(sums, draws, rng)),
        left_out=items.scores(leave_one_out(sums)),
        items=SplitItems(
            measured=items,
            places={pair.id: place for place, pair in own},
            clusters={pair.id: int(clusters[place]) for place, pair in own},
        ),
    )


def draw_jointly(
    several: Sequence[SplitItems], ids: Sequence[str], name: str, *, draws: int, seed: int
) -> list[PairScores]:
    """Return each model's scores on a split's shared items, as observed and for each draw.

    All models get the same draws of the same clusters, those of the first model, so effects of item
    difficulty that all models share cancel out.

    Returns:
        Scores of shape (1 + draws,); the first is the observed score, with each item counted once.
    """
    clusters = np.array([several[0].clusters[each] for each in ids], np.int64)
    found = []
    for own in several:
        sums = cluster_sums(own.measured.rows[[own.places[each] for each in ids]], clusters)
        drawn = bootstrap_sums(sums, draws, _stream(seed, name))
        found.append(own.measured.scores(np.vstack([sums.sum(axis=0), drawn])))
    return found


def _mark_split(pairs: Sequence[Pair], name: str) -> NDArray[np.bool_]:
    return np.fromiter((pair.split == name for pair in pairs), np.bool_, len(pairs))


def _cluster(pair: Pair) -> str:
    return f"cluster {pair.cluster}" if pair.cluster else f"item {pair.split} {pair.id}"


def _stream(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, _DRAWN, crc32(name.encode())])


_UNKNOWN = PairScores(*[np.array(np.nan)] * 5)
_NONE = PairScores(*[np.array([np.nan])] * 5)
_NOTHING = SplitReplicates(
    n=0,
    clusters=0,
    scored=0,
    unanswered=0,
    statuses=({}, {}),
    seen=_UNKNOWN,
    drawn=_NONE,
    left_out=_NONE,
    items=SplitItems(
        measured=PairMeasures(rows=np.zeros((0, 0)), parts=()), places={}, clusters={}
    ),
)
_NO_PERMUTATIONS = Permutations(
    *[(GroupScores(_UNKNOWN, _UNKNOWN[:3]), GroupScores(_UNKNOWN, _UNKNOWN[:3]))] * 2
)
"""Placeholder for a split without items: its scores, and those compared with it, are undefined."""
