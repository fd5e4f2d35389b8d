"""Dates in an answer: how one is written, and which numbers are part of one."""

import calendar
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from coreeval.evaluation.numleak.periods import Period

_NAMES: Final = [name for name in calendar.month_name if name]
_MONTH: Final = "|".join(rf"{name[:3]}t?\.|{name}|{name[:3]}t?" for name in _NAMES)
_YEAR: Final = r"(?:1[5-9]|20)\d{2}"
_DATES: Final = re.compile(
    rf"""(?ix)
      https?://\S+ | \bwww\.\S+ | \b[\w.-]{{1,80}}\.(?:edu|com|org|gov|html?)\b\S*
    | (?<![\w.,-])(?:(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?\ (?:of\ )?)?
      (?:{_MONTH})(?![A-Za-z])
      (?:\ (?:of\ )?(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?\b(?![.,%]\d|\ ?(?:%|percent)))?
      (?:,?\ (?:of\ )?{_YEAR}(?:\ ?-\ ?{_YEAR})?)?(?![\d%])
    | \b{_YEAR}[-/](?:1[0-2]|0?[1-9])(?:[-/](?:3[01]|[12]\d|0?[1-9]))?\b(?![.,]?\d|%)
    | \b{_YEAR}\.(?:1[0-2]|0?[1-9])\.(?:3[01]|[12]\d|0?[1-9])\b(?!\d|%)
    | \b(?:3[01]|[12]\d|0?[1-9])/(?:3[01]|[12]\d|0?[1-9])(?:/(?:{_YEAR}|\d\d))?\b(?![.,]\d|%)
    | \b(?:1[0-2]|0?[1-9])[/-]{_YEAR}\b
    | \b(?:{_YEAR}[-\ ]?q[1-4]|q[1-4][-\ ,]*(?:of\ )?{_YEAR})\b
    | (?<![\d.,]){_YEAR}(?:\ ?[-/]\ ?(?:{_YEAR}|\d\d))?s?(?!\d|[.,]\d|\ ?(?:%|percent|bps?\b|basis))
    """
)
_HIDDEN: Final = "\u2020"


def without_dates(text: str, period: Period) -> str:
    """Return a plain text with each date, year and address struck out, as long as before.

    The digits of the period itself count as a date too: 202003.
    """
    own = rf"(?<![\d.,]){period.start:%Y%m}(?:{period.start:%d})?(?!\d|[.,]\d)"
    struck = _DATES.sub(lambda found: _HIDDEN * len(found[0]), text)
    return re.sub(own, lambda found: _HIDDEN * len(found[0]), struck)


@cache
def _written(period: Period) -> re.Pattern[str]:
    """Return how a period is written in words and figures; the day counts where it has one."""
    return re.compile(
        "|".join(rf"(?<![\w-]){form}(?![\w-]|\.\d)" for form in _forms(period)), re.IGNORECASE
    )


def _forms(period: Period) -> Iterator[str]:
    start = period.start
    month, year = _NAMES[start.month - 1], start.year
    named = rf"(?:{month}|{month[:3]}t?\.?)"
    if period.frequency in ("daily", "weekly"):
        yield re.escape(start.isoformat())
        yield rf"(?:(?:the )?week of )?{start.day}(?:st|nd|rd|th)?(?: of)? {named},? {year}"
        yield rf"(?:(?:the )?week of )?{named} {start.day}(?:st|nd|rd|th)?,? {year}"
        yield rf"{start.month:02d}/{start.day:02d}/{year}"
    elif period.frequency == "monthly":
        yield rf"{named},?(?: of)? {year}"
        yield rf"{year}[-/]{start.month:02d}|{start.month:02d}/{year}"
    elif period.frequency == "quarterly":
        ordinal = ("first", "second", "third", "fourth")[period.quarter - 1]
        yield rf"{year}[- ]?Q{period.quarter}|Q{period.quarter}[-, ]*(?:of )?{year}"
        yield rf"(?:the )?{ordinal} quarter(?: of|,)? {year}"
    else:
        yield str(year)


def mentions(text: str, period: Period) -> list[tuple[int, int]]:
    """Return where a plain text names a period, as start and end."""
    return [found.span() for found in _written(period).finditer(text)]
