"""An open store: the inverted indexes of its parts, and the texts of single articles.

They find the articles with a word, a name or a theme, and their times.
"""

import hashlib
import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from coreeval.errors import KnowledgeError
from coreeval.languages import ENGLISH
from coreeval.schema import (
    EntityType,
    Evidence,
    EvidenceDepth,
    EvidenceSource,
    NamedEntity,
    Precision,
)
from coreeval.tools.gdelt.current_events import LICENCE
from coreeval.tools.gdelt.index.storage import (
    Arrays,
    Flags,
    Postings,
    RecordFile,
    Strings,
    open_arrays,
)
from coreeval.tools.gdelt.index.store_catalog import (
    FINISH,
    StorePart,
    StoreStats,
    describe_unsearchable,
    list_files_read,
    list_ignored_files,
    list_languages,
    list_parts,
    open_catalog,
    part_folder,
)
from coreeval.tools.gdelt.own_files import PART_FILES
from coreeval.tools.gdelt.page_text import is_instruction_like

INDEX, TEXTS = PART_FILES
"""The files of a part."""
KINDS: tuple[EntityType, ...] = tuple(
    sorted(get_args(EntityType), key=lambda kind: (kind == "other", kind))
)
"""The types of names; arrays store the position. `other`, which means that no type is known, is
last."""


@dataclass(frozen=True, slots=True)
class ArticleColumns:
    """The properties of articles that ranking needs, by article number."""

    published: NDArray[np.int64]
    """Publication times in epoch seconds."""
    precision: NDArray[np.uint8]
    """Positions in `PRECISIONS`."""
    prior: NDArray[np.float32]
    """The part of the score that does not depend on the query: number of sites with the story,
    quality."""
    story: NDArray[np.uint32]
    """The first bits of the story's id; 0 if no other article reports it."""
    teller: NDArray[np.uint32]
    """A hash of the site, for articles with a story."""
    source: NDArray[np.uint8]
    """Positions in `SOURCES`."""
    language: NDArray[np.uint16]
    """The codes of `encode_language`."""

    @classmethod
    def of(cls, parts: Sequence[Arrays]) -> "ArticleColumns":
        """Return the articles of several parts, concatenated."""
        whole = [_with_defaults(part) for part in parts]
        return cls(*(np.concatenate([part[name] for part in whole]) for name in cls.__slots__))

    def of_language(self, language: str) -> Flags:
        """Return for each article whether it is in a language."""
        wanted: Flags = self.language == encode_language(language)
        return wanted


def encode_language(code: str) -> int:
    """Return the two letters of an ISO 639-1 code as one number, as stored in parts."""
    return ord(code[0]) * 256 + ord(code[1])


def _with_defaults(part: Arrays) -> Arrays:
    """Return the arrays of a part; one built by an older version has only GDELT's English news."""
    count = len(part["published"])
    return {
        "source": np.zeros(count, np.uint8),
        "language": np.full(count, encode_language(ENGLISH), np.uint16),
        **part,
    }


@dataclass(frozen=True, slots=True)
class PartIndex:
    """The lookup tables of one part."""

    first: int
    """The number in the store of the part's first article."""
    first_name: int
    """The number in the store of the part's first name; a name in several parts has several
    numbers."""
    published: NDArray[np.int64]
    precision: NDArray[np.uint8]
    terms: Strings
    """The words of headlines, descriptions and names."""
    words: Postings
    """The articles by term; the flag marks terms in the headline."""
    names: Postings
    """The names by term."""
    shown: Strings
    """The names as displayed."""
    hashes: NDArray[np.uint64]
    """A hash of each lower-case name, the same in all parts."""
    mentions: Postings
    """The articles by name; the flag marks names that are from GKG and not only from the
    headline."""
    depths: NDArray[np.uint8]
    """For each mention of a crowded name, the number of that day's mentions ranked before it."""
    kinds: NDArray[np.uint8]
    """For each mention, the type of the name, as a position in `KINDS`."""
    themes: Postings
    """The articles by theme; the key is the theme's position in `THEMES`."""

    @classmethod
    def of(cls, arrays: Arrays, first: int, first_name: int) -> "PartIndex":
        """Return the index stored in a part's arrays."""

        def strings(name: str) -> Strings:
            return Strings(arrays[f"{name}_starts"], arrays[f"{name}_text"])

        def postings(name: str) -> Postings:
            return Postings(arrays[f"{name}_starts"], arrays[name])

        return cls(
            first=first,
            first_name=first_name,
            published=arrays["published"],
            precision=arrays["precision"],
            terms=strings("terms"),
            words=postings("words"),
            names=postings("names"),
            shown=strings("shown"),
            hashes=arrays["hashes"],
            mentions=postings("mentions"),
            depths=arrays["depths"],
            kinds=arrays["kinds"],
            themes=postings("themes"),
        )


def read_pages(folder: Path) -> NDArray[np.uint64]:
    """Return the pages of a part's articles: the first 64 bits of their ids."""
    pages: NDArray[np.uint64] = open_arrays(folder / INDEX)["page"]
    return pages


def is_whole(folder: Path) -> bool:
    """Return whether a part's files exist in this version's format and are unchanged."""
    try:
        open_arrays(folder / INDEX, checked=True)
        RecordFile(folder / TEXTS).close()
    except (OSError, ValueError):
        return False
    return True


PRECISIONS: tuple[Precision, ...] = ("exact", "url", "cluster", "crawl")
"""The precisions, best first; arrays store the position."""
SOURCES: tuple[EvidenceSource, ...] = ("gdelt", "current_events", "file")
"""The sources of a store's articles; arrays store the position. The last two are also the names of
their feeds."""
_LICENCES: dict[EvidenceSource, str] = {"gdelt": "", "current_events": LICENCE}
"""The licences of the sources whose articles do not state their own."""


_NO_ROWS = "download news into it; its files contain no articles"


class NewsIndex:
    """The parts of one store; opening them reads little, and several threads may use them."""

    def __init__(self, store: Path) -> None:
        with open_catalog(store) as listed:
            self._parts = list_parts(listed)
            self._files, self._ignored = list_files_read(listed), list_ignored_files(listed)
            self.languages = list_languages(listed)
            """The languages of the articles that the store offers."""
            self.unsearchable = describe_unsearchable(listed)
            """A message on news of the store that cannot be found, and what to do; "" if there is
            none."""
        if not self._parts:
            raise KnowledgeError(
                "no article in the news store is searchable yet"
                if self.unsearchable
                else "the news store contains no articles",
                where=str(store),
                hint=FINISH if self.unsearchable else _NO_ROWS,
            )
        self._store = store
        self._texts: list[RecordFile] = []
        with self.explain_damage(OSError, ValueError):
            self._texts = [RecordFile(part_folder(store, part.id) / TEXTS) for part in self._parts]
            arrays = [open_arrays(part_folder(store, part.id) / INDEX) for part in self._parts]
            self.articles = ArticleColumns.of(arrays)
            """All articles, those of a part in order of time."""
            self._first = _first_numbers(arrays, "published")
            names = _first_numbers(arrays, "hashes")
            self.indexes = [
                PartIndex.of(*one) for one in zip(arrays, self._first, names, strict=True)
            ]

    @contextmanager
    def explain_damage(self, *signs: type[Exception]) -> Iterator[None]:
        """Explain what to do if an error in `signs` shows that a file is damaged."""
        try:
            yield
        except signs as error:
            raise KnowledgeError(
                f"part of the news store is damaged or was made by another version: {error}",
                where=str(self._store),
                hint="run `coreeval gdelt sync` to rebuild it from the stored news; if "
                "knowledge.path is a folder of files, delete this store",
            ) from error

    def close(self) -> None:
        """Close the texts; mapped files are released when they are no longer used."""
        for texts in self._texts:
            texts.close()

    def evidence(self, articles: Iterable[int]) -> tuple[Evidence, ...]:
        """Return the evidence for articles, in order; a page in two parts appears once."""
        return tuple({one.id: one for one in self.read(articles)}.values())

    def read(self, articles: Iterable[int]) -> list[Evidence]:
        """Return one piece of evidence for each article, in order."""
        with self.explain_damage(OSError, ValueError, LookupError):
            return [to_evidence(self._record(number)) for number in articles]

    def _record(self, article: int) -> list[Any]:
        part = bisect_right(self._first, article) - 1
        record: list[Any] = self._texts[part].read(article - self._first[part])
        return record

    def stats(self) -> StoreStats:
        """Return the statistics of the files that the store was built from."""
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


def _first_numbers(parts: Sequence[Arrays], array: str) -> list[int]:
    """Return, for each part, the number of items of an array in the parts before it."""
    return [0, *itertools.accumulate(len(part[array]) for part in parts[:-1])]


def _fingerprint(listed: Sequence[StorePart]) -> str:
    joined = "\n".join(part.fingerprint for part in listed)
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


@lru_cache(maxsize=1 << 14)
def _make_entity(name: str, kind: EntityType) -> NamedEntity:
    return NamedEntity(name=name, type=kind)


_OLDER: tuple[Any, ...] = (0, [], ENGLISH, "")
"""The last values of a record, for parts of older versions that lack some of them: GDELT's news in
English, without citations and licence."""


def to_evidence(record: Sequence[Any]) -> Evidence:
    """Return evidence built from a part's record (see part_writer.py)."""
    page, url, site, title, snippet, published, precision, story, entities, origin, *more = record
    own: list[Any] = [*more, *_OLDER[len(more) :]]
    number, cites, language, licence = own
    source = SOURCES[number]
    depth: EvidenceDepth = "description" if snippet or source != "gdelt" else "headline"
    return Evidence(
        id=page,
        url=url,
        domain=site,
        title=title,
        snippet=snippet,
        published_at=datetime.fromtimestamp(published, tz=UTC),
        published_precision=PRECISIONS[precision],
        language=language,
        entities=tuple(_make_entity(name, kind) for name, kind in entities),
        cluster=story,
        origin=" ".join((origin, *(f"<{url}>" for url in cites))),
        instruction_like=is_instruction_like(title, snippet),
        source=source,
        licence=_LICENCES.get(source, licence),
        depth=depth,
    )
