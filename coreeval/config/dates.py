"""Dates and ages in the form that people write.

A date is a day, a month or a moment. An age, such as 90d, 12w or 6m, is a maximum age of evidence.
"""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator

from coreeval.schema import Value

_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
_YEARS = range(1900, 2101)
"""The allowed years of a date; no news is older, and date arithmetic needs room after the last."""


def as_utc(moment: datetime) -> datetime:
    """Read a time without a zone as UTC.

    Raises:
        ValueError: the year is not between 1900 and 2100.
    """
    _check_year(moment.year)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _check_year(year: int) -> None:
    if year not in _YEARS:
        raise ValueError(f"the year {year:04} is not between {_YEARS.start} and {_YEARS.stop - 1}")


def _normalize_date(stated: object) -> str:
    if isinstance(stated, str) and _MONTH.fullmatch(stated):
        _check_year(int(stated[:4]))
        return stated
    moment = as_utc(_parse_moment(stated)).astimezone(UTC)
    return moment.isoformat() if moment.time() != time() else moment.date().isoformat()


def _parse_moment(stated: object) -> datetime:
    if isinstance(stated, datetime):
        return stated
    if isinstance(stated, date):
        return datetime.combine(stated, time())
    try:
        return datetime.fromisoformat(str(stated))
    except ValueError:
        raise ValueError(f"{stated!r} is not a date such as 2026-03-15 or 2026-03") from None


DateText = Annotated[str, BeforeValidator(_normalize_date)]
"""`2026-03`, `2026-03-15` or, if a time is given, `2026-03-15T12:00:00+00:00`."""


def first_moment_after(stated: str) -> datetime:
    """Return the first moment (UTC) after a stated date.

    For a month, this is its end. For a day, it is the day's own midnight, so anything published on
    the day of a release is after it.
    """
    if not _MONTH.fullmatch(stated):
        return as_utc(datetime.fromisoformat(stated))
    year, month = map(int, stated.split("-"))
    return datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)


_AGE = re.compile(r"([1-9]\d{0,3})([dwm])")
_UNIT_NAMES = {"d": "day", "w": "week", "m": "month"}


class Age(Value):
    """A number of days, weeks or calendar months."""

    count: int
    unit: Literal["d", "w", "m"]

    def subtract_from(self, now: datetime) -> datetime:
        """Return the moment that is this long before `now`.

        If the resulting month is shorter, its last day is used.
        """
        if self.unit != "m":
            return now - timedelta(days=self.count * (7 if self.unit == "w" else 1))
        year, month = divmod(now.year * 12 + now.month - 1 - self.count, 12)
        day = min(now.day, monthrange(year, month + 1)[1])
        return now.replace(year=year, month=month + 1, day=day)

    @property
    def description(self) -> str:
        """Return the age in words: `90 days`."""
        return f"{self.count} {_UNIT_NAMES[self.unit]}{'' if self.count == 1 else 's'}"

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"


def parse_age(stated: str) -> Age:
    """Read an age.

    Raises:
        ValueError: it is not a valid age.
    """
    found = _AGE.fullmatch(stated)
    if found is None:
        raise ValueError(f"{stated!r} is not an age such as 90d (days), 12w (weeks) or 6m (months)")
    return Age.model_validate({"count": int(found[1]), "unit": found[2]})
