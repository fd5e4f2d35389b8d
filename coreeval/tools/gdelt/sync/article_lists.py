"""Reads files with an article per row: GAL, and the article lists of DOC 2.0.

Lists of DOC 2.0 are the API's JSON, or JSONL or CSV with the same fields.
"""

import csv
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from coreeval.tools.chunks import chunks
from coreeval.tools.gdelt.page_text import (
    LONGEST_SNIPPET,
    LONGEST_TITLE,
    repair_title,
    without_unseen,
)
from coreeval.tools.gdelt.rows import (
    Article,
    FileDamage,
    Reason,
    RowDefect,
    Rows,
    decode_line,
    host_of,
    parse_lenient_json,
    parse_stamp,
    read_lines,
    read_text_field,
)
from coreeval.tools.gdelt.sync.segment_rows import (
    RowTally,
    build_articles_table,
    clean_page_text,
    is_address,
    parse_seconds,
)
from coreeval.tools.gdelt.words import UNKNOWN_LANGUAGE, language_code

ListFields = Mapping[str, object]


def read_artlist(path: Path, name: str) -> Rows:
    """Yield the articles of one list, in any of the three notations."""
    content: Iterator[str] = (decode_line(line) for line in read_lines(path))
    first = next((line for line in content if line.strip()), "")
    content = itertools.chain([first], content)
    if not first.lstrip().startswith("{"):
        rows = _read_csv(content)
    elif "url" in (parse_lenient_json(first) or {}):
        rows = _read_json_lines(content)
    else:
        rows = _read_document(content)
    for number, row in enumerate(rows, start=1):
        yield (
            _parse_article(row, f"{name}:{number}")
            if row is not None
            else RowDefect("invalid_json")
        )


def _read_csv(content: Iterator[str]) -> Iterator[ListFields | None]:
    try:
        yield from csv.DictReader(io.StringIO("\n".join(content), newline=""))
    except csv.Error as error:
        raise FileDamage(str(error)) from error


def _read_json_lines(content: Iterator[str]) -> Iterator[ListFields | None]:
    for line in content:
        if line.strip():
            yield parse_lenient_json(line)


def _read_document(content: Iterator[str]) -> Iterator[ListFields | None]:
    document = parse_lenient_json("\n".join(content))
    articles = document.get("articles") if document else None
    if not isinstance(articles, list):
        yield None
        return
    for row in articles:
        yield row if isinstance(row, dict) else None


def _parse_article(row: ListFields, origin: str) -> Article | RowDefect:
    title = repair_title(read_text_field(row, "title"))
    if not title:
        return RowDefect("untitled")
    url = read_text_field(row, "url")
    if not host_of(url):
        return RowDefect("no_url")
    crawled_at = parse_stamp(read_text_field(row, "seendate") or read_text_field(row, "date"))
    if crawled_at is None:
        return RowDefect("no_date")
    return Article(
        url=url,
        title=title,
        crawled_at=crawled_at,
        language=language_code(read_text_field(row, "language")),
        origin=origin,
    )


CHUNK = 16384
"""The number of rows in a table."""
GAL, ARTLIST = "gal", "artlist"
ArticleRow = tuple[str, str, str, int, int | None, str, int]
"""The fields of a row: URL, title, snippet, crawl time, stated time, language, line number."""
_COLUMNS = ("url", "title", "snippet", "crawled_at", "stated_at", "language", "line")


def read_gal(groups: Iterable[list[bytes]], tally: RowTally) -> Iterator[Any]:
    """Yield tables of the articles of one GAL file, whose dates are publication times."""
    return _iter_tables(_read_gal_rows(groups, tally), GAL)


def _read_gal_rows(groups: Iterable[list[bytes]], tally: RowTally) -> Iterator[ArticleRow]:
    number = 0
    for lines in groups:
        for number, line in enumerate(lines, start=number + 1):  # noqa: B020 - counts on
            if not line.strip():
                continue
            tally.rows += 1
            row = _parse_gal_row(line.decode("utf-8", "replace").removeprefix("\ufeff"), number)
            if isinstance(row, str):
                tally.refuse(number, row, line)
            else:
                yield row


def _parse_gal_row(line: str, number: int) -> ArticleRow | Reason:
    try:
        row = json.loads(line, strict=False)
    except (ValueError, RecursionError):
        return "invalid_json"
    if not isinstance(row, dict):
        return "invalid_json"
    title = clean_page_text(read_text_field(row, "title"), LONGEST_TITLE)
    if not title:
        return "untitled"
    url = read_text_field(row, "url")
    if not is_address(url):
        return "no_url"
    date = parse_seconds(read_text_field(row, "date"))
    if date is None:
        return "no_date"
    snippet = clean_page_text(read_text_field(row, "desc"), LONGEST_SNIPPET)
    language = language_code(read_text_field(row, "lang")) if row.get("lang") else UNKNOWN_LANGUAGE
    return url, title, snippet, date, date, language, number


def read_list(path: Path, tally: RowTally) -> Iterator[Any]:
    """Yield tables of the articles of one DOC 2.0 article list, in any notation."""
    return _iter_tables(_read_list_rows(path, tally), ARTLIST)


def _read_list_rows(path: Path, tally: RowTally) -> Iterator[ArticleRow]:
    try:
        for number, article in enumerate(read_artlist(path, ""), start=1):
            tally.rows += 1
            row = _to_row(article, number) if isinstance(article, Article) else article.reason
            if isinstance(row, str):
                tally.refuse(number, row, "")
            else:
                yield row
    except FileDamage as error:
        tally.end_early("damaged", str(error))


def _to_row(article: Article, number: int) -> ArticleRow | Reason:
    title = without_unseen(article.title)[:LONGEST_TITLE].rstrip()
    if not title:
        return "untitled"
    if not is_address(article.url):
        return "no_url"
    crawled_at = int(article.crawled_at.timestamp())
    return article.url, title, "", crawled_at, None, article.language, number


def _iter_tables(rows: Iterable[ArticleRow], feed: str) -> Iterator[Any]:
    for chunk in chunks(rows, CHUNK):
        yield _make_table(chunk, feed)


def _make_table(rows: list[ArticleRow], feed: str) -> Any:  # noqa: ANN401 - Arrow has no types
    columns = dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    return build_articles_table({**columns, "feed": [feed] * len(rows)})
