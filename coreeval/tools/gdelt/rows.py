"""What a reader makes of one row: an article, or the reason for none; times and addresses.

Times are as GDELT writes them, and as publishers put them into URLs. Of a URL remains what names
the article, without the way it was reached.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

if TYPE_CHECKING:
    from coreeval.schema import NamedEntity


Kind = Literal["gkg", "gal", "artlist"]
Reason = Literal[
    "columns", "collection", "untitled", "no_url", "no_date", "invalid_json", "damaged"
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """One article as a GDELT file tells it, before it is dated, deduplicated and screened."""

    url: str
    title: str
    crawled_at: datetime
    """When GDELT saw the page; the latest time at which it can have been published."""
    stated_at: datetime | None = None
    """When the page says it was published."""
    language: str = "en"
    """ISO 639-1 code as marked by the file, `und` where it is unknown."""
    snippet: str = ""
    entities: tuple["NamedEntity", ...] = ()
    origin: str


@dataclass(frozen=True, slots=True)
class RowDefect:
    """A row that is no article, and why."""

    reason: Reason


Rows = Iterator[Article | RowDefect]


OLDEST = datetime(1995, 1, 1, tzinfo=UTC)
"""No news page is older; an earlier date in a URL is part of a name or a number."""
CLOCK_SKEW = timedelta(days=1)
"""A page may state its local time: up to a day after GDELT saw it is believed."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_STAMP = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[T ]?(\d\d):?(\d\d):?(\d\d)(?:\.\d+)?)?\s*(\S*)$")
_IN_URL = (
    re.compile(r"/(\d{4})/(\d{1,2})/(\d{1,2})(?!\d)"),
    re.compile(rf"/(\d{{4}})/({'|'.join(_MONTHS)})/(\d{{1,2}})(?!\d)", re.IGNORECASE),
    re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)"),
)


def parse_stamp(stamp: str) -> datetime | None:
    """Read `20260610033000`, `20260610T033000Z`, ISO 8601 with or without an offset; else None."""
    match = _STAMP.match(stamp.strip())
    if not match:
        return None
    numbers = [int(part or 0) for part in match.groups()[:6]]
    zone = match[7]
    try:
        time = datetime(*numbers[:3], *numbers[3:], tzinfo=UTC)  # type: ignore[misc, arg-type]
        return time - _parse_offset(zone)
    except (ValueError, OverflowError):
        return None


def _parse_offset(zone: str) -> timedelta:
    if zone in ("", "Z", "UTC"):
        return timedelta()
    match = re.fullmatch(r"([+-])(\d\d):?(\d\d)", zone)
    if not match:
        raise ValueError(zone)
    size = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return size if match[1] == "+" else -size


def date_in_url(url: str, crawled_at: datetime) -> datetime | None:
    """Return the day that a URL names, if a page seen at `crawled_at` can be from that day.

    An old day is believed, and that is the point: GDELT visits old pages again, and only the URL
    shows that they are not news (research: gdelt §5, leak guard).
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


def plausible_time(stated_at: datetime | None, crawled_at: datetime) -> datetime | None:
    """Return the stated publication time unless it is impossible; never after the crawl."""
    if stated_at is None or not OLDEST <= stated_at <= crawled_at + CLOCK_SKEW:
        return None
    return min(stated_at, crawled_at)


_TRACKING = re.compile(
    r"utm_\w+|fbclid|gclid|dclid|msclkid|yclid|igshid|mc_cid|mc_eid|cmp|cmpid|cid|ocid|ref|ref_src|"
    r"smid|sref|src|source|rss|feed|amp|outputtype|output|ito|ns_\w+|at_\w+|partner|share|xtor"
)
_MIRRORS = re.compile(r"^(?:www\d?|amp|m|mobile)\.")


def host_of(url: str) -> str:
    """Return a URL's host without `www.`; empty where there is none."""
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def is_front_page(url: str) -> bool:
    """Tell whether a URL names a site, not an article."""
    parts = urlsplit(url)
    return parts.path.strip("/") in ("", "index.html", "index.php") and not parts.query


def canonical(url: str) -> str:
    """Drop scheme, `www.`, ports, tracking parameters, AMP variants and the fragment."""
    parts = urlsplit(url)
    host = _MIRRORS.sub("", host_of(url))
    path = re.sub(r"^/amp(?=/)|/amp(?:\.html)?$", "", parts.path.rstrip("/")).rstrip("/")
    kept = sorted(
        (key, value)
        for key, value in parse_qsl(parts.query, keep_blank_values=True)
        if not _TRACKING.fullmatch(key.lower())
    )
    return host + path + (f"?{urlencode(kept)}" if kept else "")


def evidence_id(url: str) -> str:
    """Return the first 16 hex digits of the sha256 of the canonical URL."""
    return hashlib.sha256(canonical(url).encode("utf-8", "surrogatepass")).hexdigest()[:16]
