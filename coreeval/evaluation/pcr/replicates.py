"""Scores of a file's splits, and of resamples of their items; nothing here knows of PCR yet.

What is resampled are clusters: all items about one document together, any other item by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.pcr.measured import Measured, Scores, measured, notes_on
from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.pcr.permutation import Dealt, Group, deal
from coreeval.evaluation.pcr.statuses import (
    Counts,
    Flags,
    assume,
    count_statuses,
    rates_differ,
    unanswered,
)
from coreeval.evaluation.resampling import bootstrap_sums, cluster_sums, leave_one_out
from coreeval.evaluation.scoring import Consistency, Performance

_DRAWN, _DEALT = 1, 2
"""Streams of random numbers under one seed; 0 would be the stream of the bare seed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Items:
    """The items of a split, for whoever resamples them together with those of another model."""

    measured: Measured
    """Of all splits."""
    places: Mapping[str, int]
    """Row of each item in `measured`, by its id."""
    clusters: Mapping[str, str]
    """By the item's id."""


@dataclass(frozen=True, kw_only=True)
class Replicates:
    """What a split scores, and would score with other items."""

    n: int
    clusters: int
    """As many as are resampled; n where no item has a cluster."""
    scored: int
    """Items with a reference: those that performance rests on."""
    unanswered: int
    """Items of which a question was not answered."""
    statuses: tuple[Counts, Counts]
    """Of the original and of the modified questions."""
    seen: Scores
    drawn: Scores
    """Of each bootstrap draw."""
    left_out: Scores
    """Without each cluster."""
    items: Items


@dataclass(frozen=True, kw_only=True)
class Resampled:
    """The splits of a file, and the two compared ones with their items dealt out anew."""

    splits: Mapping[str, Replicates]
    deal: Callable[[], Dealt] = field(repr=False)
    """Permutes the items; remembers the result, since references need none."""
    notes: tuple[str, ...]
    draws: int
    seed: int
    extremes: tuple["Resampled", ...] = field(default=(), repr=False)
    """Where the splits differ in unanswered items: all of the first split right and of the second
    wrong, then the reverse."""


def resample(
    pairs: Sequence[Pair],
    *,
    performance: Performance,
    consistency: Consistency,
    compared: tuple[str, str],
    draws: int,
    seed: int,
) -> Resampled:
    """Score all pairs and resample the items of each split, both answers together.

    Each split draws from its own stream of random numbers: one more changes nothing for the others.
    """
    items = measured(pairs, performance, consistency)
    found = resample_measured(items, pairs, compared=compared, draws=draws, seed=seed)
    silent = unanswered(pairs)
    assumed = [
        assume(items, pairs, performance, *flags) for flags in extremes_of(pairs, silent, compared)
    ]
    return with_extremes(found, assumed, pairs, compared)


def extremes_of(
    pairs: Sequence[Pair], silent: Flags, compared: tuple[str, str]
) -> list[tuple[Flags, Flags]]:
    """Return which unanswered items to take for right and which for wrong, in each extreme.

    There are two where unanswered items are unlike in number in the compared splits, else none.
    """
    names = np.array([pair.split for pair in pairs], dtype=np.str_)
    first, second = (names == name for name in compared)
    if not rates_differ(silent[first], silent[second]):
        return []
    return [(silent & first, silent & second), (silent & second, silent & first)]


def with_extremes(
    found: Resampled, assumed: Sequence[Measured], pairs: Sequence[Pair], compared: tuple[str, str]
) -> Resampled:
    """Return what was resampled together with the same under other assumptions."""
    made = (
        resample_measured(each, pairs, compared=compared, draws=found.draws, seed=found.seed)
        for each in assumed
    )
    return replace(found, extremes=tuple(made))


def resample_measured(
    items: Measured, pairs: Sequence[Pair], *, compared: tuple[str, str], draws: int, seed: int
) -> Resampled:
    """Resample pairs that have been scored; a compared split without any has no number at all."""
    names = np.array([pair.split for pair in pairs], dtype=np.str_)
    clusters = np.array([_cluster(pair) for pair in pairs], dtype=np.str_)
    first, second = (names == name for name in compared)

    def deal_items() -> Dealt:
        if not (first.any() and second.any()):
            return _NOT_DEALT
        rng = np.random.default_rng([seed, _DEALT])
        return deal(items, (first, second), clusters, draws, rng)

    return Resampled(
        splits={
            name: _replicates(items, pairs, names == name, clusters, draws, _stream(seed, name))
            for name in dict.fromkeys([*(pair.split for pair in pairs), *compared])
        },
        deal=cache(deal_items),
        notes=notes_on(pairs, items),
        draws=draws,
        seed=seed,
    )


def _replicates(
    items: Measured,
    pairs: Sequence[Pair],
    chosen: NDArray[np.bool_],
    clusters: NDArray[np.str_],
    draws: int,
    rng: np.random.Generator,
) -> Replicates:
    own = [(place, pair) for place, pair in enumerate(pairs) if chosen[place]]
    if not own:
        return _NOTHING
    sums = cluster_sums(items.rows[chosen], clusters[chosen])
    mine = [pair for _, pair in own]
    return Replicates(
        n=len(own),
        clusters=len(sums),
        scored=sum(bool(pair.reference.strip()) for pair in mine),
        unanswered=int(unanswered(mine).sum()),
        statuses=count_statuses(mine),
        seen=items.scores(sums.sum(axis=0)),
        drawn=items.scores(bootstrap_sums(sums, draws, rng)),
        left_out=items.scores(leave_one_out(sums)),
        items=Items(
            measured=items,
            places={pair.id: place for place, pair in own},
            clusters={pair.id: str(clusters[place]) for place, pair in own},
        ),
    )


def draw_jointly(
    several: Sequence[Items], ids: Sequence[str], name: str, *, draws: int, seed: int
) -> list[Scores]:
    """Return each model's scores of a split's shared items, as they are and for each draw.

    All models get the same draws of the same clusters, which are the first model's: what makes an
    item hard for all of them cancels between them.

    Returns:
        Scores of shape (1 + draws,), the first of all items each taken once.
    """
    clusters = [several[0].clusters[each] for each in ids]
    found = []
    for own in several:
        sums = cluster_sums(own.measured.rows[[own.places[each] for each in ids]], clusters)
        drawn = bootstrap_sums(sums, draws, _stream(seed, name))
        found.append(own.measured.scores(np.vstack([sums.sum(axis=0), drawn])))
    return found


def _cluster(pair: Pair) -> str:
    return f"cluster {pair.cluster}" if pair.cluster else f"item {pair.split} {pair.id}"


def _stream(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, _DRAWN, crc32(name.encode())])


_UNKNOWN = Scores(*[np.array(np.nan)] * 5)
_NONE = Scores(*[np.array([np.nan])] * 5)
_NOTHING = Replicates(
    n=0,
    clusters=0,
    scored=0,
    unanswered=0,
    statuses=({}, {}),
    seen=_UNKNOWN,
    drawn=_NONE,
    left_out=_NONE,
    items=Items(measured=Measured(rows=np.zeros((0, 0)), parts=()), places={}, clusters={}),
)
_NOT_DEALT = Dealt(*[(Group(_UNKNOWN, _UNKNOWN[:3]), Group(_UNKNOWN, _UNKNOWN[:3]))] * 2)
"""Of a split without items everything is unknown, and so is what it is compared with."""
