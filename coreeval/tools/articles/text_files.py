"""Reads a user's articles from JSON lines: one object per line with `url` and `text`.

`title`, `published_at`, `language`, `publisher` and `licence` are optional. A file may be gzipped.
Lines that are not articles are counted by reason.
"""

import io
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from isal import igzip

from coreeval.config.credentials import hide_url_credentials
from coreeval.config.user_files import open_file
from coreeval.errors import KnowledgeError
from coreeval.tools.articles.acceptance import FoundText
from coreeval.tools.articles.addresses import is_web_address
from coreeval.tools.articles.article_text import tidy_text
from coreeval.tools.articles.file_index import Entry, FileTally, unreadable
from coreeval.tools.articles.page import detect_language, parse_time
from coreeval.tools.gdelt.page_text import clean_text
from coreeval.tools.gdelt.rows import evidence_id
from coreeval.tools.gdelt.words import language_code
from coreeval.tools.licences import stated_licence

MOST_LINE: Final = 16 << 20
"""The most bytes of a line; a longer one is counted and skipped (own choice)."""
LONGEST_LICENCE: Final = 10_000
"""The most characters of a licence, which may be a full text of terms (own choice)."""
FORM: Final = '{"url": "https://…", "text": "…", "title": "…", "published_at": "2026-10-05"}'
"""The form of a line, as named in messages."""
_GZIP: Final = b"\x1f\x8b"
_DAMAGE: Final = (EOFError, zlib.error, OSError)


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row of a file that is an article."""

    url: str
    text: str
    title: str
    published_at: datetime | None
    language: str
    publisher: str
    licence: str


def scan_rows(path: Path, tally: FileTally) -> Iterator[Entry]:
    """Yield the positions of a file's articles.

    Raises:
        OSError: the file cannot be opened.
        KnowledgeError: it contains no articles.
    """
    with _opened(path) as file:
        try:
            for at, line in _iter_lines(file):
                entry = _to_entry(at, line, tally)
                if entry:
                    tally.rows += 1
                    yield entry
        except _DAMAGE as error:
            tally.damage = str(error) or type(error).__name__
    if not tally.rows:
        problem = f"; it is damaged: {tally.damage}" if tally.damage else ""
        raise KnowledgeError(
            f"this file contains no articles{problem}",
            where=str(path),
            hint=f"knowledge.articles.files must name JSON Lines of this form: {FORM}",
        )


def _to_entry(at: int, line: bytes, tally: FileTally) -> Entry | None:
    if not line.strip():
        return None
    if len(line) > MOST_LINE:
        tally.bad[f"longer than {MOST_LINE >> 20} MiB"] += 1
        return None
    row = _parse_row(line)
    if isinstance(row, str):
        tally.bad[row] += 1
        return None
    return Entry(evidence_id(row.url), at)


def _parse_row(line: bytes) -> FileRow | str:
    """Return the article in a line, or the reason that it is not one."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return "not JSON"
    if not isinstance(row, dict):
        return "not an object"
    url, text = hide_url_credentials(_words(row, "url")), row.get("text")
    if not is_web_address(url):
        return "no url"
    if not isinstance(text, str) or not text.strip():
        return "no text"
    return FileRow(
        url=url,
        text=text,
        title=clean_text(_words(row, "title")),
        published_at=parse_time(_words(row, "published_at", "date")),
        language=language_code(_words(row, "language", "lang")),
        publisher=clean_text(_words(row, "publisher"), 200),
        licence=clean_text(stated_licence(row), LONGEST_LICENCE),
    )


def _words(row: dict[str, object], *names: str) -> str:
    return next((value for name in names if isinstance(value := row.get(name), str)), "")


def read_rows(path: Path, entries: Sequence[Entry]) -> Iterator[tuple[Entry, FoundText]]:
    """Yield the articles at some positions, in the order of the file.

    Raises:
        KnowledgeError: the file can no longer be read.
    """
    try:
        with _opened(path) as file:
            for entry in sorted(entries, key=lambda each: each.at):
                file.seek(entry.at)
                row = _parse_row(file.readline(MOST_LINE + 1))
                if isinstance(row, FileRow):
                    yield entry, _to_found(row)
    except (EOFError, zlib.error):
        return
    except OSError as error:
        raise unreadable(path, error) from None


def _to_found(row: FileRow) -> FoundText:
    text, was_cut = tidy_text(row.text)
    return FoundText(
        source="file",
        url=row.url,
        text=text,
        was_cut=was_cut,
        title=row.title,
        publisher=row.publisher,
        language=row.language if row.language != "und" else detect_language(text),
        licence=row.licence,
        dated_at=row.published_at,
        date_source="file",
    )


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with open_file(path) as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        if packed:
            with igzip.IGzipFile(fileobj=raw, mode="rb") as unpacked:  # type: ignore[no-untyped-call]
                yield io.BufferedReader(unpacked)
        else:
            yield raw


def _iter_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its position; lines that are too long are truncated."""
    at = 0
    while line := file.readline(MOST_LINE + 1):
        start, at = at, at + len(line)
        rest = line
        while len(rest) > MOST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(MOST_LINE + 1)
            at += len(rest)
        yield start, line
