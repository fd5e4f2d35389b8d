"""Scores of a file's splits, and of resamples of their items; nothing here knows of PCR yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.pcr.measured import Measured, Scores, measured, notes_on
from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.pcr.permutation import Dealt, Group, deal
from coreeval.evaluation.resampling import bootstrap_sums, leave_one_out
from coreeval.evaluation.scoring import Consistency, Performance

_DRAWN, _DEALT = 1, 2
"""Streams of random numbers under one seed; 0 would be the stream of the bare seed."""


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
    dealt: Dealt
    notes: tuple[str, ...]


_UNKNOWN = Scores(*[np.array(np.nan)] * 3)
_NOTHING = Replicates(
    n=0, scored=0, seen=_UNKNOWN, drawn=Scores(*[np.array([np.nan])] * 3),
    left_out=Scores(*[np.array([np.nan])] * 3),
)  # fmt: skip
_NOT_DEALT = Dealt(*[(Group(_UNKNOWN, _UNKNOWN), Group(_UNKNOWN, _UNKNOWN))] * 2)
"""Of a split without items everything is unknown, and so is what it is compared with."""


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
    return resample_measured(items, pairs, compared=compared, draws=draws, seed=seed)


def resample_measured(
    items: Measured, pairs: Sequence[Pair], *, compared: tuple[str, str], draws: int, seed: int
) -> Resampled:
    """Resample pairs that have been scored; a compared split without any has no number at all."""
    names = np.array([pair.split for pair in pairs], dtype=np.str_)
    has_reference = np.array([bool(pair.reference.strip()) for pair in pairs])
    first, second = (names == name for name in compared)
    return Resampled(
        splits={
            name: _replicates(items, names == name, has_reference, draws, _stream(seed, name))
            for name in dict.fromkeys([*(pair.split for pair in pairs), *compared])
        },
        dealt=deal(items, first, second, draws, np.random.default_rng([seed, _DEALT]))
        if first.any() and second.any()
        else _NOT_DEALT,
        notes=notes_on(pairs, items),
    )


def _replicates(
    items: Measured,
    chosen: NDArray[np.bool_],
    has_reference: NDArray[np.bool_],
    draws: int,
    rng: np.random.Generator,
) -> Replicates:
    rows = items.rows[chosen]
    if not len(rows):
        return _NOTHING
    return Replicates(
        n=len(rows),
        scored=int(np.count_nonzero(has_reference[chosen])),
        seen=items.scores(rows.sum(axis=0)),
        drawn=items.scores(bootstrap_sums(rows, draws, rng)),
        left_out=items.scores(leave_one_out(rows)),
    )


def _stream(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, _DRAWN, crc32(name.encode())])
