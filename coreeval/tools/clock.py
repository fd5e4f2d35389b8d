"""The time of day, which tests replace, and the time that a server asks to wait."""

import math
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def parse_retry_after(header: str | None, *, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks for: a number or an HTTP date."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        return _seconds_until(header, now or datetime.now(UTC))
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(header: str, now: datetime) -> float | None:
    from email.utils import parsedate_to_datetime  # 6 ms that only a date needs

    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)
