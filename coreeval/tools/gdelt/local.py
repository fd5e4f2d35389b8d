"""The local backend, which searches GDELT's files on disk through an index.

A folder of plain GDELT files is converted to a store once for each state of the folder. If a store
has no articles in a window, the error describes what it contains.
"""

import asyncio
import hashlib
import itertools
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from coreeval.errors import Interrupted, KnowledgeError
from coreeval.languages import ENGLISH, LANGUAGES
from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    EvidenceSource,
    NamedEntity,
    NoEvidence,
    Precision,
    Retrieval,
    Window,
)
from coreeval.tools.formatting import format_quantity
from coreeval.tools.gdelt.index.news_index import PRECISIONS, SOURCES, ArticleColumns, NewsIndex
from coreeval.tools.gdelt.index.ranking import find_commonest_names, rank_leading, search
from coreeval.tools.gdelt.index.store_catalog import DATABASE, StoreStats, hash_code
from coreeval.tools.gdelt.index.view import StoreView, epoch_seconds
from coreeval.tools.gdelt.left_out import describe_left_out
from coreeval.tools.gdelt.rows import UNDERSTOOD, find_files

ENOUGH_ARTICLES = 1000
"""The number of articles that suffices for a suggested window."""


def open_folder(path: Path, cache: Path, language: str = ENGLISH) -> Path:
    """Return the store of the files under `path`, built if needed; a store is returned as is.

    A new store offers the articles in `language`.

    If two processes need the same store, only one builds it and the other waits.

    Raises:
        KnowledgeError: there is no such folder, or none of its files contains articles.
        Interrupted: a signal stopped it.
    """
    if not path.exists():
        raise KnowledgeError(
            "the news folder does not exist",
            where=str(path),
            hint=f"set knowledge.path to a folder of {UNDERSTOOD}",
        )
    if (path / DATABASE).exists():
        return path
    files = find_files(path)
    name = _folder_fingerprint(path, files)
    store = cache / (name if language == ENGLISH else f"{name}-{language}")
    if not store.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(store.with_suffix(".lock")):
            if not store.exists():
                _make(store, path, language)
    return store


def _make(store: Path, path: Path, language: str = ENGLISH) -> None:
    """Write the store under another name and rename it, so that an unfinished one is never seen.

    Raises:
        Interrupted: a signal stopped it; nothing of the store is kept.
    """
    from coreeval.tools.gdelt.index.build import compact
    from coreeval.tools.gdelt.sync.sync import Around, sync_folder

    work = store.with_suffix(".part")
    if work.exists():
        shutil.rmtree(work)  # left by a killed process; the lock shows that it is not running
    finish = partial(compact, languages=(language,))
    if sync_folder(work, path, around=Around(finish=finish)).stopped:
        shutil.rmtree(work)
        raise Interrupted(
            "stopped while CoreEval was making the news searchable",
            where=str(path),
            hint="run the same command again",
        )
    work.rename(store)


def _folder_fingerprint(path: Path, files: Sequence[Path]) -> str:
    """Return a hash of the names, sizes and times of the files, and of the code that reads them."""
    digest = hashlib.sha256(hash_code().encode())
    for file in files:
        found = file.stat()
        name = file.name if file == path else file.relative_to(path).as_posix()
        digest.update(os.fsencode(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n"))
    return digest.hexdigest()[:16]


DAY_S = 86_400
Times = NDArray[np.int64]


def select_times(
    articles: ArticleColumns,
    worst: int,
    window: Window | None = None,
    source: int | None = None,
    language: str = ENGLISH,
) -> Times:
    """Return the publication times at least as certain as `worst`, in a window or overall."""
    counts = (articles.precision <= worst) & articles.of_language(language)
    if source is not None:
        counts &= articles.source == source
    if window:
        counts &= articles.published >= epoch_seconds(window.start)
        counts &= articles.published < epoch_seconds(window.end)
    return articles.published[counts]


def measure_coverage(
    articles: ArticleColumns,
    worst: int,
    window: Window,
    source: int | None = None,
    language: str = ENGLISH,
) -> Coverage:
    """Return the coverage of a window at a precision, including days without articles."""
    found = select_times(articles, worst, window, source, language)
    if not len(found):
        return Coverage(articles=0, gaps=_day_gaps(window, []))
    since = int(found.min()) // DAY_S
    days = (np.flatnonzero(np.bincount(found // DAY_S - since)) + since).tolist()
    return Coverage(
        articles=len(found),
        first=_from_epoch(found.min()),
        last=_from_epoch(found.max()),
        days=len(days),
        gaps=_day_gaps(window, [_from_epoch(day * DAY_S).date() for day in days]),
    )


def count_publication_days(articles: ArticleColumns) -> dict[str, int]:
    """Return the number of articles by day of publication, in all languages."""
    days, counts = np.unique(articles.published // DAY_S, return_counts=True)
    return {
        f"{_from_epoch(day * DAY_S):%Y-%m-%d}": int(count)
        for day, count in zip(days.tolist(), counts.tolist(), strict=True)
    }


def count_less_certain(
    articles: ArticleColumns, worst: int, window: Window, language: str = ENGLISH
) -> dict[Precision, int]:
    """Return how many more articles each lower precision would offer in a window, if any."""
    known = len(select_times(articles, worst, window, language=language))
    found = {
        PRECISIONS[less]: len(select_times(articles, less, window, language=language)) - known
        for less in range(worst + 1, len(PRECISIONS))
    }
    return {precision: count for precision, count in found.items() if count}


def suggest_window(
    articles: ArticleColumns, worst: int, window: Window, language: str = ENGLISH
) -> Window | None:
    """Return a window up to the last article with many more articles; None if there is none.

    It has twice the articles of the given window, and half of the store's articles or
    `ENOUGH_ARTICLES`. It is as long as the given window, or 2, 4, 8, … times as long.
    """
    known = np.sort(select_times(articles, worst, language=language))
    needed = max(
        2 * len(select_times(articles, worst, window, language=language)),
        min(ENOUGH_ARTICLES, -(-len(known) // 2)),
    )
    if not 0 < needed <= len(known):
        return None
    end = _from_epoch(int(known[-1]) // DAY_S * DAY_S) + timedelta(days=1)
    lacking = end - _from_epoch(int(known[-needed]) // DAY_S * DAY_S)
    length = timedelta(days=max(1, (window.end - window.start).days))
    while length < lacking:
        length *= 2
    first = _from_epoch(int(known[0]) // DAY_S * DAY_S)
    return Window(start=max(first, end - length), end=end)


def describe_window_line(window: Window) -> str:
    """Return advice with the line of a config that sets a window of whole days."""
    span = f"{{start: {window.start:%Y-%m-%d}, end: {window.end:%Y-%m-%d}}}"
    return f"in the config, under knowledge:, write `window: {span}`"


def no_news_error(
    articles: ArticleColumns, worst: int, window: Window, news: str, language: str = ENGLISH
) -> KnowledgeError:
    """Return the error for a window without articles, with the coverage and advice."""
    to_do = [
        f"set knowledge.min_precision: {precision}, which finds {format_quantity(count, 'article')}"
        for precision, count in count_less_certain(articles, worst, window, language).items()
    ][:1]
    if better := suggest_window(articles, worst, window, language):
        to_do.append(describe_window_line(better))
    known = select_times(articles, worst, language=language)
    covers = (
        f"the store covers {_from_epoch(known.min()):%Y-%m-%d}..{_from_epoch(known.max()):%Y-%m-%d}"
        f" at precision {PRECISIONS[worst]} or better ({len(known):,} articles)"
        if len(known)
        else f"the store has no article at precision {PRECISIONS[worst]} or better"
    )
    return KnowledgeError(
        f"no news between {window.start:%Y-%m-%d} and {window.end:%Y-%m-%d}: {covers}",
        where=news,
        hint="; or ".join(to_do) or "change knowledge.window, or add news files for that window",
    )


def _from_epoch(at: int) -> datetime:
    return datetime.fromtimestamp(int(at), tz=UTC)


def _day_gaps(window: Window, days: Sequence[date]) -> tuple[str, ...]:
    """Return the spans of whole days without an article, both ends included."""
    first = window.start.astimezone(UTC).date()
    last = (window.end.astimezone(UTC) - timedelta(microseconds=1)).date()
    one = timedelta(days=1)
    edges = [first - one, *days, last + one]
    return tuple(
        f"{left + one}..{right - one}"
        for left, right in itertools.pairwise(edges)
        if right - left > one
    )


class LocalKnowledge:
    """A knowledge source over one store; safe to use from several threads."""

    name = "local"
    remote = False

    def __init__(
        self,
        store: Path,
        *,
        news: Path,
        min_precision: Precision,
        source: EvidenceSource | None = None,
        language: str = ENGLISH,
    ) -> None:
        self._worst = PRECISIONS.index(min_precision)
        self._source = None if source is None else SOURCES.index(source)
        self._language = language
        self._news = news
        self._idle = threading.Condition()
        self._asked = 0
        """The number of searches in progress, during which the store cannot be closed."""
        self._shelf = NewsIndex(store)

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
    def _open(self) -> Iterator[NewsIndex]:
        with self._idle:
            self._asked += 1
        try:
            with self._shelf.explain_damage(IndexError):
                yield self._shelf
        finally:
            with self._idle:
                self._asked -= 1
                self._idle.notify_all()

    def stats(self) -> StoreStats:
        """Return the statistics of the files that the store was built from."""
        return self._shelf.stats()

    @property
    def unsearchable(self) -> str:
        """Return a message on news that cannot be found, and what to do; "" if there is none."""
        return self._shelf.unsearchable

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, best first."""
        return await asyncio.to_thread(self._fetch, queries, window, k)

    def _fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        with self._open() as index:
            best = search(index, queries, window, k, self._worst, self._source, self._language)
            found = {
                query.id: index.evidence(articles)
                for query, articles in zip(queries, best, strict=True)
            }
        missing = [query for query, evidence in found.items() if not evidence]
        reason: NoEvidence = "no_news"
        view = StoreView.of(self._shelf, window, self._worst, self._source, self._language)
        if missing and not view.any():
            reason = "not_covered"
        return Retrieval(by_query=found, reasons=dict.fromkeys(missing, reason))

    def list_leading(self, window: Window, most: int) -> NDArray[np.int64]:
        """Return the numbers of the window's most widely reported articles, best first.

        A story on several sites is represented by one article.
        """
        with self._open() as index:
            view = StoreView.of(index, window, self._worst, self._source, self._language)
            return rank_leading(view)[:most]

    def read(self, articles: Sequence[int]) -> list[Evidence]:
        """Return one piece of evidence for each article number, in order."""
        with self._open() as index:
            return index.read(articles)

    def coverage(self, window: Window) -> Coverage:
        """Return the store's coverage of the window at the requested precision."""
        return measure_coverage(
            self._shelf.articles, self._worst, window, self._source, self._language
        )

    def span(self) -> Window:
        """Return the window from the first to the last article, in whole days.

        Raises:
            KnowledgeError: no article of the store is searchable.
        """
        self._require_articles()
        published = self._shelf.articles.published // DAY_S * DAY_S
        end = _from_epoch(published.max()) + timedelta(days=1)
        return Window(start=_from_epoch(published.min()), end=end)

    def count_less_certain(self, window: Window) -> dict[Precision, int]:
        """Return how many more articles each lower precision would offer in a window, if any."""
        return count_less_certain(self._shelf.articles, self._worst, window, self._language)

    def suggest_window(self, window: Window) -> Window | None:
        """Return a window up to the last article with many more articles; None if none has."""
        return suggest_window(self._shelf.articles, self._worst, window, self._language)

    def require(self, window: Window) -> Coverage:
        """Return the coverage of a window with at least one article.

        Raises:
            KnowledgeError: the window has no articles; the message describes the store's coverage,
                or says why none is searchable, or that it offers none in the language.
        """
        self._require_articles()
        if self._language not in self._shelf.languages:
            raise _no_language_error(self._language, self._shelf.languages, str(self._news))
        found = self.coverage(window)
        if not found.articles:
            raise no_news_error(
                self._shelf.articles, self._worst, window, str(self._news), self._language
            )
        return found

    def _require_articles(self) -> None:
        if not len(self._shelf.articles.published):
            why = describe_left_out(self.stats().dropped)
            raise KnowledgeError(
                "the news store has no searchable article" + (f"; {why}" if why else ""),
                where=str(self._news),
                hint="correct the files and sync them again, or add other news",
            )

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the commonest names in the window's articles, each with its commonest type.

        A known type precedes `other`, which means that no type is known.
        """
        with self._open() as index:
            return find_commonest_names(StoreView.of(index, window, self._worst))


def _no_language_error(language: str, offered: Sequence[str], news: str) -> KnowledgeError:
    codes, known = ",".join((*offered, language)), ", ".join(LANGUAGES[one] for one in offered)
    return KnowledgeError(
        f"the news store offers no {LANGUAGES[language]} news, only {known}",
        where=news,
        hint=f"run the sync again with --languages {codes}; the feeds gal and gkg_translated "
        "include languages other than English",
    )


def open_local(
    path: Path,
    cache: Path,
    *,
    min_precision: Precision = "cluster",
    language: str = ENGLISH,
) -> LocalKnowledge:
    """Open the news in one language under a folder, reading its files only if they have changed.

    Raises:
        KnowledgeError: there is no such folder, or it has no GDELT articles.
    """
    store = open_folder(path, cache, language)
    return LocalKnowledge(store, news=path, min_precision=min_precision, language=language)
