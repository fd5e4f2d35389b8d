"""Reads dated facts: Wikipedia's current events, and news of the user's own.

A fact of the portal is a JSON line with its page as `url`, or a part of the API's answer with a
page. It is a row: its sentence is the title, its day is in its address, and its links are its
names. A page's topics count as events. Any other dated line is news of the user's own, with its own
address and licence.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, Final

from coreeval.config.credentials import hide_url_credentials
from coreeval.tools.chunks import chunks
from coreeval.tools.gdelt.current_events import FEED, day_of_page, fact_url, may_be_used
from coreeval.tools.gdelt.page_text import LONGEST_SNIPPET, LONGEST_TITLE
from coreeval.tools.gdelt.rows import LATEST, OLDEST, Reason, is_portal_line, read_text_field
from coreeval.tools.gdelt.sync.portal_page import PageFact, UnknownLayout, read_page
from coreeval.tools.gdelt.sync.segment_rows import (
    RowTally,
    build_articles_table,
    clean_page_text,
    is_address,
    parse_seconds,
)
from coreeval.tools.gdelt.words import UNKNOWN_LANGUAGE, language_code
from coreeval.tools.licences import forbids_changes, stated_licence

CHUNK: Final = 2048
"""The number of facts in a table."""
MOST_NAMES: Final = 40
"""The most names of a fact; on real pages a sentence has at most 20 links."""
MOST_SOURCES: Final = 5
LONGEST_NAME: Final = 200
MOST_HTML: Final = 2 << 20
"""The most characters of a page; a day has about 100,000."""
LONGEST_LICENCE: Final = 200
OWN: Final = "file"
"""The feed of the user's own news."""
_DISAMBIGUATION = re.compile(r" \([^()]*\)$")
_STRIP_MARKER = re.compile(r"\x7f?'\"`UNIQ-[\w-]*-QINU`\"'\x7f?")
"""The mark that MediaWiki leaves for a template that was not restored."""


Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DatedFact:
    """A fact of the portal and its day."""

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


def _make_table(rows: list[Row]) -> Any:  # noqa: ANN401 - Arrow has no types
    return build_articles_table({name: [row[name] for row in rows] for name in rows[0]})


def _iter_rows(groups: Iterable[list[bytes]], tally: RowTally) -> Iterator[Row]:
    number = 0
    for lines in groups:
        for number, line in enumerate(lines, start=number + 1):  # noqa: B020 - counts on
            if line.strip():
                yield from _read_line(line, number, tally)


def _read_line(line: bytes, number: int, tally: RowTally) -> Iterator[Row]:
    """Yield the rows of a line, one or a whole page, and count each, including refused ones."""
    value = _parse(line)
    page = value.get("parse") if value else None
    if isinstance(page, dict):
        for fact in _read_answer(page, number, tally):
            yield from _accept(_to_row(fact), fact.line, fact.told.text, tally)
        return
    tally.rows += 1
    yield from _accept(_parse_row(value, number), number, line, tally)


def _accept(row: Row | Reason, number: int, told: bytes | str, tally: RowTally) -> Iterator[Row]:
    """Yield a row, or count it as refused."""
    if isinstance(row, str):
        tally.refuse(number, row, told)
    else:
        yield row


def _parse_row(value: Mapping[str, object] | None, number: int) -> Row | Reason:
    if not value:
        return "invalid_json"
    if not is_portal_line(value):
        return _parse_own(value, number)
    fact = _parse_fact(value, number)
    return fact if isinstance(fact, str) else _to_row(fact)


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
    if day_of_page(read_text_field(row, "url")) != day:
        return "layout"
    said = read_text_field(row, "language")
    return DatedFact(day, _parse_told(row), language_code(said) if said else "en", number)


def _parse_told(row: Mapping[str, object]) -> PageFact:
    return PageFact(
        text=read_text_field(row, "text"),
        category=read_text_field(row, "category"),
        topics=tuple(_texts(row, "topics")),
        entities=tuple(_texts(row, "entities")),
        sources=tuple(_source_addresses(row)),
    )


def _source_addresses(row: Mapping[str, object]) -> Iterator[str]:
    """Yield the addresses of a line's sources, which are texts or objects with a `url`."""
    for each in _list(row, "sources"):
        url = read_text_field(each, "url") if isinstance(each, dict) else each
        if isinstance(url, str) and is_address(url):
            yield hide_url_credentials(url)


def _parse_own(row: Mapping[str, object], number: int) -> Row | Reason:
    """Return a row of the user's own news.

    A line with a title is an article, and its address is the page's. Without a title it is a
    sentence, and its address also distinguishes it from others with the same source.
    """
    licence = stated_licence(row)
    if forbids_changes(licence):
        return "licence"
    told = _parse_told(row)
    named = hide_url_credentials(read_text_field(row, "url"))
    url = next((one for one in (named, *told.sources) if is_address(one)), "")
    if not url:
        return "no_url"
    at = parse_seconds(read_text_field(row, "date"))
    if at is None:
        return "no_date"
    headline = clean_page_text(read_text_field(row, "title"), LONGEST_TITLE)
    sentence = clean_page_text(
        told.text[:MOST_HTML], LONGEST_SNIPPET if headline else LONGEST_TITLE
    )
    if not (headline or sentence):
        return "untitled"
    said = read_text_field(row, "language") or read_text_field(row, "lang")
    return {
        "url": url if headline else _sentence_url(url, sentence),
        "title": headline or sentence,
        "snippet": sentence if headline else "",
        "crawled_at": at,
        "stated_at": at,
        "language": language_code(said) if said else UNKNOWN_LANGUAGE,
        "line": number,
        **_details(told),
        "feed": OWN,
        "licence": clean_page_text(licence, LONGEST_LICENCE),
    }


def _sentence_url(url: str, sentence: str) -> str:
    digest = hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{url.partition('#')[0]}#fact-{digest}"


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


def _to_row(fact: DatedFact) -> Row | Reason:
    title = clean_page_text(_STRIP_MARKER.sub("", fact.told.text[:MOST_HTML]), LONGEST_TITLE)
    if not title:
        return "untitled"
    at = datetime.combine(fact.day, time(), UTC)
    if not OLDEST <= at < LATEST:
        return "no_date"
    return {
        "url": fact_url(fact.day, title),
        "title": title,
        "snippet": "",
        "crawled_at": int(at.timestamp()),
        "stated_at": None,
        "language": fact.language or UNKNOWN_LANGUAGE,
        "line": fact.line,
        **_details(fact.told),
        "feed": FEED,
        "licence": "",
    }


def _details(told: PageFact) -> Row:
    return {
        "entities": list(_names(told)),
        "themes": [name] if (name := clean_page_text(told.category, LONGEST_NAME)) else [],
        "cites": [url for url in told.sources if is_address(url)][:MOST_SOURCES],
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
