"""Files that list articles row by row: GAL, and the article lists of DOC 2.0."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from coreeval.tools.gdelt.artlist import read_artlist
from coreeval.tools.gdelt.files import DamagedFile
from coreeval.tools.gdelt.language import UNKNOWN, language_code
from coreeval.tools.gdelt.rows import Article, Reason
from coreeval.tools.gdelt.store.tables import articles_table
from coreeval.tools.gdelt.store.tally import Tally
from coreeval.tools.gdelt.store.texts import (
    cleaned,
    is_address,
    seconds,
)
from coreeval.tools.gdelt.untrusted import LONGEST_SNIPPET, LONGEST_TITLE, without_unseen

CHUNK = 16384
"""Rows that are made into a table at once."""
GAL, ARTLIST = "gal", "artlist"
Row = tuple[str, str, str, int, int | None, str, int]
"""URL, title, snippet, crawled and stated time, language, line: what a list tells."""
_COLUMNS = ("url", "title", "snippet", "crawled_at", "stated_at", "language", "line")


def read_gal(groups: Iterable[list[bytes]], tally: Tally) -> Iterator[Any]:
    """Yield tables of the articles of one GAL file; its dates are publication times."""
    return _tables(_gal_rows(groups, tally), GAL)


def _gal_rows(groups: Iterable[list[bytes]], tally: Tally) -> Iterator[Row]:
    number = 0
    for lines in groups:
        for number, line in enumerate(lines, start=number + 1):  # noqa: B020 - counts on
            if not line.strip():
                continue
            tally.rows += 1
            row = _gal_row(line.decode("utf-8", "replace").removeprefix("\ufeff"), number)
            if isinstance(row, str):
                tally.refuse(number, row, line)
            else:
                yield row


def _gal_row(line: str, number: int) -> Row | Reason:
    try:
        row = json.loads(line, strict=False)
    except (ValueError, RecursionError):
        return "invalid_json"
    if not isinstance(row, dict):
        return "invalid_json"
    title = cleaned(_text(row, "title"), LONGEST_TITLE)
    if not title:
        return "untitled"
    url = _text(row, "url")
    if not is_address(url):
        return "no_url"
    date = seconds(_text(row, "date"))
    if date is None:
        return "no_date"
    snippet = cleaned(_text(row, "desc"), LONGEST_SNIPPET)
    language = language_code(_text(row, "lang")) if row.get("lang") else UNKNOWN
    return url, title, snippet, date, date, language, number


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


def read_list(path: Path, tally: Tally) -> Iterator[Any]:
    """Yield tables of the articles of one DOC 2.0 article list, in whichever notation it is."""
    return _tables(_list_rows(path, tally), ARTLIST)


def _list_rows(path: Path, tally: Tally) -> Iterator[Row]:
    try:
        for number, article in enumerate(read_artlist(path, ""), start=1):
            tally.rows += 1
            row = _listed(article, number) if isinstance(article, Article) else article.reason
            if isinstance(row, str):
                tally.refuse(number, row, "")
            else:
                yield row
    except DamagedFile as error:
        tally.end_early("damaged", str(error))


def _listed(article: Article, number: int) -> Row | Reason:
    title = without_unseen(article.title)[:LONGEST_TITLE].rstrip()
    if not title:
        return "untitled"
    if not is_address(article.url):
        return "no_url"
    crawled_at = int(article.crawled_at.timestamp())
    return article.url, title, "", crawled_at, None, article.language, number


def _tables(rows: Iterable[Row], feed: str) -> Iterator[Any]:
    chunk: list[Row] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == CHUNK:
            yield _table(chunk, feed)
            chunk = []
    if chunk:
        yield _table(chunk, feed)


def _table(rows: list[Row], feed: str) -> Any:  # noqa: ANN401 - Arrow has no types
    columns = dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    return articles_table({**columns, "feed": [feed] * len(rows)})
