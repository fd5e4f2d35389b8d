"""GDELT's files and rows: their kinds and formats, and the article or defect of a row.

Parses times in GDELT's formats, and dates that publishers put into URLs. URLs are reduced to the
part that identifies the article.

GKG 2.1 has 27 tab-separated columns without header or quoting (research: gdelt §2). GDELT's JSON
has stray backslashes and control characters inside strings.
"""

import gzip
import hashlib
import io
import itertools
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from coreeval.config.credentials import hide_url_credentials
from coreeval.tools.archives import ARCHIVE_DAMAGE, check_packing

if TYPE_CHECKING:
    from coreeval.schema import NamedEntity


Kind = Literal["gkg", "gal", "artlist", "current_events", "file"]
Reason = Literal[
    "columns", "collection", "untitled", "no_url", "no_date", "invalid_json", "damaged", "layout",
    "licence",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """An article as described by a GDELT file, before it is dated, deduplicated and screened."""

    url: str
    title: str
    crawled_at: datetime
    """The time at which GDELT saw the page; it was published no later."""
    stated_at: datetime | None = None
    """The publication time stated by the page; None if it states none."""
    language: str = "en"
    """The ISO 639-1 code given by the file; `und` if unknown."""
    snippet: str = ""
    entities: tuple["NamedEntity", ...] = ()
    origin: str


@dataclass(frozen=True, slots=True)
class RowDefect:
    """A row that is not an article, and the reason."""

    reason: Reason


Rows = Iterator[Article | RowDefect]


OLDEST = datetime(1995, 1, 1, tzinfo=UTC)
"""The earliest valid time; an earlier date in a URL is part of a name or a number."""
LATEST = datetime(2100, 1, 1, tzinfo=UTC)
"""The time from which on a stamp counts as invalid, regardless of the clock (own choice)."""
CLOCK_SKEW = timedelta(days=1)
"""The tolerance for pages that state local time: up to a day after GDELT saw the page."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_STAMP = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[T ]?(\d\d):?(\d\d):?(\d\d)(?:\.\d+)?)?\s*(\S*)$")
_IN_URL = (
    re.compile(r"/(\d{4})/(\d{1,2})/(\d{1,2})(?!\d)"),
    re.compile(rf"/(\d{{4}})/({'|'.join(_MONTHS)})/(\d{{1,2}})(?!\d)", re.IGNORECASE),
    re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)"),
    re.compile(
        rf"/Portal:Current_events/(\d{{4}})_({'|'.join(_MONTHS)})[a-z]*_(\d{{1,2}})(?!\d)",
        re.IGNORECASE,
    ),
)


def parse_stamp(stamp: str) -> datetime | None:
    """Parse `20260610033000`, `20260610T033000Z`, or ISO 8601 with or without an offset.

    Return None if it is not a stamp, or if no news page can have that time.
    """
    match = _STAMP.match(stamp.strip())
    if not match:
        return None
    numbers = [int(part or 0) for part in match.groups()[:6]]
    zone = match[7]
    try:
        time = datetime(*numbers[:3], *numbers[3:], tzinfo=UTC)  # type: ignore[misc, arg-type]
        time -= _parse_offset(zone)
    except (ValueError, OverflowError):
        return None
    return time if OLDEST <= time < LATEST else None


def _parse_offset(zone: str) -> timedelta:
    if zone in ("", "Z", "UTC"):
        return timedelta()
    match = re.fullmatch(r"([+-])(\d\d):?(\d\d)", zone)
    if not match:
        raise ValueError(zone)
    size = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return size if match[1] == "+" else -size


def date_in_url(url: str, crawled_at: datetime) -> datetime | None:
    """Return the day in a URL, if a page seen at `crawled_at` can be from that day.

    Old days are accepted deliberately: GDELT revisits old pages, and only the URL shows that they
    are not news (research: gdelt §5, leak guard).
    """
    path = url.partition("://")[2].partition("?")[0]
    for pattern in _IN_URL:
        for match in pattern.finditer(path):
            day = _parse_day(*match.groups())
            if day and OLDEST <= day <= crawled_at:
                return day
    return None


def _parse_day(year: str, month: str, day: str) -> datetime | None:
    number = _MONTHS.index(month.lower()) + 1 if month.isalpha() else int(month)
    try:
        return datetime(int(year), number, int(day), tzinfo=UTC)
    except ValueError:
        return None


_TRACKING = re.compile(
    r"(?:utm_\w+|fbclid|[dg]clid|[gw]braid|msclkid|twclid|yclid|igshid|mc_[ce]id|mkt_tok|_openstat|"
    r"_hsenc|__hs(?:fp|sc|tc)|oly_(?:anon|enc)_id|vero_(?:conv|id)|rb_clickid)=.*"
    r"|amp=1?|output(?:type)?=amp",
    re.DOTALL,
)
"""Parameters, in lower case, that never name an article: Google Analytics' `utm_…`, those that
browsers strip from every address (Firefox's documentation, *Query Parameter Stripping*, and the
longer list of LibreWolf and Brave), and marks of AMP variants. Names such as `cid`, `ref` and
`source` may name an article."""
_MIRRORS = re.compile(r"^(?:www\d?|amp|m|mobile)\.")


def host_of(url: str) -> str:
    """Return a URL's host without `www.`; "" if it has none."""
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def is_front_page(url: str) -> bool:
    """Return whether a URL is the front page of a site, not an article."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.path.strip("/") in ("", "index.html", "index.php") and not parts.query


_FRAGMENT = re.compile(r"fact-[0-9a-f]{12}(?![0-9a-z])|[/!]+[^/!].*", re.DOTALL)
"""A fragment that distinguishes the facts of one page (see current_events.py), or is a path."""


def canonical(url: str) -> str:
    """Drop scheme, `www.`, ports, tracking parameters, AMP variants and the fragment.

    The part of a fact's fragment that identifies the fact is kept, and so is a page's path in a
    fragment, as in `#/news/1` and `#!news/1`.
    """
    try:
        parts = urlsplit(hide_url_credentials(url))
    except ValueError:  # invalid, such as http://[:]/, but still distinct from others
        return url
    host = _MIRRORS.sub("", host_of(url))
    path = re.sub(r"^/amp(?=/)|/amp(?:\.html)?$", "", parts.path.rstrip("/")).rstrip("/")
    pairs = parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape")
    kept = [pair for pair in pairs if not _TRACKING.fullmatch("=".join(pair).lower())]
    kept.sort(key=itemgetter(0))
    fragment = _FRAGMENT.match(parts.fragment)
    return (
        host
        + path
        + (f"?{urlencode(kept, errors='surrogatepass')}" if kept else "")
        + (f"#{fragment[0]}" if fragment else "")
    )


def evidence_id(url: str) -> str:
    """Return the first 16 hex digits of the sha256 of the canonical URL."""
    return hashlib.sha256(canonical(url).encode("utf-8", "surrogatepass")).hexdigest()[:16]


GKG_COLUMNS = 27
LONGEST_LINE = 1 << 24
"""The most bytes of a line; longer lines are not GDELT rows, which stay below 100 kB (research:
gdelt §2)."""
MOST_HEAD_LINES = 1000
"""The number of blank lines after which a file counts as empty."""
MOST_LOOKED_AT = 8 * LONGEST_LINE
"""The number of bytes after which a file counts as empty: well-compressed data may have few lines
and no end."""
_GKG_ID = re.compile(rb"\d{14}-T?\d+$")
UNDERSTOOD = (
    "GKG 2.1 rows, GAL article lists, DOC 2.0 article lists (JSON, JSONL, CSV), Wikipedia's "
    "current events, news of your own (JSONL with date, url, text and lang)"
)
"""The kinds of files that can be read, as named in messages."""


class FileDamage(Exception):
    """The file ends early or cannot be decompressed; data read before are valid."""


def find_files(path: Path) -> list[Path]:
    """Return the files under a folder in stable order, except hidden ones, or the file itself."""
    if path.is_file():
        return [path]
    found = (file for file in path.rglob("*") if file.is_file())
    return sorted(file for file in found if not _hidden(file.relative_to(path)))


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain, gzipped or zipped file, split at LF only, without line ends.

    Raises:
        FileDamage: the file cannot be decompressed to its end.
    """
    try:
        for stream in _streams(path):
            while line := stream.readline(LONGEST_LINE):
                yield line.rstrip(b"\r\n")
    except ARCHIVE_DAMAGE as error:
        raise FileDamage(str(error) or type(error).__name__) from error


def decode_line(line: bytes) -> str:
    """Decode one line; a stray Latin-1 byte damages one character, not the file."""
    return line.decode("utf-8", errors="replace").removeprefix("\ufeff")


def _streams(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=raw) as stream:
                yield io.BufferedReader(stream)
        elif magic == b"PK\x03\x04":
            yield from _members(raw)
        else:
            yield raw


def _members(raw: IO[bytes]) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(raw) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                check_packing(member)
                with archive.open(member) as stream:
                    yield stream


def classify_lines(first: list[bytes]) -> Kind | None:
    """Return the kind of a file with these first lines; None if it does not contain articles."""
    if any(_is_gkg(line) for line in first):
        return "gkg"
    kinds = [kind for line in first if (kind := _json_line_kind(decode_line(line)))]
    if kinds:
        return kinds[0]
    return "artlist" if _is_article_list(first) else None


def first_lines(path: Path) -> list[bytes]:
    """Return up to eight nonblank lines, fewer if the file is damaged after them.

    Raises:
        FileDamage: its first line cannot be decompressed.
    """
    found: list[bytes] = []
    try:
        first = itertools.islice(_beginning(read_lines(path)), MOST_HEAD_LINES)
        found.extend(itertools.islice((line for line in first if line.strip()), 8))
    except FileDamage:
        if not found:
            raise
    return found


def _beginning(every: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for line in every:
        yield line
        size += len(line)
        if size > MOST_LOOKED_AT:
            return


def _is_gkg(line: bytes) -> bool:
    columns = line.split(b"\t", GKG_COLUMNS)
    return len(columns) == GKG_COLUMNS and _GKG_ID.match(columns[0]) is not None


def _json_line_kind(line: str) -> Kind | None:
    try:
        value = json.loads(line, strict=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    if is_portal_line(value):
        return "current_events"
    if {"date", "text"} <= value.keys() and value.keys() & {"url", "sources"}:
        return "file"
    if "url" not in value:
        return None
    if not value.keys().isdisjoint(("desc", "outletName", "lang")):
        return "gal"
    return "artlist" if value.keys() & {"date", "seendate"} and "title" in value else None


_PORTAL = re.compile(r"https?://en\.(?:m\.)?wikipedia\.org/wiki/Portal:Current[_ ]events/")


def is_portal_line(value: Mapping[str, object]) -> bool:
    """Return whether a JSON object is the API's answer about a day's page, or a fact of one.

    A fact names its page as its `url`; dated text without it is news from elsewhere.
    """
    page = value.get("parse")
    if isinstance(page, dict):
        return str(page.get("title", "")).startswith("Portal:Current events/")
    return {"date", "text"} <= value.keys() and bool(_PORTAL.match(read_text_field(value, "url")))


def _is_article_list(first: list[bytes]) -> bool:
    if not first:
        return False
    start = decode_line(b"\n".join(first)[:4096])
    if re.match(r'\s*\{\s*"articles"\s*:\s*\[', start):
        return True
    header = {name.strip().strip('"') for name in decode_line(first[0]).split(",")}
    return {"url", "title"} <= header and bool(header & {"date", "seendate"})


DATE, COLLECTION, URL = 1, 2, 4
LOCATIONS, PERSONS, ORGANISATIONS, ALL_NAMES = 10, 12, 14, 23
TRANSLATION, EXTRAS = 25, 26
WEB = "1"
"""The source collection whose documents are web pages; the others are citations."""
PROMINENT_OFFSET = 1500
PROMINENT_MENTIONS = 2
"""The number of mentions from which on a name counts, unless it occurs early in the page (research:
gdelt §5)."""


_STRAY = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')


def read_text_field(row: Mapping[str, object], key: str) -> str:
    """Return a text in a row; "" if it is missing or of another type."""
    value = row.get(key)
    return value if isinstance(value, str) else ""


def parse_lenient_json(text: str) -> dict[str, object] | None:
    """Parse a JSON object, keeping stray backslashes as characters (research: gdelt §1).

    Returns None if it is still not an object.
    """
    try:
        value = json.loads(_escape_stray(text), strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _escape_stray(text: str) -> str:
    """Double the backslashes that do not begin a JSON escape, leaving pairs of them unchanged."""
    return "\\\\".join(_STRAY.sub(r"\\\\", part) for part in text.split("\\\\"))
