"""From the articles that were found to ranked evidence, by the very code of the local store."""

from collections.abc import Sequence

from coreeval.schema import EntityQuery, Evidence, Window
from coreeval.tools.gdelt.found import shelved
from coreeval.tools.gdelt.rows import Article

Found = tuple[Article, int]
"""An article, and on how many sites its very title was seen."""


def ranked(
    found: Sequence[Found], queries: Sequence[EntityQuery], window: Window, k: int, worst: int
) -> dict[str, tuple[Evidence, ...]]:
    """Return up to `k` pieces of evidence for each query, best first."""
    articles = [article for article, _ in found]
    sites = {article.url: seen_on for article, seen_on in found if seen_on > 1}
    with shelved(articles, sites) as shelf:
        if shelf is None:
            return {query.id: () for query in queries}
        return shelf.ranked(queries, window, k, worst)
