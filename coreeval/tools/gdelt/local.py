"""The local backend: GDELT's files on disk, asked through DuckDB."""

import asyncio
import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import duckdb

from coreeval.errors import KnowledgeError
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
from coreeval.tools.gdelt.search import search, seconds
from coreeval.tools.gdelt.stats import StoreStats

NAMES_AT_MOST = 20_000
"""The commonest names of a window; the rest of a month's 400,000 are mentioned once or twice."""
_IN_WINDOW = "published >= $start AND published < $end AND precision <= $worst"
_DAYS = f"""
SELECT published // 86400 AS day, count(*), min(published), max(published)
FROM articles WHERE {_IN_WINDOW} GROUP BY day ORDER BY day
"""
_PRECISIONS_IN_WINDOW = """
SELECT precision, count(*) FROM articles
WHERE published >= $start AND published < $end GROUP BY ALL
"""
_ALL = "SELECT min(published), max(published), count(*) FROM articles WHERE precision <= $worst"
_NAMES = f"""
WITH counted AS (
    SELECT name, type, count(*) AS n FROM mentions WHERE {_IN_WINDOW} GROUP BY name, type
),
typed AS (
    SELECT name, type, sum(n) OVER (PARTITION BY name) AS n FROM counted
    QUALIFY row_number() OVER (PARTITION BY name ORDER BY type = 'other', counted.n DESC, type) = 1
),
commonest AS (
    SELECT name, type FROM typed ORDER BY n DESC, name LIMIT {NAMES_AT_MOST}
)
SELECT min(shown), any_value(type) FROM commonest JOIN spellings USING (name)
GROUP BY name ORDER BY name
"""


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
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._idle:
            cursor = self._shelf.cursor()
            self._asked += 1
        try:
            with cursor:
                yield cursor
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
        with self._cursor() as cursor:
            places = search(cursor, queries, window, k, self._worst, self._shelf.articles)
            found = {
                query.id: self._shelf.evidence(where)
                for query, where in zip(queries, places, strict=True)
            }
        missing = [query for query, evidence in found.items() if not evidence]
        reason: NoEvidence = "no_news"
        if missing and not self.coverage(window).articles:
            reason = "not_covered"
        return Retrieval(by_query=found, reasons=dict.fromkeys(missing, reason))

    def coverage(self, window: Window) -> Coverage:
        """Tell what the store holds inside the window at the precision asked for."""
        days = self._rows(_DAYS, self._in(window))
        if not days:
            return Coverage(articles=0, gaps=_gaps(window, []))
        return Coverage(
            articles=sum(count for _, count, _, _ in days),
            first=_time(days[0][2]),
            last=_time(days[-1][3]),
            days=len(days),
            gaps=_gaps(window, [_time(day * 86400).date() for day, *_ in days]),
        )

    def require(self, window: Window) -> Coverage:
        """Return the coverage of a window that holds at least one article.

        Raises:
            KnowledgeError: it holds none; the message says what the store covers.
        """
        coverage = self.coverage(window)
        if not coverage.articles:
            raise self._uncovered(window)
        return coverage

    def _uncovered(self, window: Window) -> KnowledgeError:
        precision = PRECISIONS[self._worst]
        by_precision = self._rows(_PRECISIONS_IN_WINDOW, _bounds(window))
        less_certain = [
            f"with min_precision {PRECISIONS[worst]} there would be {count:,}"
            for worst in range(self._worst + 1, len(PRECISIONS))
            if (count := sum(n for at, n in by_precision if at <= worst))
        ]
        ((first, last, count),) = self._rows(_ALL, {"worst": self._worst})
        covers = (
            f"the store covers {_time(first):%Y-%m-%d}..{_time(last):%Y-%m-%d}"
            f" at precision {precision} or better ({count:,} articles)"
            if count
            else f"the store has no article at precision {precision} or better"
        )
        return KnowledgeError(
            f"no news between {window.start:%Y-%m-%d} and {window.end:%Y-%m-%d}: {covers}",
            where=str(self._news),
            hint="; ".join(less_certain[:1]) or "move the window or add news files for it",
        )

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the commonest names in the window's articles, each with its commonest type.

        A stated type counts more than `other`, which stands for none.
        """
        rows = self._rows(_NAMES, self._in(window))
        return [NamedEntity(name=name, type=kind) for name, kind in rows]

    def _in(self, window: Window) -> dict[str, object]:
        return {**_bounds(window), "worst": self._worst}

    def _rows(self, statement: str, parameters: dict[str, object]) -> list[tuple[Any, ...]]:
        with self._cursor() as cursor:
            return cursor.execute(statement, parameters).fetchall()


def open_local(path: Path, cache: Path, *, min_precision: Precision = "cluster") -> LocalKnowledge:
    """Open the news under a folder, reading its files only if they changed since the last time.

    Raises:
        KnowledgeError: no such folder, or no GDELT articles in it.
    """
    return LocalKnowledge(open_folder(path, cache), news=path, min_precision=min_precision)


def _bounds(window: Window) -> dict[str, object]:
    return {"start": seconds(window.start), "end": seconds(window.end)}


def _time(at: int) -> datetime:
    return datetime.fromtimestamp(at, tz=UTC)


def _gaps(window: Window, days: Sequence[date]) -> tuple[str, ...]:
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
