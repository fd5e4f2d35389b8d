"""The commonest names of a window."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coreeval.schema import NamedEntity
from coreeval.tools.gdelt.parts.index import KINDS, Index
from coreeval.tools.gdelt.parts.postings import Flags
from coreeval.tools.gdelt.search.views import ONE, Seen, View

NAMES_AT_MOST = 20_000
"""The commonest names of a window; the rest of a month's 400,000 are mentioned once or twice."""
Counts = NDArray[np.int64]
Groups = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Named:
    """The mentions of one part that count, and the names that they are of."""

    index: Index
    counts: Flags
    """Which mentions are in the window and certain enough."""
    names: NDArray[np.intp]
    """The names that have one, in order."""
    totals: Counts
    """How many each has."""

    @classmethod
    def of(cls, part: Seen, worst: int) -> "Named":
        """Count the mentions of each name."""
        index = part.index
        counts = index.precision[index.mentions.items >> ONE] <= worst
        counts &= part.counts(index.mentions.items)
        # Each name has a mention, so that no list is empty, as reduceat wants it.
        totals = np.add.reduceat(counts, index.mentions.starts[:-1], dtype=np.int64)
        names = np.flatnonzero(totals)
        return cls(index, counts, names, totals[names])


def commonest(view: View) -> list[NamedEntity]:
    """Return the commonest names in what is seen, in order of the alphabet, with their types.

    Of names that are mentioned equally often the first of the alphabet are taken. The type is the
    commonest one that is not `other`, which stands for none.
    """
    parts = [Named.of(part, view.worst) for part in view.parts if len(part.index.shown)]
    if not parts:
        return []
    hashes = [part.index.hashes[part.names] for part in parts]
    _, joined = np.unique(np.concatenate(hashes), return_inverse=True)
    groups = np.split(joined, np.cumsum([len(one) for one in hashes])[:-1])
    totals = np.bincount(joined, np.concatenate([part.totals for part in parts]))
    least = (
        np.partition(totals, -NAMES_AT_MOST)[-NAMES_AT_MOST] if len(totals) > NAMES_AT_MOST else 0
    )
    shown = _shown(parts, groups, totals >= least)
    order = sorted(shown, key=lambda group: (-totals[group], shown[group].lower()))
    taken = sorted(order[:NAMES_AT_MOST], key=lambda group: shown[group].lower())
    kinds = _kinds(parts, groups, taken, len(totals))
    return [
        NamedEntity(name=shown[group], type=KINDS[kind])
        for group, kind in zip(taken, kinds, strict=True)
    ]


def _shown(parts: Sequence[Named], groups: Sequence[Groups], wanted: Flags) -> dict[int, str]:
    """Return how the wanted names are written; the same name in several parts is one group."""
    found: dict[int, str] = {}
    for part, group in zip(parts, groups, strict=True):
        there = wanted[group]
        for name, one in zip(part.names[there].tolist(), group[there].tolist(), strict=True):
            text = part.index.shown[name]
            found[one] = min(text, found.get(one, text))
    return found


def _kinds(
    parts: Sequence[Named], groups: Sequence[Groups], taken: Sequence[int], count: int
) -> list[int]:
    """Return the commonest type of each name that was taken."""
    row_of = np.full(count, -1)
    row_of[taken] = np.arange(len(taken))
    table = np.zeros((len(taken), len(KINDS)), np.int64)
    for part, group in zip(parts, groups, strict=True):
        index = part.index
        rows = np.full(len(index.shown), -1)
        rows[part.names] = row_of[group]
        row = np.repeat(rows, index.mentions.counts(np.arange(len(rows), dtype=np.uint32)))
        counts = part.counts & (row >= 0)
        cells = row[counts] * len(KINDS) + index.kinds[counts]
        table += np.bincount(cells, minlength=table.size).reshape(table.shape)
    stated = table[:, :-1]
    best = np.where(stated.any(axis=1), stated.argmax(axis=1), len(KINDS) - 1)
    return [int(kind) for kind in best]
