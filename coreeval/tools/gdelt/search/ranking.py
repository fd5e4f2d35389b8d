"""Which of the articles that were found are the best: by score, at most two of a story."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coreeval.tools.gdelt.parts.index import Articles
from coreeval.tools.gdelt.search.finding import Found

CAP = 800
"""Finds of a query that are ranked with regard to stories, the best first: enough for 20 stories
that 20 sites tell, found in the text and by name."""
RECENCY = 0.20
"""What the newest article has more in its score than one from long before (research: gdelt §8)."""
_WORDS_FIRST = 2.0**21
"""An article with more of a query's words comes before one with fewer, whatever their scores."""
Ranked = NDArray[np.int64]


def best(finds: Sequence[Found], articles: Articles, end: int, decay: float, k: int) -> list[int]:
    """Return the numbers of up to `k` articles, best first.

    Stories come in the order of their best article; a second site that tells the same story follows
    it at once, because two tellings of one event are the best material (pilot §2). What is equal in
    all else is in the order of the store.

    Args:
        finds: What the parts have for a query.
        articles: All of the store.
        end: Where the window ends, in epoch seconds.
        decay: Seconds after which recency counts by a factor of e less.
        k: How many are wanted.
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
    article, whole, score = _once(article, whole, score)
    order = np.lexsort((article, -articles.published[article], -score, -whole))
    return _told(article[order], articles, k)


def _once(
    article: Ranked, whole: NDArray[np.float64], score: NDArray[np.float64]
) -> tuple[Ranked, NDArray[np.float64], NDArray[np.float64]]:
    """Return each article once, with the most that it was found with."""
    order = np.argsort(article, kind="stable")
    ordered = article[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    return (ordered[first], np.maximum.reduceat(whole[order], first),
            np.maximum.reduceat(score[order], first))  # fmt: skip


def _told(ranked: Ranked, articles: Articles, k: int) -> list[int]:
    """Return the first of each story, and directly after it the first from another site."""
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
