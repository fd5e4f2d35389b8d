"""A view of a store through a window and a precision, with all of its parts as one.

Articles and names are numbered across all parts, so that lists ascend as in a part.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from coreeval.schema import Window
from coreeval.tools.gdelt.index.news_index import (
    ArticleColumns,
    NewsIndex,
    PartIndex,
    encode_language,
)
from coreeval.tools.gdelt.index.storage import Flags, Items, Numbers

ONE = np.uint32(1)
NOTHING: Items = np.zeros(0, np.uint32)


@dataclass(frozen=True, slots=True)
class PartView:
    """The items of a part that are in a window."""

    index: PartIndex
    bounds: NDArray[np.uint32]
    """The first item in the window, and the first one after it."""
    whole: bool
    """Whether all of the part's articles are in the window."""

    @classmethod
    def of(cls, index: PartIndex, window: Window) -> "PartView":
        """Return the view of a part through a window."""
        ends = np.array([epoch_seconds(window.start), epoch_seconds(window.end)], np.int64)
        first, behind = index.published.searchsorted(ends).tolist()
        bounds = np.array([first << 1, behind << 1], np.uint32)
        return cls(index, bounds, first == 0 and behind == len(index.published))

    def inside(self, items: Items) -> Items:
        """Return the part of an ascending list that is in the window, numbered as in the store."""
        if not self.whole:
            first, behind = items.searchsorted(self.bounds).tolist()
            items = items[first:behind]
        return items + np.uint32(self.index.first << 1)

    def counts(self, items: Items) -> Flags:
        """Return for each item of a list in any order whether it is in the window."""
        if self.whole:
            return np.ones(len(items), bool)
        inside: Flags = (items >= self.bounds[0]) & (items < self.bounds[1])
        return inside

    def mentions(self, names: Numbers, deep: int | None) -> tuple[Numbers, NDArray[np.intp]]:
        """Return the result of `StoreView.mentions` for this part's own numbers."""
        starts = self.index.mentions.starts
        ends = zip(starts[names].tolist(), starts[names + ONE].tolist(), strict=True)
        spans = [slice(*both) for both in ends]
        items = np.concatenate([self.index.mentions.items[span] for span in spans])
        counts = self.counts(items) & (items & ONE).astype(bool)
        if deep is not None:
            counts &= np.concatenate([self.index.depths[span] for span in spans]) < deep
        which = np.repeat(np.arange(len(names)), [span.stop - span.start for span in spans])
        return (items[counts] >> ONE) + np.uint32(self.index.first), which[counts]


@dataclass(frozen=True, slots=True)
class StoreView:
    """The items of a store that match a window and a precision, for one batch of queries."""

    parts: tuple[PartView, ...]
    articles: ArticleColumns
    worst: int
    """The least certain precision to accept, as its position in `PRECISIONS`."""
    source: int | None = None
    """The only source to accept, as its position in `SOURCES`; None accepts all."""
    language: str | None = None
    """The only language to accept; None accepts all."""
    _terms: dict[str, list[tuple[PartView, int]]] = field(default_factory=dict)
    _words: dict[str, Items] = field(default_factory=dict)
    _names: dict[str, Items] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        shelf: NewsIndex,
        window: Window,
        worst: int,
        source: int | None = None,
        language: str | None = None,
    ) -> "StoreView":
        """Return the view of a store through a window, a precision, a source and a language."""
        parts = tuple(PartView.of(index, window) for index in shelf.indexes)
        return cls(parts, shelf.articles, worst, source, language)

    def any(self) -> bool:
        """Return whether there are any articles."""
        return any(
            self.sure(np.arange(*(part.bounds >> ONE), dtype=np.uint32) + part.index.first).any()
            for part in self.parts
        )

    def count_articles(self, word: str) -> int:
        """Return the number of articles that have a word, in any window."""
        return sum(len(part.index.words.of(term)) for part, term in self._parts_with(word))

    def words(self, word: str) -> Items:
        """Return the articles in the window that have a word."""
        if word not in self._words:
            known = self._parts_with(word)
            self._words[word] = join_ascending(
                [part.inside(part.index.words.of(term)) for part, term in known]
            )
        return self._words[word]

    def names(self, word: str) -> Items:
        """Return the names that contain a word, in any window."""
        if word not in self._names:
            lists = [part.index.names.of(term) + np.uint32(part.index.first_name << 1)
                     for part, term in self._parts_with(word)]  # fmt: skip
            self._names[word] = join_ascending(lists)
        return self._names[word]

    def _parts_with(self, word: str) -> list[tuple[PartView, int]]:
        """Return the parts that contain a word, with the word's number there."""
        if word not in self._terms:
            found = ((part, part.index.terms.find(word)) for part in self.parts)
            self._terms[word] = [(part, term) for part, term in found if term is not None]
        return self._terms[word]

    def articles_of_theme(self, theme: int) -> Items:
        """Return the articles in the window that have a theme."""
        return join_ascending([part.inside(part.index.themes.of(theme)) for part in self.parts])

    def sure(self, articles: Numbers) -> Flags:
        """Return for each article whether its source, language and precision match."""
        counts: Flags = self.articles.precision[articles] <= self.worst
        if self.source is not None:
            counts &= self.articles.source[articles] == self.source
        if self.language is not None:
            counts &= self.articles.language[articles] == encode_language(self.language)
        return counts

    def split_by_part(self, names: Numbers) -> Iterator[tuple[PartView, slice, Numbers]]:
        """Yield each part with any of the names, their slice of `names` and their numbers in it."""
        firsts = np.array([part.index.first_name for part in self.parts], np.uint32)
        borders = [*names.searchsorted(firsts).tolist(), len(names)]
        for part, here in zip(
            self.parts, itertools.starmap(slice, itertools.pairwise(borders)), strict=True
        ):
            if here.start < here.stop:
                yield part, here, names[here] - np.uint32(part.index.first_name)

    def mentions(self, names: Numbers, deep: int | None = None) -> tuple[Numbers, NDArray[np.intp]]:
        """Return the articles in the window in which GKG mentions one of the names, with the names.

        If `deep` is given and a day has very many articles, only that many of the day are returned.
        """
        found = [
            (articles, which + here.start)
            for part, here, own in self.split_by_part(names)
            for articles, which in [part.mentions(own, deep)]
        ]
        if not found:
            return NOTHING, np.zeros(0, np.intp)
        return np.concatenate([one[0] for one in found]), np.concatenate([one[1] for one in found])


def join_ascending(lists: Sequence[Items]) -> Items:
    """Return ascending lists joined as one; each begins after the end of the previous one."""
    if len(lists) == 1:
        return lists[0]
    return np.concatenate(lists) if lists else NOTHING


def epoch_seconds(time: datetime) -> int:
    """Return a time in epoch seconds, as in a store."""
    return int(time.timestamp())
