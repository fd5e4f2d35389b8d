"""Which date each number of an answer is of: the one asked about, another one, or none is named."""

import re
from collections.abc import Sequence
from typing import Final

from coreeval.evaluation.numleak.parsing.dates import DateMark, Whose
from coreeval.evaluation.numleak.parsing.quantities import Quantity

_CLAUSE_END: Final = re.compile(r"[.!?](?=\s|$)|[;\n|]")
_LINK: Final = re.compile(r"(?:[^\w.!?;]|[.;](?!\s)|\u2020|'s\b|\b(?:was|is|were|at|in)\b){0,12}")
"""What stands between a date and the number that it heads: `2020-03: `, `March 2020 (`."""
_BEHIND: Final = re.compile(
    r"[ (]*(?:(?:back in|as of|in|for|during|of|on|at|from|the month of|the|early|late)[ ])+"
)
_AT_ONCE: Final = re.compile(r" ?\(?")
_REFERENCE: Final = re.compile(
    r"\b(?:since|as (?:bad|good|high|low) as|than(?: in)?|unlike|like|after|before|until"
    r"|following|prior to|compared (?:to|with)"
    r"|relative to|versus|vs\.?)(?: the| its)?(?: \w+){0,2} ?$",
    re.IGNORECASE,
)
_SEEN: Final = 300
"""Characters before a number in which its date is looked for."""
_HEADING_WORDS: Final = 4


def owners_of(
    text: str, dates: Sequence[DateMark], numbers: Sequence[Quantity]
) -> list[Whose | None]:
    """Return for each number whose date it has: of those of its clause, else of the heading above.

    A date right before a number is its own, then one that is told behind it ("3.5% in February"),
    then the nearest one before it in its clause that no other number has behind it.

    Args:
        text: The plain text, as long as the one with its dates struck out.
        dates: Its dates.
        numbers: Its numbers.
    """
    used = set[int]()
    found = list[Whose | None]()
    for number in numbers:
        behind = _date_behind(text, dates, number)
        free = [date for date in dates if date.start not in used]
        if behind is not None and not _headed(text, free, number):
            used.add(behind.start)
            found.append(behind.whose)
            continue
        before = _date_before(text, free, number) or _heading_above(text, dates, numbers, number)
        found.append(before.whose if before else None)
    return found


def _headed(text: str, dates: Sequence[DateMark], number: Quantity) -> bool:
    """Whether a date stands right before a number."""
    last = next((date for date in reversed(dates) if date.end <= number.start), None)
    return last is not None and _links(text, last, number)


def _links(text: str, date: DateMark, number: Quantity) -> bool:
    return _LINK.fullmatch(text, date.end, number.start) is not None


def _date_behind(text: str, dates: Sequence[DateMark], number: Quantity) -> DateMark | None:
    """Return the date that is told right behind a number, in brackets or with its preposition."""
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


def _date_before(text: str, dates: Sequence[DateMark], number: Quantity) -> DateMark | None:
    begins = max(0, number.start - _SEEN)
    ends = [found.end() for found in _CLAUSE_END.finditer(text, begins, number.start)
            if not any(date.start < found.end() <= date.end for date in dates)]  # fmt: skip
    begins = ends[-1] if ends else begins
    before = [date for date in dates if date.end <= number.start]
    if before and _links(text, before[-1], number):
        return before[-1]
    named = [date for date in before if date.start >= begins]
    own = [date for date in named if not _REFERENCE.search(text, begins, date.start)]
    return next((date for date in reversed(own) if date.whose != "any"), None)


def _heading_above(
    text: str,
    dates: Sequence[DateMark],
    numbers: Sequence[Quantity],
    number: Quantity,
) -> DateMark | None:
    """Return the date of the nearest line above that is little else than a date."""
    begins = text.rfind("\n", 0, number.start)
    for date in reversed([date for date in dates if date.end <= begins and date.whose != "any"]):
        start, end = text.rfind("\n", 0, date.start) + 1, text.find("\n", date.end)
        listed = text[start : start + 1] in "-*\u2022"
        if listed or any(start <= other.start < end for other in numbers):
            continue
        words = re.findall(r"\w+", text[start : date.start] + " " + text[date.end : end])
        if len(words) <= _HEADING_WORDS:
            return date
    return None
