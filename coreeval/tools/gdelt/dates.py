"""Times as GDELT writes them, and dates that publishers put into URLs."""

import re
from datetime import UTC, datetime, timedelta

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
        return time - _offset(zone)
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> timedelta:
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
            day = _day(*match.groups())
            if day and OLDEST <= day <= crawled_at:
                return day
    return None


def _day(year: str, month: str, day: str) -> datetime | None:
    number = _MONTHS.index(month.lower()) + 1 if month.isalpha() else int(month)
    try:
        return datetime(int(year), number, int(day), tzinfo=UTC)
    except ValueError:
        return None


def believable(stated_at: datetime | None, crawled_at: datetime) -> datetime | None:
    """Return the stated publication time unless it is impossible; never after the crawl."""
    if stated_at is None or not OLDEST <= stated_at <= crawled_at + CLOCK_SKEW:
        return None
    return min(stated_at, crawled_at)
