"""One part of a store, as far as a window and a precision show it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from coreeval.schema import Window
from coreeval.tools.gdelt.parts.index import Index
from coreeval.tools.gdelt.parts.postings import Flags, Items, Numbers, Postings

Number = TypeVar("Number", bound=np.generic)
ONE = np.uint32(1)
NOTHING: Items = np.zeros(0, np.uint32)


@dataclass(frozen=True, slots=True)
class View:
    """A part and what of it counts."""

    index: Index
    worst: int
    """The least certain precision, as its place in `PRECISIONS`."""
    bounds: NDArray[np.uint32]
    """The first item of the window, and the first behind it."""
    whole: bool
    """Whether all of the part's articles are in the window."""
    _terms: dict[str, int | None] = field(default_factory=dict)

    @classmethod
    def of(cls, index: Index, window: Window, worst: int) -> "View":
        """Return what a window shows of a part."""
        ends = np.array([seconds(window.start), seconds(window.end)], np.int64)
        first, behind = index.published.searchsorted(ends).tolist()
        bounds = np.array([first << 1, behind << 1], np.uint32)
        return cls(index, worst, bounds, first == 0 and behind == len(index.published))

    @property
    def empty(self) -> bool:
        """Whether no article is in the window."""
        return bool(self.bounds[0] >= self.bounds[1])

    def words(self, word: str) -> Items:
        """Return the articles that have a word, those outside the window too."""
        return self._listed(self.index.words, word)

    def names(self, word: str) -> Items:
        """Return the names that have a word."""
        return self._listed(self.index.names, word)

    def _listed(self, postings: Postings, word: str) -> Items:
        if word not in self._terms:
            self._terms[word] = self.index.terms.find(word)
        term = self._terms[word]
        return NOTHING if term is None else postings.of(term)

    def inside(self, items: Items) -> Items:
        """Return the part of an ascending list that is in the window."""
        if self.whole:
            return items
        first, behind = items.searchsorted(self.bounds).tolist()
        return items[first:behind]

    def sure(self, articles: Numbers) -> Flags:
        """Tell whose publication time is certain enough."""
        return self.index.precision[articles] <= self.worst

    def counting(self, items: Items) -> Flags:
        """Tell which items of any lists are articles of the window, and certain enough."""
        found = self.sure(items >> ONE)
        if not self.whole:
            found &= (items >= self.bounds[0]) & (items < self.bounds[1])
        return found

    def mentions(self, names: Numbers, deep: int | None = None) -> tuple[Numbers, NDArray[np.intp]]:
        """Return the articles of the window in which GKG names one of some names, and which it is.

        `deep` leaves out what is not among so many of its day, where a day has very many.
        """
        starts = self.index.mentions.starts
        ends = zip(starts[names].tolist(), starts[names + ONE].tolist(), strict=True)
        spans = [slice(*both) for both in ends]
        items = _joined(self.index.mentions.items, spans)
        counts = (items & ONE).astype(bool)
        if deep is not None:
            counts &= _joined(self.index.depths, spans) < deep
        if not self.whole:
            counts &= (items >= self.bounds[0]) & (items < self.bounds[1])
        which = np.repeat(np.arange(len(names)), [span.stop - span.start for span in spans])
        return items[counts] >> ONE, which[counts]


def _joined(column: NDArray[Number], spans: Sequence[slice]) -> NDArray[Number]:
    return np.concatenate([column[span] for span in spans]) if spans else column[:0]


def seconds(time: datetime) -> int:
    """Return the epoch seconds that a store holds."""
    return int(time.timestamp())
