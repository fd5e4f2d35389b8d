"""The local backend: GDELT's files on disk, searched through their index."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from coreeval.schema import (
    Coverage,
    EntityQuery,
    NamedEntity,
    NoEvidence,
    Precision,
    Retrieval,
    Window,
)
from coreeval.tools.gdelt.folder import open_folder
from coreeval.tools.gdelt.parts.shelf import PRECISIONS, Shelf
from coreeval.tools.gdelt.search.batch import search
from coreeval.tools.gdelt.search.commonest import commonest
from coreeval.tools.gdelt.search.coverage import coverage, uncovered
from coreeval.tools.gdelt.search.views import View
from coreeval.tools.gdelt.stats import StoreStats


class LocalKnowledge:
    """A knowledge source over one store; safe to ask from several threads."""

    name = "local"
    remote = False

    def __init__(self, store: Path, *, news: Path, min_precision: Precision) -> None:
        self._worst = PRECISIONS.index(min_precision)
        self._news = news
        self._idle = threading.Condition()
        self._asked = 0
        """Searches that are going on; the store cannot be closed under them."""
        self._shelf = Shelf(store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the store's memory."""
        with self._idle:
            self._idle.wait_for(lambda: not self._asked)
            self._shelf.close()

    @contextmanager
    def _open(self) -> Iterator[Shelf]:
        with self._idle:
            self._asked += 1
        try:
            with self._shelf.undamaged(IndexError):
                yield self._shelf
        finally:
            with self._idle:
                self._asked -= 1
                self._idle.notify_all()

    def stats(self) -> StoreStats:
        """Return what the store was made of."""
        return self._shelf.stats()

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, best first."""
        return await asyncio.to_thread(self._fetch, queries, window, k)

    def _fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        with self._open() as shelf:
            best = search(shelf, queries, window, k, self._worst)
            found = {
                query.id: shelf.evidence(articles)
                for query, articles in zip(queries, best, strict=True)
            }
        missing = [query for query, evidence in found.items() if not evidence]
        reason: NoEvidence = "no_news"
        if missing and not View.of(self._shelf, window, self._worst).any():
            reason = "not_covered"
        return Retrieval(by_query=found, reasons=dict.fromkeys(missing, reason))

    def coverage(self, window: Window) -> Coverage:
        """Tell what the store holds inside the window at the precision asked for."""
        return coverage(self._shelf.articles, self._worst, window)

    def require(self, window: Window) -> Coverage:
        """Return the coverage of a window that holds at least one article.

        Raises:
            KnowledgeError: it holds none; the message says what the store covers.
        """
        found = self.coverage(window)
        if not found.articles:
            raise uncovered(self._shelf.articles, self._worst, window, str(self._news))
        return found

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the commonest names in the window's articles, each with its commonest type.

        A stated type counts more than `other`, which stands for none.
        """
        with self._open() as shelf:
            return commonest(View.of(shelf, window, self._worst))


def open_local(path: Path, cache: Path, *, min_precision: Precision = "cluster") -> LocalKnowledge:
    """Open the news under a folder, reading its files only if they changed since the last time.

    Raises:
        KnowledgeError: no such folder, or no GDELT articles in it.
    """
    return LocalKnowledge(open_folder(path, cache), news=path, min_precision=min_precision)
