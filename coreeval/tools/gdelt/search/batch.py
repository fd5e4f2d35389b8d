"""Finding evidence for a batch of queries."""

from collections.abc import Sequence

from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.parts.shelf import Shelf
from coreeval.tools.gdelt.search.finding import Question, Wanted, find
from coreeval.tools.gdelt.search.questions import (
    contexts,
    spellings,
    themes,
    weighed,
)
from coreeval.tools.gdelt.search.ranking import best
from coreeval.tools.gdelt.search.views import View, seconds

DEPTH = 16
"""Articles of one day, the best, that are looked at for a name that very many have; twice as many
as are wanted if that is more."""


def search(
    shelf: Shelf, queries: Sequence[EntityQuery], window: Window, k: int, worst: int
) -> list[list[int]]:
    """Return for each query the numbers of up to `k` articles, best first.

    `worst` is the place in `PRECISIONS` of the least certain publication time.
    """
    start, end = seconds(window.start), seconds(window.end)
    views = [View.of(index, window, worst) for index in shelf.indexes]
    inside = [view for view in views if not view.empty]
    decay, deep = max((end - start) / 3, 1.0), max(2 * k, DEPTH)
    return [
        best([found for view in inside for found in find(view, question, deep)],
             shelf.articles, end, decay, k)
        for question in _questions(queries, views)
    ]  # fmt: skip


def _questions(queries: Sequence[EntityQuery], views: Sequence[View]) -> list[Question]:
    """Return what to look for; how much a word weighs is the same whatever the window."""
    wanted = spellings(queries)
    words = {word for spelling in wanted for word in spelling.words}
    held = {word: sum(len(view.words(word)) for view in views) for word in words}
    articles = sum(len(view.index.published) for view in views) or 1
    weighted: dict[int, list[Wanted]] = {}
    for one in wanted:
        asked = Wanted(tuple(weighed(one, held, articles)), one.share, one.alone)
        weighted.setdefault(one.query, []).append(asked)
    return [
        Question(tuple(weighted.get(place, ())), tuple(themes(query)), tuple(contexts(query)))
        for place, query in enumerate(queries)
    ]
