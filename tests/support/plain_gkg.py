"""GKG 2.1 read row by row, as plainly as can be: what the columnar reader is held against."""

import re
from pathlib import Path

from coreeval.schema import EntityType, NamedEntity
from coreeval.tools.gdelt.page_text import clean_title
from coreeval.tools.gdelt.rows import (
    ALL_NAMES,
    COLLECTION,
    DATE,
    EXTRAS,
    GKG_COLUMNS,
    LOCATIONS,
    ORGANISATIONS,
    PERSONS,
    PROMINENT_MENTIONS,
    PROMINENT_OFFSET,
    TRANSLATION,
    URL,
    WEB,
    Article,
    RowDefect,
    Rows,
    decode_line,
    host_of,
    parse_stamp,
    read_lines,
)
from coreeval.tools.gdelt.words import language_code

_TITLE = re.compile(r"<PAGE_TITLE>(.*?)</PAGE_TITLE>")
_PUBLISHED = re.compile(r"<PAGE_PRECISEPUBTIMESTAMP>(\d{14})<")
_SOURCE_LANGUAGE = re.compile(r"srclc:(\w+)")


def read_gkg(path: Path, name: str) -> Rows:
    """Yield the articles of one file; rows without a title are no evidence."""
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            yield _article(decode_line(line).split("\t"), f"{name}:{number}")


def _article(columns: list[str], origin: str) -> Article | RowDefect:
    if len(columns) != GKG_COLUMNS:
        return RowDefect("columns")
    if columns[COLLECTION] != WEB:
        return RowDefect("collection")
    title = _TITLE.search(columns[EXTRAS])
    if not title or not clean_title(title[1]):
        return RowDefect("untitled")
    if not host_of(columns[URL]):
        return RowDefect("no_url")
    crawled_at = parse_stamp(columns[DATE])
    if crawled_at is None:
        return RowDefect("no_date")
    published = _PUBLISHED.search(columns[EXTRAS])
    return Article(
        url=columns[URL],
        title=clean_title(title[1]),
        crawled_at=crawled_at,
        stated_at=parse_stamp(published[1]) if published else None,
        language=_language(columns[TRANSLATION]),
        entities=_entities(columns),
        origin=origin,
    )


def _language(translation: str) -> str:
    """Return the page's language; an untranslated page of this feed is English."""
    source = _SOURCE_LANGUAGE.search(translation)
    return language_code(source[1]) if source else "en"


def _entities(columns: list[str]) -> tuple[NamedEntity, ...]:
    """Return the prominent names, each once, with the type of the first list that has it."""
    types: tuple[tuple[EntityType, list[tuple[str, int]]], ...] = (
        ("person", _mentions(columns[PERSONS])),
        ("organisation", _mentions(columns[ORGANISATIONS])),
        ("place", _places(columns[LOCATIONS])),
        ("other", _mentions(columns[ALL_NAMES])),
    )
    found: dict[str, NamedEntity] = {}
    for kind, mentions in types:
        for name in _prominent(mentions):
            found.setdefault(name.casefold(), NamedEntity(name=name, type=kind))
    return tuple(found.values())


def _mentions(column: str) -> list[tuple[str, int]]:
    """Split `Name,offset;Name,offset`."""
    pairs = (item.rpartition(",") for item in column.split(";") if item)
    return [(name.strip(), int(at)) for name, _, at in pairs if name.strip() and at.isdigit()]


def _places(column: str) -> list[tuple[str, int]]:
    """Split `type#City, State, Country#…#offset;…` and keep the first part of each name."""
    blocks = (block.split("#") for block in column.split(";") if block)
    return [
        (parts[1].split(",")[0].strip(), int(parts[-1]))
        for parts in blocks
        if len(parts) > 2 and parts[1].split(",")[0].strip() and parts[-1].isdigit()
    ]


def _prominent(mentions: list[tuple[str, int]]) -> list[str]:
    names = [name for name, _ in mentions]
    early = {name for name, at in mentions if at < PROMINENT_OFFSET}
    return [
        name
        for name in dict.fromkeys(names)
        if name in early or names.count(name) >= PROMINENT_MENTIONS
    ]
