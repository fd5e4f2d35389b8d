"""Pairs as rows of sufficient statistics: whatever items are chosen, their sums give the scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.scoring import Consistency, Performance, PerItem
from coreeval.evaluation.scoring.items import averaged, mean
from coreeval.evaluation.statistics import Array

_WHOSE = ("performance on the originals", "performance on the modified", "consistency")


class Scores(NamedTuple):
    """The three scores of a set of items, or of many sets in arrays of one shape."""

    performance: Array
    """M of the original answers."""
    modified: Array
    """M of the modified answers."""
    consistency: Array
    """C."""
    right: Array
    """Mean of the items' own performance, from 0 to 1; M itself if the metric is such a mean."""
    right_consistent: Array
    """Mean of performance times consistency: what right items add to C."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What each pair adds to the scores."""

    rows: Array
    """Shape (pairs, statistics)."""
    parts: tuple[PerItem, ...]
    """One for each of `Scores`."""

    def scores(self, sums: Array) -> Scores:
        """Return the scores of sums over rows, shape (..., statistics)."""
        ends = np.cumsum([part.sums.shape[-1] for part in self.parts])
        cut = np.split(sums, ends[:-1], axis=-1)
        return Scores(*(part.value(own) for part, own in zip(self.parts, cut, strict=True)))


def measured(pairs: Sequence[Pair], performance: Performance, consistency: Consistency) -> Measured:
    """Score all pairs at once, so that a score over classes has the same ones in every split."""
    due, again = [pair.reference for pair in pairs], [pair.modified_reference for pair in pairs]
    return measured_parts(
        performance(due, [pair.original_output for pair in pairs]),
        performance(again, [pair.modified_output for pair in pairs]),
        consistency(pairs),
    )


def measured_parts(performance: PerItem, modified: PerItem, consistency: PerItem) -> Measured:
    """Put the scores of the same pairs together with what they say jointly, item by item."""
    right, same = _own(performance), _own(consistency)
    parts = (performance, modified, consistency, mean(right), mean(right * same))
    return Measured(rows=np.hstack([part.sums for part in parts]), parts=parts)


def measured_together(each: Sequence[Measured]) -> Measured:
    """Average the scores of the same pairs asked in several ways; each keeps all of its answers."""
    parts = tuple(averaged(parts) for parts in zip(*(one.parts for one in each), strict=True))
    return Measured(rows=np.hstack([part.sums for part in parts]), parts=parts)


def _own(part: PerItem) -> Array:
    """Return the score of each item by itself as a share of the best one; 0 if it has none."""
    found = np.nan_to_num(part.value(part.sums))
    return np.asarray(found / max(float(found.max(initial=0.0)), np.finfo(float).tiny))


def notes_on(pairs: Sequence[Pair], items: Measured) -> tuple[str, ...]:
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
            for whose, part in zip(_WHOSE, items.parts, strict=False)
            for note in part.notes
        ),
    ]
    return tuple(dict.fromkeys(filter(None, found)))
