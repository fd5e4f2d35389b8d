"""GKG 2.1 read row by row, as plainly as can be: what the columnar reader is held against."""

import re
from pathlib import Path

from coreeval.schema import EntityType, NamedEntity
from coreeval.tools.gdelt.dates import parse_stamp
from coreeval.tools.gdelt.files import GKG_COLUMNS, lines, text
from coreeval.tools.gdelt.gkg import (
    ALL_NAMES,
    COLLECTION,
    DATE,
    EXTRAS,
    LOCATIONS,
    ORGANISATIONS,
    PERSONS,
    PROMINENT_MENTIONS,
    PROMINENT_OFFSET,
    TRANSLATION,
    URL,
    WEB,
)
from coreeval.tools.gdelt.language import language_code
from coreeval.tools.gdelt.rows import Article, BadRow, Rows
from coreeval.tools.gdelt.titles import clean
from coreeval.tools.gdelt.urls import host_of

_TITLE = re.compile(r"<PAGE_TITLE>(.*?)</PAGE_TITLE>")
_PUBLISHED = re.compile(r"<PAGE_PRECISEPUBTIMESTAMP>(\d{14})<")
_SOURCE_LANGUAGE = re.compile(r"srclc:(\w+)")


def read_gkg(path: Path, name: str) -> Rows:
    """Yield the articles of one file; rows without a title are no evidence."""
    for number, line in enumerate(lines(path), start=1):
        if line.strip():
            yield _article(text(line).split("\t"), f"{name}:{number}")


def _article(columns: list[str], origin: str) -> Article | BadRow:
    if len(columns) != GKG_COLUMNS:
        return BadRow("columns")
    if columns[COLLECTION] != WEB:
        return BadRow("collection")
    title = _TITLE.search(columns[EXTRAS])
    if not title or not clean(title[1]):
        return BadRow("untitled")
    if not host_of(columns[URL]):
        return BadRow("no_url")
    crawled_at = parse_stamp(columns[DATE])
    if crawled_at is None:
        return BadRow("no_date")
    published = _PUBLISHED.search(columns[EXTRAS])
    return Article(
        url=columns[URL],
        title=clean(title[1]),
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
