"""Numbers that say how far a value moved, or what it was over another span of time."""

import re
from collections.abc import Mapping
from typing import Final

_MOVED: Final = (
    r"(?:increas\w+|ris(?:e|en|es|ing)|rose|climb\w*|jump\w*|surg\w+|up|gain\w*|grew|fell|fall\w*"
    r"|drop\w*|declin\w+|decreas\w+|down|edged|ticked|added|widened|improved|worsened|change[ds]?)"
)
_SIZE: Final = (
    r"(?:\s(?:up|down|by|of|about|around|approximately|roughly|nearly|an?|just|only|some)\b)*"
)
_CHANGED_BY: Final = re.compile(rf"\b{_MOVED}{_SIZE} ?~?$", re.IGNORECASE)
_COMPARED_BEHIND: Final = re.compile(
    r"\s*+(?:percentage )?(?:points?|pp)?\s*+(?:higher|lower|more|less|above|below|rise|increase"
    r"|drop|decline|fall|jump)\b",
    re.IGNORECASE,
)
_COMPARED_TO: Final = re.compile(
    r"\b(?:(?:up|down|higher|lower|revised|rising|falling) from|compared (?:to|with)|against)"
    r"(?: (?:the|its|about|around|roughly|an?))* ?~?$",
    re.IGNORECASE,
)
_SPANS: Final[Mapping[str, str]] = {
    "daily": r"daily|intraday|one-day|single-day",
    "weekly": r"weekly|one-week",
    "monthly": r"monthly|one-month|month(?:'s)?",
    "quarterly": r"quarterly|quarter(?:'s)?",
    "annual": r"annual(?:ly|ized)?|yearly|full-year|calendar-year|12-month|twelve-month",
}
_ALL: Final = r"cumulative|all-time|long-run|lifetime"
_SPAN: Final = re.compile(
    "|".join(rf"\b(?P<{each}>{words})\b" for each, words in _SPANS.items()) + rf"|\b(?:{_ALL})\b",
    re.IGNORECASE,
)
_FROM_PEAK: Final = re.compile(
    r" ?(?:from (?:its |the )?(?:peak|high|top)|peak[- ]to[- ]trough"
    r"|for the (?:year|quarter)|ytd\b)",
    re.IGNORECASE,
)
_OF_LEVEL: Final = re.compile(r"\b(?:index|closed?|price|level)\b[^.;%\n]*$", re.IGNORECASE)
_TWO_WORDS: Final = re.compile(r"[^\W\d_]{2}\W+(?=[^\W\d_]{2})")
_IS_LEVEL: Final = re.compile(
    r"\b(?:\u00e9tait|est|ist|war|betrug|betr\u00e4gt|lag|liegt|bei|fue|es|era|foi|\u00e8|was|is"
    r"|were|plus|m\u00e1s|pi\u00f9|mais|gewann|stieg|subi\u00f3|gagn\u00e9|gain\w*|rose|answer"
    r"|return(?:ed)?|about|around|approximately|roughly)"
    r"(?: (?:de|del|von|bei|un|um|at|of|about|around|environ|etwa|rund|circa|approximately|roughly"
    r"|likely|probably|the|an?))* ?~?$",
    re.IGNORECASE,
)


def says_change(before: str, behind: str) -> bool:
    """Whether words say that a number is how far a value moved: `increased by 0.9`."""
    return bool(_CHANGED_BY.search(before) or _COMPARED_BEHIND.match(behind))


def is_compared_to(before: str) -> bool:
    """Whether words say that another value is compared to a number: `up from 3.5`."""
    return _COMPARED_TO.search(before) is not None


def of_another_span(before: str, behind: str, frequency: str, name: str) -> bool:
    """Whether a number is told of another span: an annual return, a fall from a peak."""
    if _FROM_PEAK.match(behind):
        return True
    spans = [found for found in _SPAN.finditer(before) if found[0].lower() not in name.lower()]
    return bool(spans) and spans[-1].lastgroup != frequency


def is_index_level(before: str) -> bool:
    """Whether words say that a number without a unit is the level of an index or a price."""
    return _OF_LEVEL.search(before) is not None


def sign_untold(before: str, digits: str) -> bool:
    """Whether a number with a decimal comma follows words that may say that it is a loss."""
    if not re.search(r"\d,\d{1,2}(?!\d)", digits):
        return False
    clause = 1 + max(before.removesuffix("\n").rfind(sign) for sign in ".:=;\n")
    worded = any(found.end() >= clause for found in _TWO_WORDS.finditer(before))
    return worded and _IS_LEVEL.search(before) is None
