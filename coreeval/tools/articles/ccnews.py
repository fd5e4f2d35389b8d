"""Reads pages from WARC files of Common Crawl's CC-NEWS on disk, with fastwarc.

A file is read once for its index, which needs only the headers of its records. Then wanted pages
with the right URL and crawl time are read at their positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.config.user_files import open_file
from coreeval.errors import KnowledgeError
from coreeval.tools.articles.acceptance import MOST_DAYS_APART
from coreeval.tools.articles.article_text import WhyNoText
from coreeval.tools.articles.file_index import Entry, FileTally, unreadable
from coreeval.tools.articles.page import MOST_PAGE_BYTES, headers_forbid_mining
from coreeval.tools.gdelt.rows import evidence_id

if TYPE_CHECKING:
    from fastwarc.warc import WarcRecord

_HTML: Final = ("text/html", "application/xhtml+xml")
_CUT_OFF: Final = "the file ends in the middle of a record"


@dataclass(frozen=True, slots=True)
class ArchivedPage:
    """A page of an archive, or the reason that it is not used."""

    key: str
    url: str
    body: bytes
    reason: WhyNoText | None = None
    detail: str = ""


def scan_records(path: Path, tally: FileTally) -> Iterator[Entry]:
    """Yield the positions of a file's pages; those before any damage are kept.

    Raises:
        OSError: the file cannot be opened.
        KnowledgeError: it is not a WARC file.
    """
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    last = None
    with open_file(path) as file:
        try:
            for record in ArchiveIterator(
                file, record_types=WarcRecordType.response, parse_http=False
            ):
                entry = _to_entry(record)
                if entry is None:
                    tally.bad["no address or date"] += 1
                    continue
                last = entry
                tally.rows += 1
                yield entry
        except (OSError, ValueError) as error:
            tally.damage = str(error)
    if last is None:
        raise KnowledgeError(
            "this file contains no web archive pages",
            where=str(path),
            hint="knowledge.articles.ccnews must name WARC files, such as those of CC-NEWS",
        )
    if not tally.damage and _is_cut_off(path, last):
        tally.damage = _CUT_OFF


def _to_entry(record: "WarcRecord") -> Entry | None:
    url = record.headers.get("WARC-Target-URI", "") or ""
    try:
        seen, key = int(record.record_date.timestamp()), evidence_id(url.strip("<>"))
    except (AttributeError, ValueError, OverflowError):
        return None
    return Entry(key, record.stream_pos, seen)


def _is_cut_off(path: Path, last: Entry) -> bool:
    """Return whether the body of the last record is shorter than its header says."""
    with open_file(path) as file:
        record = _record_at(file, last.at, parsed=False)
        if record is None:
            return True
        read = 0
        while piece := record.reader.read(1 << 20):
            read += len(piece)
        return read < record.content_length


def choose_captures(entries: Sequence[Entry], published: dict[str, datetime | None]) -> list[Entry]:
    """Return, for each wanted page, the first capture that is not older than the article."""
    chosen = dict[str, Entry]()
    for entry in sorted(entries, key=lambda each: (each.seen, each.at)):
        date = published.get(entry.key)
        oldest = (date - MOST_DAYS_APART).timestamp() if date else 0
        if entry.seen >= oldest:
            chosen.setdefault(entry.key, entry)
    return sorted(chosen.values(), key=lambda each: each.at)


def read_pages(path: Path, entries: Sequence[Entry]) -> Iterator[ArchivedPage]:
    """Yield the pages at some positions of a file.

    Raises:
        KnowledgeError: the file can no longer be read.
    """
    try:
        with open_file(path) as file:
            for entry in entries:
                try:
                    record = _record_at(file, entry.at, parsed=True)
                    yield _to_page(record, entry) if record else _unreadable_page(entry)
                except (OSError, ValueError):
                    yield _unreadable_page(entry)
    except OSError as error:
        raise unreadable(path, error) from None


def _record_at(file: object, at: int, *, parsed: bool) -> "WarcRecord | None":
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    file.seek(at)  # type: ignore[attr-defined]
    records = ArchiveIterator(
        file,  # type: ignore[arg-type]
        record_types=WarcRecordType.response,
        parse_http=parsed,
        auto_decode="all" if parsed else "none",
    )
    return next(iter(records), None)


def _unreadable_page(entry: Entry) -> ArchivedPage:
    return ArchivedPage(entry.key, "", b"", "unreadable", "the archive is damaged at this page")


def _to_page(record: "WarcRecord", entry: Entry) -> ArchivedPage:
    url = (record.headers.get("WARC-Target-URI", "") or "").strip("<>")
    headers = record.http_headers
    status = headers.status_code if headers else None
    if status != 200 or headers is None:
        return ArchivedPage(entry.key, url, b"", "gone", f"HTTP {status} when it was crawled")
    kind = (record.http_content_type or "text/html").lower()
    if kind not in _HTML:
        return ArchivedPage(entry.key, url, b"", "not_html", kind[:100])
    if headers_forbid_mining(headers.to_tuples()):
        return ArchivedPage(entry.key, url, b"", "opted_out", "a header of the page")
    body = record.reader.read(MOST_PAGE_BYTES + 1)
    if len(body) > MOST_PAGE_BYTES:
        return ArchivedPage(
            entry.key, url, b"", "too_large", f"more than {MOST_PAGE_BYTES >> 20} MiB"
        )
    return ArchivedPage(entry.key, url, body)
