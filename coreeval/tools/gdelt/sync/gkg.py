"""Reads GKG 2.1 by column: the ten useful of 27 columns, from bytes to a table."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from coreeval.tools.gdelt.page_text import LONGEST_TITLE
from coreeval.tools.gdelt.rows import (
    ALL_NAMES,
    COLLECTION,
    DATE,
    EXTRAS,
    GKG_COLUMNS,
    LOCATIONS,
    ORGANISATIONS,
    PERSONS,
    TRANSLATION,
    URL,
    WEB,
    Reason,
)
from coreeval.tools.gdelt.sync.gkg_names import (
    find_prominent_names,
    join_lists,
    split_distinct_items,
)
from coreeval.tools.gdelt.sync.segment_rows import (
    RowTally,
    build_articles_table,
    clean_page_text,
    is_address,
    parse_seconds,
)
from coreeval.tools.gdelt.words import language_code

THEMES, TONE, GCAM = 7, 15, 17
WORD_COUNT = 6
"""The position of the last of the seven numbers in the tone column."""
LISTS = (PERSONS, ORGANISATIONS, LOCATIONS, ALL_NAMES, THEMES)
CHUNK = 2048
"""The most rows of a table."""
CHUNK_BYTES = 1 << 26
"""The bytes of lines after which a table is complete, even if it has few rows: Arrow counts a
column's bytes in 31 bits, and a name of a few bytes takes a hundred while it is counted."""
MOST_WORDS = 2**31 - 1
_WEB = WEB.encode()
_PUBLISHED = re.compile(rb"<PAGE_PRECISEPUBTIMESTAMP>(\d{14})<")
_SOURCE_LANGUAGE = re.compile(r"srclc:(\w+)")


@dataclass(slots=True)
class _Chunk:
    """Articles as columns."""

    url: list[str] = field(default_factory=list)
    title: list[str] = field(default_factory=list)
    crawled_at: list[int] = field(default_factory=list)
    stated_at: list[int | None] = field(default_factory=list)
    language: list[str] = field(default_factory=list)
    words: list[int | None] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    lists: tuple[list[bytes], ...] = field(default_factory=lambda: tuple([] for _ in LISTS))

    def table(self, feed: str) -> Any:  # noqa: ANN401 - Arrow has no types
        """Return the articles as a table."""
        rows = len(self.url)
        persons, organisations, places, names, themes = map(join_lists, self.lists)
        mentions = [
            persons.split_names(),
            organisations.split_names(),
            places.split_places(),
            names.split_names(),
        ]
        return build_articles_table(
            {
                "url": self.url,
                "title": self.title,
                "crawled_at": self.crawled_at,
                "stated_at": self.stated_at,
                "language": self.language,
                "words": self.words,
                "line": self.line,
                "feed": [feed] * rows,
                "entities": find_prominent_names(rows, mentions),
                "themes": split_distinct_items(themes),
            }
        )


def read_gkg(groups: Iterable[list[bytes]], tally: RowTally, feed: str) -> Iterator[Any]:
    """Yield tables of the articles of one file, without rows that have no title.

    Args:
        groups: The file's lines.
        tally: Counts the rows and the rejected rows.
        feed: `gkg` or `gkg_translated`.
    """
    chunk, number, size = _Chunk(), 0, 0
    for lines in groups:
        for line in lines:
            number += 1
            _add_row(chunk, number, line, tally)
        size += sum(map(len, lines))
        if chunk.url and (len(chunk.url) >= CHUNK or size >= CHUNK_BYTES):
            yield chunk.table(feed)
            chunk, size = _Chunk(), 0
    if chunk.url:
        yield chunk.table(feed)


def _add_row(chunk: _Chunk, number: int, line: bytes, tally: RowTally) -> None:
    """Add a row to the chunk, or count the reason that it is not an article."""
    columns = _split_columns(line)
    article = _check_row(columns)
    if isinstance(article, str):
        if line.strip():
            tally.rows += 1
            tally.refuse(number, article, line)
        return
    tally.rows += 1
    url, title, crawled_at = article
    published = _PUBLISHED.search(columns[EXTRAS])
    chunk.url.append(url)
    chunk.title.append(title)
    chunk.crawled_at.append(crawled_at)
    chunk.stated_at.append(parse_seconds(published[1].decode()) if published else None)
    chunk.language.append(_find_language(columns[TRANSLATION]))
    chunk.words.append(_find_word_count(columns[TONE]))
    chunk.line.append(number)
    for values, place in zip(chunk.lists, LISTS, strict=True):
        values.append(columns[place])


def _split_columns(line: bytes) -> list[bytes]:
    """Split a row without searching its longest column, two thirds of it, byte by byte."""
    columns = line.split(b"\t", GCAM)
    if len(columns) > GCAM:
        scores, _, rest = columns.pop().partition(b"\t")
        columns += [scores, *rest.split(b"\t")]
    return columns


def _check_row(columns: list[bytes]) -> Reason | tuple[str, str, int]:
    """Return URL, title and crawl time, or the reason that a row is not an article."""
    if len(columns) != GKG_COLUMNS:
        return "columns"
    if columns[COLLECTION] != _WEB:
        return "collection"
    title = clean_page_text(_find_title(columns[EXTRAS]).decode("utf-8", "replace"), LONGEST_TITLE)
    if not title:
        return "untitled"
    url = columns[URL].decode("utf-8", "replace")
    if not is_address(url):
        return "no_url"
    crawled_at = parse_seconds(columns[DATE].decode("utf-8", "replace"))
    return (url, title, crawled_at) if crawled_at is not None else "no_date"


def _find_title(extras: bytes) -> bytes:
    _, _, rest = extras.partition(b"<PAGE_TITLE>")
    title, end, _ = rest.partition(b"</PAGE_TITLE>")
    return title if end else b""


@lru_cache(maxsize=1024)
def _find_language(translation: bytes) -> str:
    """Return the page's language; an untranslated page of this feed is English."""
    source = _SOURCE_LANGUAGE.search(translation.decode("utf-8", "replace"))
    return language_code(source[1]) if source else "en"


def _find_word_count(tone: bytes) -> int | None:
    numbers = tone.split(b",")
    if len(numbers) <= WORD_COUNT or not numbers[WORD_COUNT].isdigit():
        return None
    return min(int(numbers[WORD_COUNT][:10]), MOST_WORDS)
