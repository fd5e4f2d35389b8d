"""GDELT's Article List read row by row: what the columnar reader is held against."""

import json
from collections.abc import Mapping
from pathlib import Path

from coreeval.tools.gdelt.dates import parse_stamp
from coreeval.tools.gdelt.files import lines, text
from coreeval.tools.gdelt.language import UNKNOWN, language_code
from coreeval.tools.gdelt.rows import Article, BadRow, Rows
from coreeval.tools.gdelt.titles import clean
from coreeval.tools.gdelt.urls import host_of


def read_gal(path: Path, name: str) -> Rows:
    """Yield the articles of one file; its dates are publication times (research: gdelt §1)."""
    for number, line in enumerate(lines(path), start=1):
        if line.strip():
            yield _article(text(line), f"{name}:{number}")


def _article(line: str, origin: str) -> Article | BadRow:
    try:
        row = json.loads(line, strict=False)
    except ValueError:
        return BadRow("invalid_json")
    if not isinstance(row, dict):
        return BadRow("invalid_json")
    title = clean(_text(row, "title"))
    if not title:
        return BadRow("untitled")
    url = _text(row, "url")
    if not host_of(url):
        return BadRow("no_url")
    published_at = parse_stamp(_text(row, "date"))
    if published_at is None:
        return BadRow("no_date")
    return Article(
        url=url,
        title=title,
        snippet=clean(_text(row, "desc")),
        crawled_at=published_at,
        stated_at=published_at,
        language=language_code(_text(row, "lang")) if row.get("lang") else UNKNOWN,
        origin=origin,
    )


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""
