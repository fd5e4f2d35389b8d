"""Reader of DOC 2.0 article lists: the API's JSON, and the same fields as JSONL or CSV.

`seendate` (`date` in some copies) is when GDELT saw the page, never its publication time.
"""

import csv
import io
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from coreeval.tools.gdelt.dates import parse_stamp
from coreeval.tools.gdelt.files import DamagedFile, lines, text
from coreeval.tools.gdelt.language import language_code
from coreeval.tools.gdelt.lenient import lenient_object
from coreeval.tools.gdelt.rows import Article, BadRow, Rows
from coreeval.tools.gdelt.titles import repair
from coreeval.tools.gdelt.urls import host_of

Fields = Mapping[str, object]


def read_artlist(path: Path, name: str) -> Rows:
    """Yield the articles of one list, whichever of the three notations it is in."""
    content: Iterator[str] = (text(line) for line in lines(path))
    first = next((line for line in content if line.strip()), "")
    content = itertools.chain([first], content)
    if not first.lstrip().startswith("{"):
        rows = _csv_rows(content)
    elif "url" in (lenient_object(first) or {}):
        rows = _json_lines(content)
    else:
        rows = _document_rows(content)
    for number, row in enumerate(rows, start=1):
        yield _article(row, f"{name}:{number}") if row is not None else BadRow("invalid_json")


def _csv_rows(content: Iterator[str]) -> Iterator[Fields | None]:
    try:
        yield from csv.DictReader(io.StringIO("\n".join(content), newline=""))
    except csv.Error as error:
        raise DamagedFile(str(error)) from error


def _json_lines(content: Iterator[str]) -> Iterator[Fields | None]:
    for line in content:
        if line.strip():
            yield lenient_object(line)


def _document_rows(content: Iterator[str]) -> Iterator[Fields | None]:
    document = lenient_object("\n".join(content))
    articles = document.get("articles") if document else None
    if not isinstance(articles, list):
        yield None
        return
    for row in articles:
        yield row if isinstance(row, dict) else None


def _article(row: Fields, origin: str) -> Article | BadRow:
    title = repair(_text(row, "title"))
    if not title:
        return BadRow("untitled")
    url = _text(row, "url")
    if not host_of(url):
        return BadRow("no_url")
    crawled_at = parse_stamp(_text(row, "seendate") or _text(row, "date"))
    if crawled_at is None:
        return BadRow("no_date")
    return Article(
        url=url,
        title=title,
        crawled_at=crawled_at,
        language=language_code(_text(row, "language")),
        origin=origin,
    )


def _text(row: Fields, key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""
