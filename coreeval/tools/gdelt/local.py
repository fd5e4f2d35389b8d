"""Searches GDELT's files on disk through their index.

Articles that came over a network are searched by the same code, in a temporary store.
"""

import asyncio
import hashlib
import itertools
import shutil
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from coreeval.errors import KnowledgeError
from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    NamedEntity,
    NoEvidence,
    Precision,
    Retrieval,
    Window,
)
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.index.news_index import PRECISIONS, ArticleColumns, NewsIndex
from coreeval.tools.gdelt.index.ranking import find_commonest_names, search
from coreeval.tools.gdelt.index.store_catalog import DATABASE, StoreLayout, StoreStats, hash_code
from coreeval.tools.gdelt.index.view import StoreView, epoch_seconds
from coreeval.tools.gdelt.rows import UNDERSTOOD, Article, find_files
from coreeval.tools.gdelt.sync.intake import write_articles, write_signals
from coreeval.tools.gdelt.sync.segment_rows import SIGNALS, build_articles_table
from coreeval.tools.gdelt.sync.store_ledger import FileRow, LedgerEntry, open_ledger


def open_folder(path: Path, cache: Path) -> Path:
    """Return the store made from the files under `path`, making it if need be; a store is itself.

    Two processes that need the same store make it once: the second waits for the first.

    Raises:
        KnowledgeError: there is no such folder, or none of its files holds articles.
    """
    if not path.exists():
        raise KnowledgeError(
            "the news folder does not exist",
            where=str(path),
            hint=f"point knowledge.path at a folder of {UNDERSTOOD}",
        )
    if (path / DATABASE).exists():
        return path
    files = find_files(path)
    store = cache / _folder_fingerprint(path, files)
    if not store.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(store.with_suffix(".lock")):
            if not store.exists():
                _make(store, path)
    return store


def _make(store: Path, path: Path) -> None:
    """Write the store beside its place and rename it, so that a half-made one is never seen."""
    from coreeval.tools.gdelt.index.build import compact
    from coreeval.tools.gdelt.sync.sync import Around, sync_folder

    work = store.with_suffix(".part")
    if work.exists():
        shutil.rmtree(work)  # left by a process that was killed; the lock says it is not at work
    sync_folder(work, path, around=Around(finish=compact))
    work.rename(store)


def _folder_fingerprint(path: Path, files: Sequence[Path]) -> str:
    """Hash the names, sizes and times of the files, and the code that reads them."""
    digest = hashlib.sha256(hash_code().encode())
    for file in files:
        found = file.stat()
        name = file.name if file == path else file.relative_to(path).as_posix()
        digest.update(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


DAY_S = 86_400
Times = NDArray[np.int64]


def select_times(articles: ArticleColumns, worst: int, window: Window | None = None) -> Times:
    """Return the publication times that are at least as certain as `worst`, of a window or all."""
    counts = articles.precision <= worst
    if window:
        counts &= articles.published >= epoch_seconds(window.start)
        counts &= articles.published < epoch_seconds(window.end)
    return articles.published[counts]


def measure_coverage(articles: ArticleColumns, worst: int, window: Window) -> Coverage:
    """Tell what there is inside a window at a precision, and which days have nothing."""
    found = select_times(articles, worst, window)
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


def no_news_error(
    articles: ArticleColumns, worst: int, window: Window, news: str
) -> KnowledgeError:
    """Return the error for a window without articles: what is covered, what may help."""
    less_certain = [
        f"with min_precision {PRECISIONS[less]} there would be {count:,}"
        for less in range(worst + 1, len(PRECISIONS))
        if (count := len(select_times(articles, less, window)))
    ]
    known = select_times(articles, worst)
    covers = (
        f"the store covers {_from_epoch(known.min()):%Y-%m-%d}..{_from_epoch(known.max()):%Y-%m-%d}"
        f" at precision {PRECISIONS[worst]} or better ({len(known):,} articles)"
        if len(known)
        else f"the store has no article at precision {PRECISIONS[worst]} or better"
    )
    return KnowledgeError(
        f"no news between {window.start:%Y-%m-%d} and {window.end:%Y-%m-%d}: {covers}",
        where=news,
        hint="; ".join(less_certain[:1]) or "move the window or add news files for it",
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
    """A knowledge source over one store; safe to ask from several threads."""

    name = "local"
    remote = False

    def __init__(self, store: Path, *, news: Path, min_precision: Precision) -> None:
        self._worst = PRECISIONS.index(min_precision)
        self._news = news
        self._idle = threading.Condition()
        self._asked = 0
        """Searches that are going on; the store cannot be closed under them."""
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
        if missing and not StoreView.of(self._shelf, window, self._worst).any():
            reason = "not_covered"
        return Retrieval(by_query=found, reasons=dict.fromkeys(missing, reason))

    def coverage(self, window: Window) -> Coverage:
        """Tell what the store holds inside the window at the precision asked for."""
        return measure_coverage(self._shelf.articles, self._worst, window)

    def require(self, window: Window) -> Coverage:
        """Return the coverage of a window that holds at least one article.

        Raises:
            KnowledgeError: it holds none; the message says what the store covers.
        """
        found = self.coverage(window)
        if not found.articles:
            raise no_news_error(self._shelf.articles, self._worst, window, str(self._news))
        return found

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the commonest names in the window's articles, each with its commonest type.

        A stated type counts more than `other`, which stands for none.
        """
        with self._open() as shelf:
            return find_commonest_names(StoreView.of(shelf, window, self._worst))


def open_local(path: Path, cache: Path, *, min_precision: Precision = "cluster") -> LocalKnowledge:
    """Open the news under a folder, reading its files only if they changed since the last time.

    Raises:
        KnowledgeError: no such folder, or no GDELT articles in it.
    """
    return LocalKnowledge(open_folder(path, cache), news=path, min_precision=min_precision)


class TemporaryStore:
    """Some articles, ready to be searched.

    Args:
        shelf: The store that was made of them.
        origins: Where each article came from, in order.
    """

    def __init__(self, shelf: NewsIndex, origins: Sequence[str]) -> None:
        self._shelf = shelf
        self._origins = origins

    def rank_evidence(
        self, queries: Sequence[EntityQuery], window: Window, k: int, worst: int
    ) -> dict[str, tuple[Evidence, ...]]:
        """Return up to `k` pieces of evidence for each query, best first.

        `worst` is the place in `PRECISIONS` of the least certain publication time.
        """
        best = search(self._shelf, queries, window, k, worst)
        return {
            query.id: tuple(map(self._restore_origins, self._shelf.evidence(articles)))
            for query, articles in zip(queries, best, strict=True)
        }

    def _restore_origins(self, item: Evidence) -> Evidence:
        """Name the rows of the source in place of those of the store."""
        lines = (int(row.rpartition(":")[2]) for row in item.origin.split("; "))
        return item.model_copy(update={"origin": "; ".join(self._origins[at - 1] for at in lines)})


@contextmanager
def open_temporary_store(
    articles: Sequence[Article], sites: Mapping[str, int] | None = None
) -> Iterator[TemporaryStore | None]:
    """Make a store of articles for as long as the block lasts; None where none is usable.

    Args:
        articles: What came back; several about one page are joined.
        sites: How many sites tell of a page, by URL, where the source counted them.
    """
    with TemporaryDirectory(prefix="coreeval-") as folder:
        store = Path(folder) / "store"
        _write_store(store, articles, sites or {})
        made = compact(store)
        if not made.parts:
            yield None
            return
        shelf = NewsIndex(store)
        try:
            yield TemporaryStore(shelf, [one.origin for one in articles])
        finally:
            shelf.close()


def _write_store(store: Path, articles: Sequence[Article], sites: Mapping[str, int]) -> None:
    layout = StoreLayout(store)
    layout.prepare()
    rows = len(articles)
    file = FileRow(
        id=1, name="found", feed="gkg", batch=None, size=0, md5="",
        state="read", rows=rows, articles=rows, read_at=0,
    )  # fmt: skip
    entry = LedgerEntry(files=[file], segments=write_articles(store, [(1, _table(articles))]))
    entry.segments += write_signals(store, list(_signals(articles, sites)), lambda day: day)
    with open_ledger(layout.ledger) as ledger:
        ledger.commit(entry)


def _table(articles: Sequence[Article]) -> object:
    return build_articles_table(
        {
            "url": [one.url for one in articles],
            "title": [one.title for one in articles],
            "snippet": [one.snippet for one in articles],
            "crawled_at": [int(one.crawled_at.timestamp()) for one in articles],
            "stated_at": [
                int(one.stated_at.timestamp()) if one.stated_at else None for one in articles
            ],
            "language": [one.language for one in articles],
            "feed": ["gkg"] * len(articles),
            "line": list(range(1, len(articles) + 1)),
            "entities": [
                [{"name": name.name, "type": name.type, "at": 0, "n": 1} for name in one.entities]
                for one in articles
            ],
        }
    )


def _signals(articles: Sequence[Article], sites: Mapping[str, int]) -> Iterator[tuple[int, object]]:
    """Yield how many sites tell of the pages of each crawl day, days counted since 1970."""
    by_day: defaultdict[int, set[str]] = defaultdict(set)
    for one in articles:
        if one.url in sites:
            by_day[int(one.crawled_at.timestamp()) // DAY_S].add(one.url)
    for day, found in by_day.items():
        urls = sorted(found)
        columns = dict.fromkeys(SIGNALS.names, [None] * len(urls)) | {
            "url": urls,
            "num_sources": [sites[url] for url in urls],
        }
        yield day, SIGNALS.empty_table().from_pydict(columns, schema=SIGNALS)
