"""The store's Parquet tables: what is in them, and writing them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from coreeval.schema import Precision
from coreeval.tools.gdelt.items import Item
from coreeval.tools.gdelt.names import title_names
from coreeval.tools.gdelt.screen import is_question
from coreeval.tools.gdelt.titles import without_outlet
from coreeval.tools.gdelt.words import keys

PRECISIONS: tuple[Precision, ...] = ("exact", "url", "cluster", "crawl")
"""Best first; a table holds the position."""
TITLE, SNIPPET, ENTITIES = 0, 1, 2
"""Places of a word: `ENTITIES` and above number the article's entities."""
CHUNK = 50_000

Row = tuple[object, ...]
SCHEMAS: dict[str, dict[str, str]] = {
    "articles": {
        "article": "INTEGER", "id": "VARCHAR", "url": "VARCHAR", "domain": "VARCHAR",
        "title": "VARCHAR", "snippet": "VARCHAR", "published": "BIGINT", "precision": "TINYINT",
        "story": "VARCHAR", "told": "INTEGER", "domains": "INTEGER", "quality": "DOUBLE",
        "entities": "VARCHAR", "origin": "VARCHAR",
    },
    "words": {"word": "VARCHAR", "article": "INTEGER", "place": "INTEGER"},
    "names": {"name": "VARCHAR", "type": "VARCHAR", "article": "INTEGER"},
}  # fmt: skip
_PRECISION_QUALITY: dict[Precision, float] = {"exact": 1, "url": 0.75, "cluster": 0.5, "crawl": 0}


def write_tables(folder: Path, items: Sequence[Item]) -> None:
    """Write the three tables of a store."""
    rows = {
        "articles": _article_rows(items),
        "words": sorted(_word_rows(items)),
        "names": _name_rows(items),
    }
    with duckdb.connect() as connection:
        for table, columns in SCHEMAS.items():
            _fill(connection, table, columns, list(rows[table]))
            file = str(folder / f"{table}.parquet")
            connection.table(table).write_parquet(file, compression="zstd")


def _fill(
    connection: duckdb.DuckDBPyConnection, table: str, columns: dict[str, str], rows: list[Row]
) -> None:
    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    connection.execute(f"CREATE TABLE {table} ({declared})")
    insert = ", ".join(f"unnest(?::{kind}[])" for kind in columns.values())
    for at in range(0, len(rows), CHUNK):
        values = [list(column) for column in zip(*rows[at : at + CHUNK], strict=True)]
        connection.execute(f"INSERT INTO {table} SELECT {insert}", values)


def _article_rows(items: Sequence[Item]) -> Iterator[Row]:
    told: dict[str, int] = {}
    for item in items:
        told[item.story] = told.get(item.story, 0) + 1
    for number, item in enumerate(items):
        article = item.article
        yield (
            number, item.id, article.url, item.domain, article.title, article.snippet,
            int(item.published_at.timestamp()), PRECISIONS.index(item.precision), item.story,
            told[item.story], item.domains, _quality(item),
            json.dumps([[entity.name, entity.type] for entity in article.entities],
                       ensure_ascii=False),
            article.origin,
        )  # fmt: skip


def _quality(item: Item) -> float:
    """Return the mean of: has a snippet, knows its date, does not ask (research: gdelt §8)."""
    asserts = not is_question(item.article.title)
    return (bool(item.article.snippet) + _PRECISION_QUALITY[item.precision] + asserts) / 3


def _word_rows(items: Sequence[Item]) -> Iterator[tuple[str, int, int]]:
    for number, item in enumerate(items):
        texts = [without_outlet(item.article.title), item.article.snippet]
        texts += [entity.name for entity in item.article.entities]
        for place, text in enumerate(texts):
            for word in set(keys(text)):
                yield word, number, place


def _name_rows(items: Sequence[Item]) -> Iterator[Row]:
    """Yield names as GKG gives them; for articles without entities, as their titles show them."""
    runs = title_names([item.article.title for item in items])
    for number, (item, found) in enumerate(zip(items, runs, strict=True)):
        for entity in item.article.entities:
            yield entity.name, entity.type, number
        if not item.article.entities:
            for run in found:
                yield run, "other", number
