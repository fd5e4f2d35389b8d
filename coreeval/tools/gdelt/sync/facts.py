"""Reads files of dated facts: JSON lines, and the API's answers with pages of current events.

A row is a fact: its sentence is the title, its day is in its address, and its links are its names.
A page's topics count as events.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, Final

from coreeval.tools.chunks import chunks
from coreeval.tools.gdelt.current_events import FEED, day_of_page, fact_url, may_be_used
from coreeval.tools.gdelt.page_text import LONGEST_TITLE
from coreeval.tools.gdelt.rows import LATEST, OLDEST, Reason, read_text_field
from coreeval.tools.gdelt.sync.portal_page import PageFact, UnknownLayout, read_page
from coreeval.tools.gdelt.sync.segment_rows import (
    RowTally,
    build_articles_table,
    clean_page_text,
    is_address,
)
from coreeval.tools.gdelt.words import UNKNOWN_LANGUAGE, language_code

CHUNK: Final = 2048
"""The number of facts in a table."""
MOST_NAMES: Final = 40
"""The most names of a fact; on real pages a sentence has at most 20 links."""
MOST_SOURCES: Final = 5
LONGEST_NAME: Final = 200
MOST_HTML: Final = 2 << 20
"""The most characters of a page; a day has about 100,000."""
_DISAMBIGUATION = re.compile(r" \([^()]*\)$")
_STRIP_MARKER = re.compile(r"\x7f?'\"`UNIQ-[\w-]*-QINU`\"'\x7f?")
"""The mark that MediaWiki leaves for a template that was not restored."""


@dataclass(frozen=True, slots=True)
class DatedFact:
    """A fact and its day."""

    day: date
    told: PageFact
    language: str
    line: int


def read_facts(groups: Iterable[list[bytes]], tally: RowTally) -> Iterator[Any]:
    """Yield tables of the facts of one file.

    Args:
        groups: The file's lines.
        tally: Counts the rows and the rejected rows.
    """
    for chunk in chunks(_iter_rows(groups, tally), CHUNK):
        yield _make_table(chunk)


def _iter_rows(groups: Iterable[list[bytes]], tally: RowTally) -> Iterator[dict[str, Any]]:
    for fact in _iter_facts(groups, tally):
        row = _to_row(fact)
        if isinstance(row, str):
            tally.refuse(fact.line, row, fact.told.text)
        else:
            yield row


def _make_table(rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - Arrow has no types
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return build_articles_table({**columns, "feed": [FEED] * len(rows)})


def _iter_facts(groups: Iterable[list[bytes]], tally: RowTally) -> Iterator[DatedFact]:
    number = 0
    for lines in groups:
        for number, line in enumerate(lines, start=number + 1):  # noqa: B020 - counts on
            if line.strip():
                yield from _read_line(line, number, tally)


def _read_line(line: bytes, number: int, tally: RowTally) -> Iterator[DatedFact]:
    """Yield the facts of a line, one or a whole page, and count each, including refused ones."""
    value = _parse(line)
    page = value.get("parse") if value else None
    if isinstance(page, dict):
        yield from _read_answer(page, number, tally)
        return
    tally.rows += 1
    fact = _parse_fact(value, number) if value else "invalid_json"
    if isinstance(fact, DatedFact):
        yield fact
    else:
        tally.refuse(number, fact, line)


def _parse(line: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(line.decode("utf-8", "replace").removeprefix("\ufeff"), strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _parse_fact(row: Mapping[str, object], number: int) -> DatedFact | Reason:
    if not may_be_used(read_text_field(row, "licence")):
        return "licence"
    day = _parse_day(read_text_field(row, "date"))
    if day is None:
        return "no_date"
    address = read_text_field(row, "url")
    if address and day_of_page(address) != day:
        return "layout"
    sources = (
        read_text_field(each, "url") for each in _list(row, "sources") if isinstance(each, dict)
    )
    told = PageFact(
        text=read_text_field(row, "text"),
        category=read_text_field(row, "category"),
        topics=tuple(_texts(row, "topics")),
        entities=tuple(_texts(row, "entities")),
        sources=tuple(sources),
    )
    said = read_text_field(row, "language")
    return DatedFact(day, told, language_code(said) if said else "en", number)


def _read_answer(page: Mapping[str, object], number: int, tally: RowTally) -> Iterator[DatedFact]:
    """Yield the facts of a day's page in an answer of the API."""
    html, day = page.get("text"), day_of_page(read_text_field(page, "title"))
    if isinstance(html, dict):  # the older format of an answer
        html = html.get("*")
    if day is None or not isinstance(html, str) or len(html) > MOST_HTML:
        _refuse_page(number, page, tally)
        return
    try:
        facts = read_page(html)
    except UnknownLayout:
        _refuse_page(number, page, tally)
        return
    for place, told in enumerate(facts, start=1):
        tally.rows += 1
        yield DatedFact(day, told, "en", place)


def _refuse_page(number: int, page: Mapping[str, object], tally: RowTally) -> None:
    tally.rows += 1
    tally.refuse(number, "layout", read_text_field(page, "title"))


def _to_row(fact: DatedFact) -> dict[str, Any] | Reason:
    title = clean_page_text(_STRIP_MARKER.sub("", fact.told.text[:MOST_HTML]), LONGEST_TITLE)
    if not title:
        return "untitled"
    at = datetime.combine(fact.day, time(), UTC)
    if not OLDEST <= at < LATEST:
        return "no_date"
    return {
        "url": fact_url(fact.day, title),
        "title": title,
        "crawled_at": int(at.timestamp()),
        "stated_at": None,
        "language": fact.language or UNKNOWN_LANGUAGE,
        "line": fact.line,
        "entities": list(_names(fact.told)),
        "themes": [name] if (name := clean_page_text(fact.told.category, LONGEST_NAME)) else [],
        "cites": [url for url in fact.told.sources if is_address(url)][:MOST_SOURCES],
    }


def _names(told: PageFact) -> Iterator[dict[str, object]]:
    """Yield a fact's links, and its topics as events, each once.

    A link to a common noun, in lower case in the sentence, is not a name.
    """
    linked = (_clean_name(name) for name in told.entities[:MOST_NAMES])
    kinds = {name: "other" for name in linked if name in told.text or name.lower() not in told.text}
    kinds |= {_clean_name(name): "event" for name in told.topics[:MOST_NAMES]}
    for place, (name, kind) in enumerate(kinds.items()):
        if name:
            yield {"name": name, "type": kind, "at": place, "n": 1}


def _clean_name(raw: str) -> str:
    """Return a name without a suffix that distinguishes titles: `The Studio (series)`."""
    name = clean_page_text(raw, LONGEST_NAME)
    return _DISAMBIGUATION.sub("", name) or name


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _list(row: Mapping[str, object], key: str) -> list[object]:
    value = row.get(key)
    return value if isinstance(value, list) else []


def _texts(row: Mapping[str, object], key: str) -> Iterator[str]:
    return (each for each in _list(row, key) if isinstance(each, str))
