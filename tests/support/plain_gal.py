"""GDELT's Article List read row by row: what the columnar reader is held against."""

import json
from collections.abc import Mapping
from pathlib import Path

from coreeval.tools.gdelt.page_text import clean_title
from coreeval.tools.gdelt.rows import (
    Article,
    RowDefect,
    Rows,
    decode_line,
    host_of,
    parse_stamp,
    read_lines,
)
from coreeval.tools.gdelt.words import UNKNOWN_LANGUAGE, language_code


def read_gal(path: Path, name: str) -> Rows:
    """Yield the articles of one file; its dates are publication times (research: gdelt §1)."""
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            yield _article(decode_line(line), f"{name}:{number}")


def _article(line: str, origin: str) -> Article | RowDefect:
    try:
        row = json.loads(line, strict=False)
    except ValueError:
        return RowDefect("invalid_json")
    if not isinstance(row, dict):
        return RowDefect("invalid_json")
    title = clean_title(_text(row, "title"))
    if not title:
        return RowDefect("untitled")
    url = _text(row, "url")
    if not host_of(url):
        return RowDefect("no_url")
    published_at = parse_stamp(_text(row, "date"))
    if published_at is None:
        return RowDefect("no_date")
    return Article(
        url=url,
        title=title,
        snippet=clean_title(_text(row, "desc")),
        crawled_at=published_at,
        stated_at=published_at,
        language=language_code(_text(row, "lang")) if row.get("lang") else UNKNOWN_LANGUAGE,
        origin=origin,
    )


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""
