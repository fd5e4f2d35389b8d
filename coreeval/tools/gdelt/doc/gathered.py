"""What one fetch has gathered so far, and what is made of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from coreeval.schema import EntityQuery, Evidence, NoEvidence, Precision, Rung, Window
from coreeval.tools.gdelt.dates import date_in_url
from coreeval.tools.gdelt.doc.tally import Tally
from coreeval.tools.gdelt.doc.terms import terms_of
from coreeval.tools.gdelt.doc.titles import Titles
from coreeval.tools.gdelt.found import shelved
from coreeval.tools.gdelt.parts.shelf import PRECISIONS
from coreeval.tools.gdelt.rows import Article
from coreeval.tools.gdelt.urls import evidence_id

_WORST_FIRST: tuple[NoEvidence, ...] = ("throttled", "unavailable")
"""Reasons that stand for a query if one of its terms has them: it may have news after all."""


class Gathered:
    """The articles of one fetch, and what is still wanted.

    All names come before all topics: when time is short, every sample has something.
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
        self._titles = Titles()

    def add(self, article: Article) -> None:
        """Keep an article; the copy that was seen first, where there are several."""
        key = evidence_id(article.url)
        known = self._articles.get(key)
        if known is None and self._will_do(article):
            self._titles.add(key, article.title)
        if known is None or article.crawled_at < known.crawled_at:
            self._articles[key] = article

    def wanted(self) -> Mapping[str, None]:
        """Return the terms of queries with fewer than `k` usable articles, by rung."""
        wanting = (q for q in self._queries if len(self._titles.matches(q)) < self._k)
        return dict.fromkeys(term for query in wanting for term in self._terms[query.id])

    def _will_do(self, article: Article) -> bool:
        """Tell whether an article may become evidence; a twin's date is not known yet."""
        dated = date_in_url(article.url, article.crawled_at)
        return self._worst == "crawl" if dated is None else dated >= self._window.start

    def ranked(self) -> tuple[dict[str, tuple[Evidence, ...]], int]:
        """Return the evidence, and how many articles a less certain time would add."""
        with shelved(list(self._articles.values())) as shelf:
            if shelf is None:
                return {query.id: () for query in self._queries}, 0
            found, anyhow = (
                shelf.ranked(self._queries, self._window, self._k, PRECISIONS.index(worst))
                for worst in (self._worst, PRECISIONS[-1])
            )
        return found, len(_ids(anyhow.values()) - _ids(found.values()))

    def reason(self, query: str, tally: Tally) -> NoEvidence:
        """Return why there is nothing for a query."""
        terms = self._terms[query]
        fates = [tally.fates.get(term) for term in terms]
        open_ones = [fate for fate in _WORST_FIRST if fate in fates]
        if open_ones:
            return open_ones[0]
        # Without a term nothing was asked: the service would refuse what it could be.
        return "rejected" if all(fate == "rejected" for fate in fates) else "no_news"


def _ids(found: Iterable[Sequence[Evidence]]) -> set[str]:
    return {item.id for items in found for item in items}
