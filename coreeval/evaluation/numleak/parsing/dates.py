"""Dates in an answer: their notations, their relation to the date asked about, their numbers."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache
from typing import Final, Literal, NamedTuple

from coreeval.evaluation.numleak.parsing.answer_text import STRUCK
from coreeval.evaluation.numleak.parsing.quantities import AnswerNumber
from coreeval.evaluation.numleak.periods import Period

DateRelation = Literal["asked", "other", "any"]
"""The relation of a date to the one asked about.

It is that date (`asked`), another one (`other`), or not specific (`any`: a year, for a month).
"""
_NAMES: Final = (
    "January February March April May June July August September October November December",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
)
_ENGLISH: Final = _NAMES[0].split()
_MONTHS: Final = {
    **{name.lower(): at for names in _NAMES for at, name in enumerate(names.split(), 1)},
    **{name[:3].lower(): at for at, name in enumerate(_ENGLISH, 1)},
    "sept": 9,
}
_FULL: Final = "|".join(sorted((name for name in _MONTHS if len(name) > 4), key=len, reverse=True))
_SHORT: Final = "|".join(rf"{name[:3]}t?\.|{name[:3]}t?" for name in _ENGLISH)
_MONTH: Final = rf"{_FULL}|sept\.|{'|'.join(name for name in _MONTHS if len(name) == 4)}|{_SHORT}"
_YEAR: Final = r"(?:1[5-9]|20)\d{2}"
_DAY: Final = r"(?:3[01]|[12]\d|0?[1-9])"
_OF: Final = r"(?:of |de |del |di )?"
_RELATIVE: Final = (
    r"(?:\bthe )?\b(?:previous|prior|preceding|following|next|last) (?:month|quarter|year|week|day)"
    r"\b|\b(?:a|an|one|two|three|1|2|3|the) (?:month|quarter|year|week|day)s? "
    r"(?:earlier|before|later|ago|prior|after)\b|\byear[- ]to[- ]date\b|\bytd\b"
)
_BLANK: Final = r"\x20"
_DATES: Final = re.compile(
    rf"""(?ix)
      https?://\S+ | \bwww\.\S+ | \b[\w.-]{{1,80}}\.(?:edu|com|org|gov|html?)\b\S*
    | {_RELATIVE.replace(" ", _BLANK)}
    | \b{_YEAR}(?:-\d\d(?:\d\d)?)?(?:\ ?=\ ?100|\ (?:us\ )?(?:dollars|prices))\b
    | (?<![\w.,-])(?:{_DAY}(?:st|nd|rd|th|\.)?\ {_OF.replace(" ", _BLANK)})?
      (?:{_MONTH})(?![A-Za-z])
      (?:\ (?:of\ )?{_DAY}(?:st|nd|rd|th)?\b(?![.,%]\d|\ ?(?:%|percent)))?
      (?:,?\ {_OF.replace(" ", _BLANK)}{_YEAR}(?:\ ?-\ ?{_YEAR})?
       |[-\ ]'\d\d\b|-\d\d(?=\ *(?:[:=,|]\ *[-+\d]|$)))?
      (?![\d%])
    | \b{_YEAR}[-/](?:1[0-2]|0?[1-9])(?:[-/]{_DAY})?\b(?!\.?\d|%)
    | \b{_YEAR}(?:M(?:1[0-2]|0?[1-9])\b|\.(?:1[0-2]|0[1-9])(?=\ *[:=|]))
    | \b{_YEAR}\.(?:1[0-2]|0?[1-9])\.{_DAY}\b(?!\d|%)
    | \b{_DAY}/{_DAY}(?:/(?:{_YEAR}|\d\d))?\b(?![.,]\d|%)
    | \b(?:1[0-2]|0?[1-9])[/-]{_YEAR}\b
    | \b(?:{_YEAR}[-\ ]?q[1-4]|q[1-4][-\ ,]*(?:of\ )?{_YEAR}|q[1-4])\b
    | \b(?:first|second|third|fourth)\ quarter(?:(?:\ of|,)?\ {_YEAR})?\b
    | (?<![\d.,]){_YEAR}(?:1[0-2]|0[1-9])(?=\ *[:=,;|]\ *[-+]?\d)
    | (?<![\d.,]){_YEAR}(?:\ ?[-/]\ ?(?:{_YEAR}|\d\d))?s?(?!\d|[.,]\d|\ ?(?:%|percent|bps?\b|basis))
    """
)


class DateMark(NamedTuple):
    """A date found in a text."""

    start: int
    end: int
    whose: DateRelation


def find_dates(text: str, period: Period) -> list[DateMark]:
    """Return the dates of a plain text in order, each with its relation to the one asked about.

    The bare digits of the period also count as a date: 202003.
    """
    start = period.start
    own = rf"(?<![\d.,]){start:%Y%m}(?:{start:%d})?(?!\d|[.,]\d)"
    found = {mark.start(): DateMark(*mark.span(), relate_date(mark[0], period))
             for mark in _DATES.finditer(text)}  # fmt: skip
    found |= {mark.start(): DateMark(*mark.span(), "asked") for mark in re.finditer(own, text)}
    return [found[at] for at in sorted(found)]


def strike_dates(text: str, dates: list[DateMark]) -> str:
    """Return a text of the same length with its dates struck out."""
    for mark in dates:
        text = text[: mark.start] + STRUCK * (mark.end - mark.start) + text[mark.end :]
    return text


def remove_dates(text: str, period: Period) -> str:
    """Return a plain text with dates, years and addresses struck out, its length unchanged."""
    return strike_dates(text, find_dates(text, period))


# -- which date it is -----------------------------------------------------------------------------


class _DateParts(NamedTuple):
    """The parts that a written date specifies."""

    years: tuple[int, ...] = ()
    quarter: int | None = None
    months: tuple[int, ...] = ()
    """Possible months; several if the digits are ambiguous: 03/05/2020."""
    day: int | None = None


_ORDINALS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_RELATIVE_ONLY: Final = re.compile(_RELATIVE, re.IGNORECASE)
_YEARS: Final = re.compile(rf"(?<!\d){_YEAR}")
_QUARTER: Final = re.compile(r"\bq([1-4])|(first|second|third|fourth) quarter|q([1-4])\b")
_DIGITS: Final = re.compile(rf"({_YEAR})[-/.m]?(\d\d?)(?:[-/.](\d\d?))?,?")
_SLASHED: Final = re.compile(rf"(\d\d?)[/-](?:(\d\d?)[/-])?({_YEAR})")
_SHORT_YEAR: Final = re.compile(r"(?:'|-)(\d\d)$")
_MONTH_DIGITS: Final = re.compile(rf"{_YEAR}(?:1[0-2]|0[1-9])(?:{_DAY})?")
_WORD: Final = re.compile(r"[^\W\d_]+")
_DAY_ONLY: Final = re.compile(r"(?<!\d)\d\d?(?!\d)")


def relate_date(written: str, period: Period) -> DateRelation:
    """Return whether a date in words or figures is that of a period, may be, or is another one."""
    text = written.lower()
    if text.startswith(("http", "www")) or text.endswith("100"):
        return "any"
    if _RELATIVE_ONLY.fullmatch(text):
        return "other"
    return _relate_parts(_read_date_parts(written), written, period)


def _read_date_parts(written: str) -> _DateParts:
    text = written.lower()
    years = tuple(int(year) for year in _YEARS.findall(text))
    if found := _QUARTER.search(text):
        number = found[1] or found[3]
        return _DateParts(years, quarter=int(number) if number else _ORDINALS[found[2]])
    if found := _SLASHED.fullmatch(text):
        first, second = int(found[1]), int(found[2] or 0)
        return _DateParts(years, months=(first, second) if second else (first,), day=second or None)
    if (found := _DIGITS.fullmatch(text)) and 1 <= int(found[2]) <= 12:
        day = int(found[3]) if found[3] else None
        return _DateParts(years[:1], months=(int(found[2]),), day=day)
    month = next((_MONTHS[word] for word in _WORD.findall(text) if word in _MONTHS), None)
    if month is None:
        return _DateParts(years)
    if short := _SHORT_YEAR.search(text):
        century = 2000 if int(short[1]) < 50 else 1900
        return _DateParts((century + int(short[1]),), months=(month,))
    of_month = _DAY_ONLY.search(text)
    return _DateParts(years, months=(month,), day=int(of_month[0]) if of_month else None)


class WrittenDate(NamedTuple):
    """A month or day in a text, with the parts that are written."""

    start: int
    end: int
    year: int | None
    days: frozenset[tuple[int, int | None]]
    """The months and days that it can mean: two for 03/05/2020; the day is None if not named."""


def find_written_dates(text: str) -> list[WrittenDate]:
    """Return the dates of a plain text that name a month, in order."""
    found = list[WrittenDate]()
    for mark in _DATES.finditer(text):
        said = _read_date_parts(mark[0])
        if said.months and len(said.years) <= 1:
            year = said.years[0] if said.years else None
            found.append(WrittenDate(*mark.span(), year, _possible_days(said)))
    return found


def _possible_days(said: _DateParts) -> frozenset[tuple[int, int | None]]:
    if len(said.months) == 1:
        return frozenset({(said.months[0], said.day)})
    first, second = said.months
    return frozenset((month, day) for month, day in ((first, second), (second, first))
                     if month <= 12)  # fmt: skip


def _relate_parts(said: _DateParts, written: str, period: Period) -> DateRelation:
    if said.years and not _is_near_year(said.years, written, period):
        return "other"
    if not said.months and not said.quarter:
        return "asked" if period.frequency == "annual" and len(said.years) == 1 else "any"
    if not said.years and said.months and not said.day and written[:1].islower():
        return "any"  # may, march
    if said.quarter:
        same = said.quarter == period.quarter
        return "asked" if same and period.frequency == "quarterly" else "other"
    return _relate_month(said, period)


def _is_near_year(years: tuple[int, ...], written: str, period: Period) -> bool:
    """Return whether a period's year is among those named, or in their decade or range."""
    last = years[-1] + (9 if written.endswith(f"{years[-1]}s") else 0)
    return years[0] <= period.start.year <= last


def _relate_month(said: _DateParts, period: Period) -> DateRelation:
    """Return the relation of a month or day to a period; its first or last day may represent it."""
    start, end = period.start, period.last_day
    if period.frequency in ("daily", "weekly"):
        if said.day is None:
            return "any" if start.month in said.months else "other"
        same = start.month in said.months
        near = same and abs(start.day - said.day) < period.days
        return "asked" if near and said.day == start.day else "any" if near else "other"
    if period.frequency == "annual":
        whole = said.day in (None, 1, 31) and {start.month, end.month} & {*said.months}
        return "any" if whole and said.day else "other"
    edges = {(start.month, 1), (end.month, end.day)}
    if len(said.months) == 2:
        first, second = said.months
        return "asked" if {(first, second), (second, first)} & edges else "other"
    if said.day is not None:
        return "asked" if (said.months[0], said.day) in edges else "other"
    if period.frequency == "quarterly":
        return "any" if said.months[0] in (start.month, end.month) else "other"
    return "asked" if said.months[0] == start.month else "other"


def parse_day(written: str) -> date | None:
    """Return the first day of a date given as a month or a day; None if this is not clear."""
    if not (found := _DATES.fullmatch(written)) and not _MONTH_DIGITS.fullmatch(written):
        return None
    said = _read_date_parts(written if found is None else found[0])
    if len(said.years) != 1 or not said.months:
        return None
    month, day = said.months[0], said.day or 1
    try:
        return date(said.years[0], month, day)
    except ValueError:
        return None


# -- the dates of a choice ------------------------------------------------------------------------


@cache
def _period_pattern(period: Period) -> re.Pattern[str]:
    """Return the pattern of a period in words and figures; the day is part of it if it has one."""
    return re.compile(
        "|".join(rf"(?<![\w-]){form}(?![\w-]|\.\d)" for form in _period_forms(period)),
        re.IGNORECASE,
    )


def _period_forms(period: Period) -> Iterator[str]:
    start = period.start
    month, year = _ENGLISH[start.month - 1], start.year
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


def find_mentions(text: str, period: Period) -> list[tuple[int, int]]:
    """Return the start and end of each mention of a period in a plain text."""
    return [found.span() for found in _period_pattern(period).finditer(text)]


_CLAUSE_END: Final = re.compile(r"[.!?](?=\s|$)|[;\n|]")
_LINK: Final = re.compile(r"(?:[^\w.!?;]|[.;](?!\s)|\u2020|'s\b|\b(?:was|is|were|at|in)\b){0,12}")
"""Text allowed between a date and the number after it: `2020-03: `, `March 2020 (`."""
_BEHIND: Final = re.compile(
    r"[ (]*(?:(?:back in|as of|in|for|during|of|on|at|the month of|the|early|late"
    r"|en|em|im|de|del|di|chained|constant)[ ])+"
)
_CLAIMED: Final = re.compile(r"(?:'s|:|,? (?:was|is|were|stood at|came in at))[\s(~]*(?:about )?")
"""Words after a date that give it to the number after them: `from February's 3.5%`."""
_AT_ONCE: Final = re.compile(r" ?\(?")
_REFERENCE: Final = re.compile(
    r"\b(?:since|from|as (?:bad|good|high|low) as|than(?: in)?|unlike|like|after|before|until"
    r"|following|prior to|compared (?:to|with)"
    r"|relative to|versus|vs\.?)(?: the| its)?(?: \w+){0,2} ?$",
    re.IGNORECASE,
)
_WHEN: Final = re.compile(r",? when\b")
_SEEN: Final = 300
"""The number of characters before a number in which its date is searched for."""
_HEADING_WORDS: Final = 4


def find_owners(
    text: str, dates: Sequence[DateMark], numbers: Sequence[AnswerNumber]
) -> list[DateRelation | None]:
    """Return the relation of each number's date, taken from its clause or the heading above.

    A date right before a number belongs to it. If there is none, the date right after the number
    does ("3.5% in February"), and otherwise the nearest date before it in its clause that is not
    right after another number.

    Args:
        text: The plain text, of the same length as the one with its dates struck out.
        dates: The dates in the text.
        numbers: The numbers in the text.
    """
    used = set[int]()
    found = list[DateRelation | None]()
    for at, number in enumerate(numbers):
        behind = _date_behind(text, dates, number)
        following = numbers[at + 1].start if at + 1 < len(numbers) else len(text)
        if behind is not None and _CLAIMED.fullmatch(text, behind.end, following):
            behind = None
        free = [date for date in dates if date.start not in used]
        if behind is not None and not _follows_date(text, free, number):
            used.add(behind.start)
            found.append(behind.whose)
            continue
        before = _date_before(text, free, number) or _heading_above(text, dates, numbers, number)
        found.append(before.whose if before else None)
    return found


def _follows_date(text: str, dates: Sequence[DateMark], number: AnswerNumber) -> bool:
    """Return whether a date is right before a number."""
    last = next((date for date in reversed(dates) if date.end <= number.start), None)
    return last is not None and _links(text, last, number)


def _links(text: str, date: DateMark, number: AnswerNumber) -> bool:
    return _LINK.fullmatch(text, date.end, number.start) is not None


def _date_behind(text: str, dates: Sequence[DateMark], number: AnswerNumber) -> DateMark | None:
    """Return the date right after a number, in brackets or after a preposition."""
    date = next((date for date in dates if date.start >= number.end), None)
    if date is None or date.start - number.end > _SEEN:
        return None
    said = text[number.end : date.start]
    relative = (
        not any(sign.isdigit() for sign in text[date.start : date.end])
        and " " in (text[date.start : date.end])
    )
    if _BEHIND.fullmatch(said) or (said.endswith("(") and said.strip() == "("):
        return date
    return date if relative and date.whose == "other" and _AT_ONCE.fullmatch(said) else None


def _date_before(text: str, dates: Sequence[DateMark], number: AnswerNumber) -> DateMark | None:
    begins = max(0, number.start - _SEEN)
    ends = [found.end() for found in _CLAUSE_END.finditer(text, begins, number.start)
            if not any(date.start < found.end() <= date.end for date in dates)]  # fmt: skip
    begins = ends[-1] if ends else begins
    before = [date for date in dates if date.end <= number.start]
    if before and _links(text, before[-1], number):
        return before[-1]
    named = [date for date in before if date.start >= begins]
    own = [date for date in named if not _REFERENCE.search(text, begins, date.start)
           or _WHEN.match(text, date.end)]  # fmt: skip
    return next((date for date in reversed(own) if date.whose != "any"), None)


def _heading_above(
    text: str,
    dates: Sequence[DateMark],
    numbers: Sequence[AnswerNumber],
    number: AnswerNumber,
) -> DateMark | None:
    """Return the date of the nearest line above that consists of little more than a date."""
    begins = text.rfind("\n", 0, number.start)
    for mark in reversed([mark for mark in dates if mark.end <= begins and mark.whose != "any"]):
        start, end = text.rfind("\n", 0, mark.start) + 1, text.find("\n", mark.end)
        listed = text[start : start + 1] in "-*\u2022"
        if listed or any(start <= other.start < end for other in numbers):
            continue
        words = re.findall(r"\w+", text[start : mark.start] + " " + text[mark.end : end])
        if len(words) <= _HEADING_WORDS:
            return mark
    return None
