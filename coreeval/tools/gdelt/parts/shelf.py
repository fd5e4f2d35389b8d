"""An open store: the indexes of its parts, and the texts of single articles."""

import hashlib
import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from coreeval.errors import KnowledgeError
from coreeval.schema import EntityType, Evidence, NamedEntity, Precision
from coreeval.tools.gdelt.parts.arrays import Arrays, open_arrays
from coreeval.tools.gdelt.parts.catalogue import (
    Part,
    catalogue,
    files_read,
    folder_of,
    ignored_files,
    parts,
)
from coreeval.tools.gdelt.parts.index import INDEX, TEXTS, Articles, Index
from coreeval.tools.gdelt.parts.texts import Texts
from coreeval.tools.gdelt.stats import StoreStats
from coreeval.tools.gdelt.untrusted import instruction_like

PRECISIONS: tuple[Precision, ...] = ("exact", "url", "cluster", "crawl")
"""Best first; an array holds the position."""


class Shelf:
    """The parts of one store; opening reads little of them, and several threads may ask."""

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
        self._store = store
        self._texts: list[Texts] = []
        with self.undamaged(OSError, ValueError):
            self._texts = [Texts(folder_of(store, part.id) / TEXTS) for part in self._parts]
            arrays = [open_arrays(folder_of(store, part.id) / INDEX) for part in self._parts]
            self.articles = Articles.of(arrays)
            """All of them, those of a part in order of time."""
            self._first = _firsts(arrays, "published")
            names = _firsts(arrays, "hashes")
            self.indexes = [Index.of(*one) for one in zip(arrays, self._first, names, strict=True)]

    @contextmanager
    def undamaged(self, *signs: type[Exception]) -> Iterator[None]:
        """Say what to do where `signs` show that a file is not what it should be."""
        try:
            yield
        except signs as error:
            raise KnowledgeError(
                f"a part of the news store is damaged, or made by another version: {error}",
                where=str(self._store),
                hint="`coreeval gdelt sync` makes it again from the news that the store keeps; if "
                "knowledge.path is a folder of files, delete this store",
            ) from error

    def close(self) -> None:
        """Let go of the texts; what is mapped goes with the last who uses it."""
        for texts in self._texts:
            texts.close()

    def evidence(self, articles: Iterable[int]) -> tuple[Evidence, ...]:
        """Return what is offered of articles, in order."""
        with self.undamaged(OSError, ValueError, LookupError):
            records = [self._record(number) for number in articles]
        by_id = {record[0]: record for record in records}  # a page may be in two parts
        return tuple(to_evidence(record) for record in by_id.values())

    def _record(self, article: int) -> list[Any]:
        part = bisect_right(self._first, article) - 1
        record: list[Any] = self._texts[part].read(article - self._first[part])
        return record

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
            articles=len(self.articles.published),
            clusters=sum(part.stories for part in self._parts),
            precision=dict(precision),
        )


def _firsts(parts: Sequence[Arrays], array: str) -> list[int]:
    """Return how many items of an array the parts before each have."""
    return [0, *itertools.accumulate(len(part[array]) for part in parts[:-1])]


def _fingerprint(listed: Sequence[Part]) -> str:
    joined = "\n".join(part.fingerprint for part in listed)
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


@lru_cache(maxsize=1 << 14)
def _named(name: str, kind: EntityType) -> NamedEntity:
    return NamedEntity(name=name, type=kind)


def to_evidence(record: Sequence[Any]) -> Evidence:
    """Build evidence from a part's record (parts/writing.py)."""
    page, url, site, title, snippet, published, precision, story, entities, origin = record
    return Evidence(
        id=page,
        url=url,
        domain=site,
        title=title,
        snippet=snippet,
        published_at=datetime.fromtimestamp(published, tz=UTC),
        published_precision=PRECISIONS[precision],
        entities=tuple(_named(name, kind) for name, kind in entities),
        cluster=story,
        origin=origin,
        instruction_like=instruction_like(title, snippet),
    )
