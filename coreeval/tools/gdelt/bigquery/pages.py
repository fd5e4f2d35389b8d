"""Rows of the answer as articles, by the rules of the readers of GDELT's files."""

from collections.abc import Mapping

from coreeval.config.remote_news import Feed
from coreeval.schema import EntityType, NamedEntity
from coreeval.tools.gdelt.bigquery.statements import TABLES
from coreeval.tools.gdelt.dates import parse_stamp
from coreeval.tools.gdelt.rows import Article
from coreeval.tools.gdelt.titles import clean
from coreeval.tools.gdelt.urls import host_of

Row = Mapping[str, object]
_KINDS: dict[str, EntityType] = {"1": "person", "2": "organisation", "3": "place", "4": "other"}
"""What the lists of names hold, by the number that the statement gives them."""


def article(feed: Feed, row: Row) -> Article | None:
    """Return the article that a row tells; None for what is no web page with title and time."""
    url, title = _text(row, "url"), clean(_text(row, "title"))
    crawled_at = parse_stamp(str(row["crawled"]))
    if not title or not host_of(url) or crawled_at is None:
        return None
    return Article(
        url=url,
        title=title,
        snippet=clean(_text(row, "description")),
        crawled_at=crawled_at,
        stated_at=parse_stamp(_text(row, "stated")),
        entities=_entities(row["names"]),
        origin=f"{TABLES[feed]}:{_text(row, 'record') or row['crawled']}",
    )


def _entities(names: object) -> tuple[NamedEntity, ...]:
    """Return `kind,name` items as entities, each name once with the type of the first list."""
    found: dict[str, NamedEntity] = {}
    for item in names if isinstance(names, list) else []:
        kind, _, name = str(item).partition(",")
        found.setdefault(name.casefold(), NamedEntity(name=name, type=_KINDS[kind]))
    return tuple(found.values())


def _text(row: Row, column: str) -> str:
    value = row[column]
    return value if isinstance(value, str) else ""
