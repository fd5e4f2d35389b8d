"""An open store: its parts as one set of tables, and the texts of single articles."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from coreeval.errors import KnowledgeError
from coreeval.schema import Evidence, NamedEntity, Precision
from coreeval.tools.gdelt.parts.catalogue import (
    Part,
    catalogue,
    files_read,
    folder_of,
    ignored_files,
    parts,
)
from coreeval.tools.gdelt.parts.tables import TABLES, TEXTS
from coreeval.tools.gdelt.parts.texts import Texts
from coreeval.tools.gdelt.stats import StoreStats
from coreeval.tools.gdelt.untrusted import instruction_like

PRECISIONS: tuple[Precision, ...] = ("exact", "url", "cluster", "crawl")
"""Best first; a table holds the position."""
_SETTINGS: dict[str, Any] = {"threads": 2, "memory_limit": "800MB"}


class Shelf:
    """The parts of one store; opening reads no articles, and several threads may ask."""

    def __init__(self, store: Path) -> None:
        with catalogue(store) as listed:
            self._parts = parts(listed)
            self._files, self._ignored = files_read(listed), ignored_files(listed)
        if not self._parts:
            raise KnowledgeError(
                "the news store holds no articles",
                where=str(store),
                hint="bring news into it; its files have no row that is an article",
            )
        self._texts: dict[int, Texts] = {}
        self._database = duckdb.connect(config=_SETTINGS)
        try:
            _view_tables(self._database, store, self._parts)
            self._texts = {
                part.id: Texts(folder_of(store, part.id) / TEXTS) for part in self._parts
            }
        except (duckdb.Error, OSError, ValueError) as error:
            self.close()
            raise KnowledgeError(
                f"the news store is damaged: {error}",
                where=str(store),
                hint="delete its folder `parts`, or all of it: it is made again from the news",
            ) from error
        self.articles = sum(part.articles for part in self._parts)
        """How many there are in all."""

    def close(self) -> None:
        """Let go of files and memory."""
        for texts in self._texts.values():
            texts.close()
        self._database.close()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a connection that sees the tables of parts/tables.py, all parts as one."""
        return self._database.cursor()

    def evidence(self, places: Iterable[tuple[int, int]]) -> tuple[Evidence, ...]:
        """Return what is offered of the articles with these parts and numbers, in order."""
        records = (record for part, number in places for record in self._texts[part].read([number]))
        by_id = {record[0]: record for record in records}  # a page may be in two parts
        return tuple(to_evidence(record) for record in by_id.values())

    def stats(self) -> StoreStats:
        """Return what the store was made of."""
        dropped: Counter[str] = Counter()
        precision: Counter[Precision] = Counter()
        for part in self._parts:
            dropped.update(part.dropped)
            precision.update({PRECISIONS[at]: count for at, count in part.precision.items()})
        bad: Counter[str] = Counter()
        for file in self._files:
            bad.update(file.bad)
        return StoreStats(
            fingerprint=_fingerprint(self._parts),
            files=tuple(self._files),
            ignored=self._ignored,
            rows=sum(file.rows for file in self._files),
            bad=dict(bad),
            duplicates=sum(part.duplicates for part in self._parts),
            dropped=dict(sorted(dropped.items())),
            articles=self.articles,
            clusters=sum(part.stories for part in self._parts),
            precision=dict(precision),
        )


def _view_tables(database: duckdb.DuckDBPyConnection, store: Path, listed: Sequence[Part]) -> None:
    database.execute("SET parquet_metadata_cache = true")
    for table in TABLES:
        files = [str(folder_of(store, part.id) / f"{table}.parquet") for part in listed]
        database.read_parquet(files).create_view(table)


def _fingerprint(listed: Sequence[Part]) -> str:
    joined = "\n".join(part.fingerprint for part in listed)
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


def to_evidence(record: Sequence[Any]) -> Evidence:
    """Build evidence from a part's record (`RECORD` in parts/tables.py)."""
    page, url, site, title, snippet, published, precision, story, entities, origin = record
    return Evidence(
        id=page,
        url=url,
        domain=site,
        title=title,
        snippet=snippet,
        published_at=datetime.fromtimestamp(published, tz=UTC),
        published_precision=PRECISIONS[precision],
        entities=tuple(NamedEntity(name=name, type=kind) for name, kind in entities),
        cluster=story,
        origin=origin,
        instruction_like=instruction_like(title, snippet),
    )
