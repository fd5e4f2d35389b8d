"""Reads a news page: its text with trafilatura, and its metadata.

A page is untrusted: `extraction.py` calls this in a separate process with limits.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Final

from coreeval.schema import Value
from coreeval.tools.articles.article_text import tidy_text
from coreeval.tools.gdelt.page_text import clean_text
from coreeval.tools.gdelt.rows import LATEST, OLDEST

MOST_PAGE_BYTES: Final = 5 << 20
"""The most bytes of a page, compressed and decompressed: 5 MiB."""
_MOST_TAGS: Final = 500
"""The most tags of one kind that are read (own choice)."""
_MOST_SCRIPT: Final = 1 << 20
"""The most characters of a script of metadata that are searched (own choice)."""
_LANGUAGE_SAMPLE: Final = 3000
"""The number of characters for recognising a language."""
_PUBLISHED = re.compile(r'"datePublished"\s*:\s*"([^"]{8,40})"')
_NOT_FREE = re.compile(r'"isAccessibleForFree"\s*:\s*"?false"?', re.IGNORECASE)
_DATE_NAMES: Final = (
    "article:published_time", "og:article:published_time", "datepublished", "og:published_time",
    "parsely-pub-date", "publish-date", "publishdate", "pubdate", "article.published",
    "sailthru.date", "dc.date.issued", "dcterms.created", "dc.date", "date",
)  # fmt: skip
"""Names of metadata with the time of publication, the most reliable first."""
_OPT_OUTS: Final = frozenset({"noai", "noimageai"})
_TDM: Final = "tdm-reservation"


class PageReading(Value):
    """The content of a page."""

    text: str = ""
    was_cut: bool = False
    title: str = ""
    publisher: str = ""
    language: str = "und"
    """The language of the text, as recognised by its letters."""
    licence: str = ""
    stated_at: datetime | None = None
    """The publication time in the page's metadata."""
    estimated_at: datetime | None = None
    """The publication day from htmldate, if the metadata state none."""
    opted_out: bool = False
    """Whether the metadata forbid text mining."""
    paywalled: bool = False
    """Whether the metadata state that the article is not free."""
    problem: str = ""
    """The reason that the page could not be read; empty if it could."""


def read_page(body: bytes, url: str) -> PageReading:
    """Return the content of a page; an empty reading if it is not HTML."""
    from trafilatura import extract, load_html

    tree = load_html(body[:MOST_PAGE_BYTES])
    if tree is None:
        return PageReading()
    metas = _metadata(tree)
    scripts = list(_linked_data(tree))
    stated = find_stated_time(tree, metas, scripts)
    estimated = None if stated else _estimate_date(tree, url)
    text, was_cut = tidy_text(extract(tree, url=url, fast=True, include_comments=False) or "")
    return PageReading(
        text=text,
        was_cut=was_cut,
        title=_title(tree, metas),
        publisher=clean_text(metas.get("og:site_name", ""), 200),
        language=detect_language(text),
        licence=_licence(tree),
        stated_at=stated,
        estimated_at=estimated,
        opted_out=_forbids_mining(metas),
        paywalled=any(_NOT_FREE.search(script) for script in scripts),
    )


# -- metadata -------------------------------------------------------------------------------------

Tree = Any
"""An lxml tree, which has no types."""


def _metadata(tree: Tree) -> Mapping[str, str]:
    """Return the contents of the meta tags by lower-case name; the first of each name counts."""
    found = dict[str, str]()
    for tag in islice(tree.iter("meta"), _MOST_TAGS):
        content = str(tag.get("content") or "")
        for attribute in ("property", "name", "itemprop", "http-equiv"):
            name = str(tag.get(attribute) or "").strip().lower()
            if name and content:
                found.setdefault(name, content)
    return found


def _linked_data(tree: Tree) -> Iterator[str]:
    for tag in islice(tree.iter("script"), _MOST_TAGS):
        if "ld+json" in str(tag.get("type") or "").lower() and tag.text:
            yield str(tag.text)[:_MOST_SCRIPT]


def _title(tree: Tree, metas: Mapping[str, str]) -> str:
    stated = metas.get("og:title") or metas.get("twitter:title")
    return clean_text(stated or str(tree.findtext(".//title") or ""))


def _licence(tree: Tree) -> str:
    """Return the address of the licence that the page links to."""
    for kind in ("link", "a"):
        for tag in islice(tree.iter(kind), 10 * _MOST_TAGS):
            if "license" in str(tag.get("rel") or "").lower().split():
                return clean_text(str(tag.get("href") or ""), 200)
    return ""


def _forbids_mining(metas: Mapping[str, str]) -> bool:
    if metas.get(_TDM, "").strip() == "1":
        return True
    return any(
        _OPT_OUTS & set(re.split(r"[\s,;]+", content.lower()))
        for name, content in metas.items()
        if "robots" in name or name.endswith("bot")
    )


def headers_forbid_mining(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether response headers forbid text mining."""
    for name, value in headers:
        if name.lower() == _TDM and value.strip() == "1":
            return True
        if name.lower() == "x-robots-tag" and _OPT_OUTS & set(re.split(r"[\s,;:]+", value.lower())):
            return True
    return False


# -- dates ----------------------------------------------------------------------------------------


def find_stated_time(
    tree: Tree, metas: Mapping[str, str], scripts: Iterable[str]
) -> datetime | None:
    """Return the publication time in a page's metadata; None if they state none."""
    return next(filter(None, map(parse_time, _stated_times(tree, metas, scripts))), None)


def _stated_times(tree: Tree, metas: Mapping[str, str], scripts: Iterable[str]) -> Iterator[str]:
    """Yield candidates, the most reliable first."""
    for script in scripts:
        yield from (_unquoted(found) for found in _PUBLISHED.findall(script)[:1])
    yield from (metas[name] for name in _DATE_NAMES if name in metas)
    times = list(islice(tree.iter("time"), _MOST_TAGS))
    for tag in times:
        if "datePublished" in str(tag.get("itemprop")) or tag.get("pubdate") is not None:
            yield str(tag.get("datetime") or "")
    yield from (str(tag.get("datetime") or "") for tag in times[:1])


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def parse_time(text: str) -> datetime | None:
    """Return a time in UTC: ISO 8601 or an internet date; None if no page can have that time."""
    text = " ".join(text.split())[:64]
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        try:
            time = parsedate_to_datetime(text)
        except (ValueError, IndexError, OverflowError):
            return None
    try:
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        return None
    return time if OLDEST <= time < LATEST else None


def _estimate_date(tree: Tree, url: str) -> datetime | None:
    from htmldate import find_date

    found = find_date(tree, original_date=True, url=url)
    return parse_time(found) if found else None


# -- language -------------------------------------------------------------------------------------


def detect_language(text: str) -> str:
    """Return the ISO 639-1 code of a text's language; `und` if it is empty or has no such code."""
    sample = text[:_LANGUAGE_SAMPLE]
    if not sample.strip():
        return "und"
    from py3langid import classify  # type: ignore[import-untyped]

    code = str(classify(sample)[0])
    return code if len(code) == 2 else "und"
