"""Dates as people state them: a day, a month, or a moment."""

import re
from datetime import UTC, date, datetime, time
from typing import Annotated

from pydantic import BeforeValidator

_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")


def utc(moment: datetime) -> datetime:
    """Read a time without a zone as UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _in_one_spelling(stated: object) -> str:
    if isinstance(stated, str) and _MONTH.fullmatch(stated):
        return stated
    moment = utc(_moment(stated)).astimezone(UTC)
    return moment.isoformat() if moment.time() != time() else moment.date().isoformat()


def _moment(stated: object) -> datetime:
    if isinstance(stated, datetime):
        return stated
    if isinstance(stated, date):
        return datetime.combine(stated, time())
    try:
        return datetime.fromisoformat(str(stated))
    except ValueError:
        raise ValueError(f"{stated!r} is no date, such as 2026-03-15 or 2026-03") from None


StatedDate = Annotated[str, BeforeValidator(_in_one_spelling)]
"""`2026-03`, `2026-03-15` or, where somebody gives a time, `2026-03-15T12:00:00+00:00`."""


def counts_from(stated: str) -> datetime:
    """Return the first moment (UTC) that counts as after a stated date.

    A month is over before anything counts; a day counts from its own midnight, so that what is
    published on the day of a release is after it.
    """
    if not _MONTH.fullmatch(stated):
        return utc(datetime.fromisoformat(stated))
    year, month = map(int, stated.split("-"))
    return datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
