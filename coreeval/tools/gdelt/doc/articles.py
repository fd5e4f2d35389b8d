"""The articles of an answer: a row of DOC 2.0 as every reader of this package gives it."""

from collections.abc import Iterator, Sequence

from coreeval.tools.gdelt.dates import parse_stamp
from coreeval.tools.gdelt.doc.answers import Row
from coreeval.tools.gdelt.language import language_code
from coreeval.tools.gdelt.rows import Article
from coreeval.tools.gdelt.titles import repair
from coreeval.tools.gdelt.urls import host_of


def articles(rows: Sequence[Row], origin: str) -> Iterator[Article]:
    """Yield what can be used: rows with a title, an address and the time when GDELT saw the page.

    Args:
        rows: As the service lists them.
        origin: Which request they answer; the row's number is added.
    """
    for number, row in enumerate(rows, start=1):
        crawled_at = parse_stamp(_text(row, "seendate"))
        title, url = repair(_text(row, "title")), _text(row, "url")
        if crawled_at and title and host_of(url):
            yield Article(
                url=url,
                title=title,
                crawled_at=crawled_at,
                language=language_code(_text(row, "language")),
                origin=f"{origin}:{number}",
            )


def _text(row: Row, key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""
