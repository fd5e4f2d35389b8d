"""Searches a store for a batch of queries, and for its commonest names.

At most two articles of a story are returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coreeval.schema import EntityQuery, NamedEntity, Window
from coreeval.tools.gdelt.index.news_index import KINDS, ArticleColumns, NewsIndex, PartIndex
from coreeval.tools.gdelt.index.query import (
    Matches,
    SearchTerms,
    SpellingWeights,
    find_matches,
    find_themes,
    list_contexts,
    list_spellings,
    weigh_words,
)
from coreeval.tools.gdelt.index.storage import Flags
from coreeval.tools.gdelt.index.view import ONE, PartView, StoreView, epoch_seconds

CAP = 800
"""The most finds of a query whose stories are ranked, best first: enough for 20 stories on 20 sites
each, found in the text and by name."""
RECENCY = 0.20
"""The score bonus of the newest article over one from long before (research: gdelt §8)."""
_WORDS_FIRST = 2.0**21
"""The weight that ranks articles with more of a query's words first, regardless of their scores."""
ArticleNumbers = NDArray[np.int64]


def rank_matches(
    finds: Sequence[Matches], articles: ArticleColumns, end: int, decay: float, k: int
) -> list[int]:
    """Return the numbers of up to `k` articles, best first.

    Stories are in the order of their best article; another site's article on the same story follows
    it directly, because two reports of one event are the best material (pilot §2). Ties are in the
    order of the store.

    Args:
        finds: The matches of a query in the parts.
        articles: All articles of the store.
        end: The end of the window, in epoch seconds.
        decay: The seconds after which the recency weight falls by a factor of e.
        k: The number of articles wanted.
    """
    if not finds:
        return []
    article = np.concatenate([found.article for found in finds]).astype(np.int64)
    whole = np.concatenate([found.whole for found in finds])
    match = np.concatenate([found.match for found in finds])
    published = articles.published[article]
    score = match + RECENCY * np.exp((published - end) / decay) + articles.prior[article]
    height = whole * _WORDS_FIRST + score
    if len(height) > CAP:
        high = height >= np.partition(height, -CAP)[-CAP]
        article, whole, score = article[high], whole[high], score[high]
    article, whole, score = _merge_duplicates(article, whole, score)
    order = np.lexsort((article, -articles.published[article], -score, -whole))
    return _pick_stories(article[order], articles, k)


def rank_leading(view: StoreView) -> ArticleNumbers:
    """Return the articles of a view, those of stories on most sites first, then the newest.

    Each story is represented by its leading article.
    """
    shown = np.concatenate(
        [np.arange(*(part.bounds >> ONE).tolist()) + part.index.first for part in view.parts]
    )
    shown = shown[view.sure(shown)]
    columns = view.articles
    shown = shown[np.lexsort((shown, -columns.published[shown], -columns.prior[shown]))]
    story = columns.story[shown].astype(np.int64)
    story[story == 0] = -1 - shown[story == 0]  # a separate story
    first = np.sort(np.unique(story, return_index=True)[1])
    leading: ArticleNumbers = shown[first]
    return leading


def _merge_duplicates(
    article: ArticleNumbers, whole: NDArray[np.float64], score: NDArray[np.float64]
) -> tuple[ArticleNumbers, NDArray[np.float64], NDArray[np.float64]]:
    """Return each article once, with its highest matched share."""
    order = np.argsort(article, kind="stable")
    ordered = article[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    return (ordered[first], np.maximum.reduceat(whole[order], first),
            np.maximum.reduceat(score[order], first))  # fmt: skip


def _pick_stories(ranked: ArticleNumbers, articles: ArticleColumns, k: int) -> list[int]:
    """Return the first of each story, each followed by the first from another site."""
    story, teller = articles.story[ranked], articles.teller[ranked]
    chosen: list[int] = []
    told = {0} - {0}
    for place, (article, event) in enumerate(zip(ranked.tolist(), story.tolist(), strict=True)):
        if len(chosen) >= k:
            break
        if event in told:
            continue
        chosen.append(article)
        if event:
            told.add(event)
            others = np.flatnonzero((story == event) & (teller != teller[place]))
            chosen += ranked[others[:1]].tolist()
    return chosen[:k]


DEPTH = 16
"""The number of best articles of one day to consider for a name that very many mention; twice the
number wanted if that is more."""


def search(
    shelf: NewsIndex,
    queries: Sequence[EntityQuery],
    window: Window,
    k: int,
    worst: int,
    source: int | None = None,
    language: str | None = None,
) -> list[list[int]]:
    """Return, for each query, the numbers of up to `k` articles, best first.

    `worst` is the index in `PRECISIONS` of the least certain publication time to accept, `source`
    that in `SOURCES` of the only source to accept, `language` the only language to accept.
    """
    start, end = epoch_seconds(window.start), epoch_seconds(window.end)
    view = StoreView.of(shelf, window, worst, source, language)
    decay = max((end - start) / 3, 1.0)
    # The ranking of a day's mentions covers all languages together.
    mixed = language is not None and len(shelf.languages) > 1
    deep = None if mixed else max(2 * k, DEPTH)
    return [
        rank_matches(list(find_matches(view, question, deep)), shelf.articles, end, decay, k)
        for question in _build_terms(queries, view)
    ]


def _build_terms(queries: Sequence[EntityQuery], view: StoreView) -> list[SearchTerms]:
    """Return the search terms; a word's weight does not depend on the window."""
    wanted = list_spellings(queries)
    words = {word for spelling in wanted for word in spelling.words}
    held = {word: view.count_articles(word) for word in words}
    articles = len(view.articles.published) or 1
    weighted: dict[int, list[SpellingWeights]] = {}
    for one in wanted:
        asked = SpellingWeights(tuple(weigh_words(one, held, articles)), one.share, one.alone)
        weighted.setdefault(one.query, []).append(asked)
    return [
        SearchTerms(
            tuple(weighted.get(place, ())), tuple(find_themes(query)), tuple(list_contexts(query))
        )
        for place, query in enumerate(queries)
    ]


MOST_COMMON_NAMES = 20_000
"""The most names of a window, commonest first; the rest of a month's 400,000 are mentioned once or
twice."""
Counts = NDArray[np.int64]
Groups = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class PartNames:
    """The mentions in one part that count, and their names."""

    index: PartIndex
    counts: Flags
    """Whether each mention is in the window and certain enough."""
    names: NDArray[np.intp]
    """The names with such a mention, in order."""
    totals: Counts
    """The number of mentions of each name."""

    @classmethod
    def of(cls, part: PartView, worst: int) -> "PartNames":
        """Return a part's names with the number of mentions of each."""
        index = part.index
        counts = index.precision[index.mentions.items >> ONE] <= worst
        counts &= part.counts(index.mentions.items)
        # Each name has a mention, so no list is empty, as reduceat requires.
        totals = np.add.reduceat(counts, index.mentions.starts[:-1], dtype=np.int64)
        names = np.flatnonzero(totals)
        return cls(index, counts, names, totals[names])


def find_commonest_names(view: StoreView) -> list[NamedEntity]:
    """Return the commonest names in the view, in alphabetical order, with their types.

    Of names that are mentioned equally often, the first in alphabetical order are taken. The type
    is the commonest one that is not `other`, which means that no type is known.
    """
    parts = [PartNames.of(part, view.worst) for part in view.parts if len(part.index.shown)]
    if not parts:
        return []
    hashes = [part.index.hashes[part.names] for part in parts]
    _, joined = np.unique(np.concatenate(hashes), return_inverse=True)
    groups = np.split(joined, np.cumsum([len(one) for one in hashes])[:-1])
    totals = np.bincount(joined, np.concatenate([part.totals for part in parts]))
    least = (
        np.partition(totals, -MOST_COMMON_NAMES)[-MOST_COMMON_NAMES]
        if len(totals) > MOST_COMMON_NAMES
        else 0
    )
    shown = _display_names(parts, groups, totals >= least)
    order = sorted(shown, key=lambda group: (-totals[group], shown[group].lower()))
    taken = sorted(order[:MOST_COMMON_NAMES], key=lambda group: shown[group].lower())
    kinds = _commonest_kinds(parts, groups, taken, len(totals))
    return [
        NamedEntity(name=shown[group], type=KINDS[kind])
        for group, kind in zip(taken, kinds, strict=True)
    ]


def _display_names(
    parts: Sequence[PartNames], groups: Sequence[Groups], wanted: Flags
) -> dict[int, str]:
    """Return the displayed form of the wanted names; a name in several parts is one group."""
    found: dict[int, str] = {}
    for part, group in zip(parts, groups, strict=True):
        there = wanted[group]
        for name, one in zip(part.names[there].tolist(), group[there].tolist(), strict=True):
            text = part.index.shown[name]
            found[one] = min(text, found.get(one, text))
    return found


def _commonest_kinds(
    parts: Sequence[PartNames], groups: Sequence[Groups], taken: Sequence[int], count: int
) -> list[int]:
    """Return the commonest type of each of the taken names."""
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
