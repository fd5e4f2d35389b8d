"""From the articles that were found to ranked evidence, by the very code of the local store.

What came back is a small store of its own: the same dates, screen, stories and ranking hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from coreeval.schema import EntityQuery, Evidence, Window
from coreeval.tools.gdelt.items import Item, offered_items
from coreeval.tools.gdelt.rows import Article
from coreeval.tools.gdelt.search import search
from coreeval.tools.gdelt.sources import joined
from coreeval.tools.gdelt.tables import SCHEMAS, write_tables
from coreeval.tools.gdelt.urls import evidence_id

Found = tuple[Article, int]
"""An article, and on how many sites its very title was seen."""


def ranked(
    found: Sequence[Found], queries: Sequence[EntityQuery], window: Window, k: int, worst: int
) -> dict[str, tuple[Evidence, ...]]:
    """Return up to `k` pieces of evidence for each query, best first."""
    articles: dict[str, Article] = {}
    sites: dict[str, int] = {}
    for article, seen_on in found:
        key = evidence_id(article.url)
        articles[key] = joined(articles[key], article) if key in articles else article
        sites[key] = max(sites.get(key, 1), seen_on)
    items, _ = offered_items(articles)
    if not items:
        return {query.id: () for query in queries}
    with TemporaryDirectory(prefix="coreeval-") as folder, duckdb.connect() as database:
        write_tables(Path(folder), _spread(items, sites))
        for table in SCHEMAS:
            database.read_parquet(f"{folder}/{table}.parquet").create(table)
        return search(database, queries, window, k, worst)


def _spread(items: Sequence[Item], sites: Mapping[str, int]) -> list[Item]:
    """Count the sites that BigQuery saw and did not send: few copies of one title come back."""
    told: dict[str, int] = {}
    for item in items:
        told[item.story] = max(told.get(item.story, 1), item.domains, sites[item.id])
    return [replace(item, domains=told[item.story]) for item in items]
