"""Scores of a file's splits, and of resamples of their items; nothing here knows of PCR yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np

from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.pcr.ratio import Array
from coreeval.evaluation.pcr.resampling import bootstrap_sums, leave_one_out, permuted_sums
from coreeval.evaluation.scoring import Consistency, Performance, PerItem

_DRAWN, _DEALT = 1, 2
"""Streams of random numbers under one seed; 0 would be the stream of the bare seed."""
_WHOSE = ("performance on the originals", "performance on the modified", "consistency")


class Scores(NamedTuple):
    """The three scores of a set of items, or of many sets in arrays of one shape."""

    performance: Array
    """M of the original answers."""
    modified: Array
    """M of the modified answers."""
    consistency: Array
    """C."""


@dataclass(frozen=True, kw_only=True)
class Replicates:
    """What a split scores, and would score with other items."""

    n: int
    scored: int
    """Items with a reference: those that performance rests on."""
    seen: Scores
    drawn: Scores
    """Of each bootstrap draw."""
    left_out: Scores
    """Without each item."""


@dataclass(frozen=True, kw_only=True)
class Resampled:
    """The splits of a file, and the two compared ones with their items dealt out anew."""

    splits: Mapping[str, Replicates]
    dealt: tuple[Scores, Scores]
    """Scores of the first and the second split of each permutation."""
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Items:
    """Rows of sufficient statistics, and how their sums become scores."""

    rows: Array
    parts: tuple[PerItem, PerItem, PerItem]

    def scores(self, sums: Array) -> Scores:
        ends = np.cumsum([part.sums.shape[-1] for part in self.parts])
        cut = np.split(sums, ends[:-1], axis=-1)
        return Scores(*(part.value(own) for part, own in zip(self.parts, cut, strict=True)))


def resample(
    pairs: Sequence[Pair],
    *,
    performance: Performance,
    consistency: Consistency,
    compared: tuple[str, str],
    draws: int,
    seed: int,
) -> Resampled:
    """Score all pairs at once and resample the items of each split, both answers together.

    At once, so that a score over classes has the same classes in every split. Each split draws from
    its own stream of random numbers: one more split changes nothing for the others.
    """
    items = _measured(pairs, performance, consistency)
    names = np.array([pair.split for pair in pairs])
    has_reference = np.array([bool(pair.reference.strip()) for pair in pairs])
    first, second = (items.rows[names == name] for name in compared)
    dealt = permuted_sums(first, second, draws, np.random.default_rng([seed, _DEALT]))
    return Resampled(
        splits={
            name: _replicates(items, names == name, has_reference, draws, _stream(seed, name))
            for name in dict.fromkeys(pair.split for pair in pairs)
        },
        dealt=(items.scores(dealt[0]), items.scores(dealt[1])),
        notes=_notes(pairs, items.parts),
    )


def _measured(pairs: Sequence[Pair], performance: Performance, consistency: Consistency) -> _Items:
    due, again = [pair.reference for pair in pairs], [pair.modified_reference for pair in pairs]
    parts = (
        performance(due, [pair.original_output for pair in pairs]),
        performance(again, [pair.modified_output for pair in pairs]),
        consistency(pairs),
    )
    return _Items(rows=np.hstack([part.sums for part in parts]), parts=parts)


def _replicates(
    items: _Items, chosen: Array, has_reference: Array, draws: int, rng: np.random.Generator
) -> Replicates:
    rows = items.rows[chosen]
    return Replicates(
        n=len(rows),
        scored=int(np.count_nonzero(has_reference[chosen])),
        seen=items.scores(rows.sum(axis=0)),
        drawn=items.scores(bootstrap_sums(rows, draws, rng)),
        left_out=items.scores(leave_one_out(rows)),
    )


def _stream(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, _DRAWN, crc32(name.encode())])


def _notes(pairs: Sequence[Pair], parts: Sequence[PerItem]) -> tuple[str, ...]:
    """Return what a reader must know of the scores, a sentence each."""
    empty = sum(not pair.reference.strip() for pair in pairs)
    lost = sum(bool(pair.reference and not pair.modified_reference) for pair in pairs)
    found = [
        f"{empty} of {len(pairs)} items have no reference: they count for consistency only"
        if empty
        else "",
        f"{lost} of {len(pairs)} items do not have the right option's text among their modified "
        "options: they do not count for the decline"
        if lost
        else "",
        *(
            f"{whose}: {note}"
            for whose, part in zip(_WHOSE, parts, strict=True)
            for note in part.notes
        ),
    ]
    return tuple(dict.fromkeys(filter(None, found)))
