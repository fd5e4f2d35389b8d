"""The doc backend: a knowledge source over GDELT's DOC 2.0 service.

It stores the articles of a fetch, uses the words of the titles to determine which queries need
more, and reports each failure or omission in a sentence.
"""

import asyncio
import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

from coreeval.config.knowledge import DocConfig
from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    NamedEntity,
    NoEvidence,
    Precision,
    Retrieval,
    Rung,
    Window,
)
from coreeval.tools.formatting import format_quantity
from coreeval.tools.gdelt.doc.fetch import DocFetch, FetchTally, RequestThrottle
from coreeval.tools.gdelt.doc.queries import (
    MOST_ROWS,
    find_archive_gaps,
    require_gdeltdoc,
    slice_window,
    terms_of,
)
from coreeval.tools.gdelt.doc.replies import DocWire, find_proxy, open_wire
from coreeval.tools.gdelt.index.news_index import PRECISIONS
from coreeval.tools.gdelt.index.query import TOPIC_SHARE
from coreeval.tools.gdelt.page_text import without_outlet
from coreeval.tools.gdelt.rows import Article, date_in_url, evidence_id
from coreeval.tools.gdelt.temporary_store import open_temporary_store
from coreeval.tools.gdelt.words import query_keys, search_keys


@dataclass(frozen=True)
class TitleIndex:
    """An index of many titles by their words."""

    by_word: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ids: set[str] = field(default_factory=set)

    def add(self, key: str, title: str) -> None:
        """Add an article to the index."""
        self.ids.add(key)
        for word in search_keys(without_outlet(title)):
            self.by_word[word].add(key)

    def matches(self, query: EntityQuery) -> dict[str, float]:
        """Return the matched share, by id, of articles with a whole name or enough of a topic."""
        least = 1.0 if query.rung in ("named", "alias") else TOPIC_SHARE
        best: dict[str, float] = {}
        for words in _variants(query):
            for key, share in self._shares(words).items():
                if share >= max(least, best.get(key, 0.0)):
                    best[key] = share
        return best

    def _shares(self, words: frozenset[str]) -> dict[str, float]:
        """Return the share of the words' weight that each article has; rare words weigh more."""
        weights = {word: self._weight(word) for word in sorted(words)}
        found: defaultdict[str, float] = defaultdict(float)
        for word, weight in weights.items():
            for key in self.by_word.get(word, ()):
                found[key] += weight
        need = sum(weights.values())
        return {key: round(weight / need, 6) for key, weight in found.items()}

    def _weight(self, word: str) -> float:
        return math.log(1 + max(len(self.ids), 1) / max(len(self.by_word.get(word, ())), 1))


def _variants(query: EntityQuery) -> Iterator[frozenset[str]]:
    spellings = (query_keys(text) for text in (query.text, *query.aliases))
    yield from dict.fromkeys(words for words in spellings if words)


_WORST_FIRST: tuple[NoEvidence, ...] = ("throttled", "unavailable")
"""The reasons that apply to a query if any of its terms has them: there may be news after all."""


class ArticlePool:
    """The articles of one fetch, and the terms still to be searched.

    All names come before all topics, so that every sample gets some results if time is short.
    """

    def __init__(
        self, queries: Sequence[EntityQuery], window: Window, k: int, worst: Precision
    ) -> None:
        self._queries = sorted(queries, key=lambda query: get_args(Rung).index(query.rung))
        self._window = window
        self._k = k
        self._worst = worst
        self._terms = {query.id: terms_of(query) for query in queries}
        self._articles: dict[str, Article] = {}
        self._titles = TitleIndex()

    def add(self, article: Article) -> None:
        """Keep an article; of several copies, keep the one that was crawled first."""
        key = evidence_id(article.url)
        known = self._articles.get(key)
        if known is None and self._will_do(article):
            self._titles.add(key, article.title)
        if known is None or article.crawled_at < known.crawled_at:
            self._articles[key] = article

    def missing_terms(self) -> Mapping[str, None]:
        """Return the terms of queries with fewer than `k` usable articles, in order of rung."""
        wanting = (q for q in self._queries if len(self._titles.matches(q)) < self._k)
        return dict.fromkeys(term for query in wanting for term in self._terms[query.id])

    def _will_do(self, article: Article) -> bool:
        """Return whether an article may become evidence; a duplicate's date is not known yet."""
        dated = date_in_url(article.url, article.crawled_at)
        return self._worst == "crawl" if dated is None else dated >= self._window.start

    def rank_evidence(self) -> tuple[dict[str, tuple[Evidence, ...]], int]:
        """Return the evidence, and the number of articles that a less certain time would add."""
        with open_temporary_store(list(self._articles.values())) as index:
            if index is None:
                return {query.id: () for query in self._queries}, 0
            found, anyhow = (
                index.rank_evidence(self._queries, self._window, self._k, PRECISIONS.index(worst))
                for worst in (self._worst, PRECISIONS[-1])
            )
        return found, len(_ids(anyhow.values()) - _ids(found.values()))

    def reason(self, query: str, tally: FetchTally) -> NoEvidence:
        """Return the reason that a query has no evidence."""
        terms = self._terms[query]
        fates = [tally.fates.get(term) for term in terms]
        open_ones = [fate for fate in _WORST_FIRST if fate in fates]
        if open_ones:
            return open_ones[0]
        # Without a term, no request was sent: the service would refuse it.
        return "rejected" if all(fate == "rejected" for fate in fates) else "no_news"


def _ids(found: Iterable[Sequence[Evidence]]) -> set[str]:
    return {item.id for items in found for item in items}


NOT_EXACT = (
    "DOC 2.0 was not queried: it returns no publication times, which knowledge.min_precision: "
    "exact requires."
)


def describe_fetch(
    tally: FetchTally, *, shut_until: float | None, gaps: tuple[str, ...]
) -> Iterator[str]:
    """Yield notes on failures and omissions; nothing if all went well."""
    if gaps:
        yield f"DOC 2.0 contains no news for {', '.join(gaps)}."
    alone = _pause_note(shut_until)
    if tally.throttled:
        yield f"DOC 2.0 refused {tally.throttled} of {_count_requests(tally.requests)}{alone}."
    if tally.failed:
        yield (
            f"DOC 2.0 did not answer {tally.failed} of {_count_requests(tally.requests)}"
            f" ({tally.last_failure}){'' if tally.throttled else alone}."
        )
    if tally.unasked and not tally.requests and alone:
        yield f"DOC 2.0 was not queried, because earlier requests failed{alone}."
    if tally.unasked:
        limit = "" if tally.gave_up else "Within the time limit, "
        terms = _count_terms(len(tally.unasked))
        yield f"{limit}{terms} sent to DOC 2.0 for only part of the window or not at all."
    yield from _rejection_notes(tally)
    if tally.unusable:
        rows = format_quantity(tally.unusable, "row")
        yield (
            f"CoreEval skipped {rows} of DOC 2.0, because a title, an address or a valid time was "
            "missing."
        )
    if tally.cut:
        yield (
            f"{_count_terms(len(tally.cut))} not searched completely, because DOC 2.0 returns at "
            f"most {MOST_ROWS} articles per request: older articles are missing."
        )


def _rejection_notes(tally: FetchTally) -> Iterator[str]:
    if tally.only_rejected or tally.gave_up:
        end = ", all for the same reason, and was not queried again" if tally.gave_up else ""
        yield f"DOC 2.0 rejected {tally.refusals} of {_count_requests(tally.requests)}{end}."
    late = "" if tally.gave_up else " within the time limit"
    for message, count in tally.together.most_common():
        what = (
            f"{_count_terms(count)} rejected in a request with other terms, and not sent separately"
        )
        yield f"{what}{late}: {message}"
    for message, count in tally.rejected.most_common():
        yield f"DOC 2.0 rejected {count} of the requested terms: {message}"


def less_certain_note(count: int, precision: Precision) -> str:
    """Return a note on the articles that a less certain publication time would add."""
    articles = (
        "1 matching article of DOC 2.0 was"
        if count == 1
        else (f"{count:,} matching articles of DOC 2.0 were")
    )
    return (
        f"{articles} skipped: DOC 2.0 returns only the time when GDELT saw a page, but "
        f"knowledge.min_precision: {precision} requires a more precise time."
    )


def _pause_note(shut_until: float | None) -> str:
    if shut_until is None:
        return ""
    moment = datetime.fromtimestamp(shut_until, tz=UTC)
    return f"; it will not be queried before {moment:%H:%M:%S} UTC"


def _count_requests(count: int) -> str:
    return format_quantity(count, "request")


def _count_terms(count: int) -> str:
    return format_quantity(count, "term was", "terms were")


Connect = Callable[[str], AbstractAsyncContextManager[DocWire]]


@dataclass(frozen=True, kw_only=True)
class DocKnowledge:
    """A knowledge source over the network; each fetch is bounded in time."""

    name = "doc"
    remote = True

    config: DocConfig
    pace: RequestThrottle
    min_precision: Precision
    connect: Connect = open_wire
    clock: Callable[[], float] = time.time

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return up to `k` pieces of evidence for each query, best first.

        Failures of the service do not raise errors: they are returned as reasons or notes.

        Raises:
            KnowledgeError: the user can fix the problem: the proxy, or the file that paces
                requests.
        """
        gathered = ArticlePool(queries, window, k, self.min_precision)
        spans = [] if self.min_precision == "exact" else slice_window(window, self._now())
        tally = await self._ask(gathered, spans) if spans else FetchTally()
        found, withheld = await asyncio.to_thread(gathered.rank_evidence)
        told = [
            *describe_fetch(
                tally,
                shut_until=self.pace.shut_until(),
                gaps=find_archive_gaps(window, self._now()),
            )
        ]
        if self.min_precision == "exact":
            told.append(NOT_EXACT)
        if withheld:
            told.append(less_certain_note(withheld, self.min_precision))
        missing = [query.id for query in queries if not found[query.id]]
        reasons = {id: gathered.reason(id, tally) if spans else "not_covered" for id in missing}
        return Retrieval(by_query=found, reasons=reasons, notes=tuple(told))

    async def _ask(self, gathered: ArticlePool, spans: Sequence[Window]) -> FetchTally:
        async with self.connect(self.config.base_url) as wire:
            asking = DocFetch(
                wire=wire,
                pace=self.pace,
                timeout_s=self.config.timeout_s,
                deadline_s=self.config.deadline_s,
                found=gathered.add,
                wanted=gathered.missing_terms,
            )
            return await asking.ask(spans)

    def coverage(self, window: Window) -> Coverage:
        """Return what the archive cannot contain; its contents are unknown without requests."""
        return Coverage(articles=None, gaps=find_archive_gaps(window, self._now()))

    def names(self, window: Window) -> list[NamedEntity]:
        """Return nothing: a remote source knows no names before it is queried."""
        return []

    def close(self) -> None:
        """Do nothing: connections end with each fetch."""

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), tz=UTC)


def open_doc(
    config: DocConfig, folder: Path, *, min_precision: Precision = "cluster"
) -> DocKnowledge:
    """Open the DOC 2.0 service.

    Args:
        config: How to reach the service.
        folder: The folder in which processes coordinate their requests; shared by all runs behind
            one IP address.
        min_precision: The least certain kind of publication time to accept.

    Raises:
        KnowledgeError: gdeltdoc is missing, the folder cannot be written, or the proxy is unusable.
    """
    require_gdeltdoc()
    find_proxy(config.base_url)
    parts = urlsplit(config.base_url)
    place = re.sub(r"\W+", "-", f"{parts.hostname}-{parts.port or parts.scheme}")
    pace = RequestThrottle(
        file=folder / f"doc-{place}.json",
        spacing_s=config.spacing_s,
        pause_s=config.pause_s,
        probe_s=config.timeout_s,
    )
    pace.shut_until()
    return DocKnowledge(config=config, pace=pace, min_precision=min_precision)
