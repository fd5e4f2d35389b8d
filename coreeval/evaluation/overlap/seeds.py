"""Where longer texts have runs of letters (seeds) in common with items: an inverted index."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.overlap.boilerplate import Boilerplate
from coreeval.evaluation.overlap.letters import Letters, letters_of
from coreeval.evaluation.overlap.runs import Codes, hash_runs
from coreeval.evaluation.overlap.shingles import Places, chunks_of

SEED, SEED_UNSPACED = 10, 5
"""Letters of a seed: about two words. With 30 % of its words replaced a third of a text's stay."""
LEAST = 40
"""Letters that an item needs, see `UNSPACED_WEIGHT`. About eight words: shorter texts stand in
long ones by chance."""
LONGER = 1.25
"""A text is searched for passages of an item if it is longer by this factor."""
SEEDS = 0.15
"""Least share of an item's seeds in a passage that is compared with it, two at least."""
SHARED, SHARE = 5, 0.005
"""A seed that more than 5 items and more than 0.5 % of them have is a set phrase: it is dropped."""
_CELLS = 1 << 26


@dataclass(frozen=True)
class Match:
    """Seeds of an item that lie within about its length in a longer text."""

    item: int
    host: int
    """The longer text."""
    start: int
    """The letter of the longer text that the item's first letter would be."""
    end: int
    """The letter after the item's last."""


class SeedIndex:
    """The seeds of items, in order of their hashes.

    Args:
        items: Texts to find.
        boilerplate: Passages that do not count.
    """

    def __init__(self, items: Sequence[str], boilerplate: Boilerplate) -> None:
        rows, sizes, first = [], [np.zeros(0, np.int64)], 0
        for chunk in chunks_of(items):
            letters = letters_of(chunk).without(boilerplate)
            rows.append(_seeds(letters, first, letters.weights >= LEAST))
            sizes.append(letters.sizes)
            first += len(chunk)
        self.sizes = np.concatenate(sizes)
        self._hashes, self._owners, self._offsets = _few(rows, max(SHARED, SHARE * len(items)))
        self._total = np.bincount(self._owners, minlength=len(items))
        self._known = np.zeros(_CELLS, bool)
        self._known[_cells(self._hashes)] = True

    def search(self, letters: Letters, first: int | None) -> Iterator[Match]:
        """Yield the best match of each item in each of some longer texts.

        Args:
            letters: The longer texts.
            first: The place of the first of them among the items; None if they are others.
        """
        hashes, whole = hash_runs(letters.codes, SEED, SEED_UNSPACED)
        at = np.flatnonzero(whole & self._known[_cells(hashes)])
        low, high = (np.searchsorted(self._hashes, hashes[at], side) for side in ("left", "right"))
        counts = high - low
        at = np.repeat(at, counts)
        within = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        seed = np.repeat(low, counts) + within
        item, host = self._owners[seed], letters.owners[at]
        keep = letters.sizes[host] >= LONGER * self.sizes[item]
        if first is not None:
            keep &= item != host + first
        yield from self._best(letters, item[keep], at[keep], self._offsets[seed[keep]])

    def _best(self, letters: Letters, item: Places, at: Places, offset: Places) -> Iterator[Match]:
        """Yield for each item and longer text where most of its seeds lie together."""
        order = np.lexsort((at, letters.owners[at], item))
        item, at, offset = item[order], at[order], offset[order]
        host = letters.owners[at]
        number = np.cumsum(_changes(item) | _changes(host)) if len(item) else item
        keys = number << 40 | at
        span = (LONGER * self.sizes[item]).astype(np.int64)
        ends = np.searchsorted(keys, keys + span)
        counts = ends - np.arange(len(keys))
        enough = counts >= np.maximum(2, SEEDS * self._total[item])
        places = np.flatnonzero(enough)
        places = places[np.lexsort((-counts[places], number[places]))]
        for place in places[_changes(number[places])].tolist():
            last, one, other = int(ends[place]) - 1, int(item[place]), int(host[place])
            base = int(letters.starts[other])
            start = int(at[place] - offset[place]) - base
            end = int(at[last] - offset[last]) - base + int(self.sizes[one])
            yield Match(one, other, max(start, 0), min(end, int(letters.sizes[other])))


def _seeds(
    letters: Letters, first: int, long: npt.NDArray[np.bool_]
) -> tuple[Codes, Places, Places]:
    """Return the hashes of the seeds of long texts, the place of the text, and that in it."""
    hashes, whole = hash_runs(letters.codes, SEED, SEED_UNSPACED)
    at = np.flatnonzero(whole & long[letters.owners])
    owners = letters.owners[at]
    return hashes[at], owners + first, at - letters.starts[owners]


def _few(rows: Sequence[tuple[Codes, Places, Places]], most: float) -> tuple[Codes, Places, Places]:
    """Return seeds in order of their hashes, without those that occur more than `most` times."""
    empty = (np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    hashes, owners, offsets = map(np.concatenate, zip(empty, *rows, strict=True))
    order = np.argsort(hashes, kind="stable")
    hashes, owners, offsets = hashes[order], owners[order], offsets[order]
    number = np.cumsum(_changes(hashes)) - 1
    few = np.bincount(number, minlength=1)[number] <= most if len(number) else number > 0
    return hashes[few], owners[few], offsets[few]


def _changes(values: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    """Return where a value differs from the one before it; the first does."""
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]


def _cells(hashes: Codes) -> Places:
    return (hashes % np.uint64(_CELLS)).astype(np.int64)
