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
    view = View.of(shelf, window, worst)
    decay, deep = max((end - start) / 3, 1.0), max(2 * k, DEPTH)
    return [
        best(list(find(view, question, deep)), shelf.articles, end, decay, k)
        for question in _questions(queries, view)
    ]


def _questions(queries: Sequence[EntityQuery], view: View) -> list[Question]:
    """Return what to look for; how much a word weighs is the same whatever the window."""
    wanted = spellings(queries)
    words = {word for spelling in wanted for word in spelling.words}
    held = {word: view.held(word) for word in words}
    articles = len(view.articles.published) or 1
    weighted: dict[int, list[Wanted]] = {}
    for one in wanted:
        asked = Wanted(tuple(weighed(one, held, articles)), one.share, one.alone)
        weighted.setdefault(one.query, []).append(asked)
    return [
        Question(tuple(weighted.get(place, ())), tuple(themes(query)), tuple(contexts(query)))
        for place, query in enumerate(queries)
    ]
