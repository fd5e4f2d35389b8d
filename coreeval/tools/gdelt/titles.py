"""Repairing titles: DOC 2.0 splits them into tokens and loses characters on the way.

What is gone stays gone: a double space shows that quotation marks were dropped, but not which, so
it becomes a single one; nothing may be quoted that the source did not show (pilot §2).
"""

import re

from coreeval.tools.html_references import unescape

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)[a-z]*\.?"
_PREFIXES = (
    r"anti|bi|co|counter|cross|cyber|e|eco|ex|first|full|half|high|inter|long|low|mid|mini|multi|"
    r"non|off|on|once|over|part|post|pre|pro|re|real|second|self|semi|short|single|start|sub|super|"
    r"third|trans|ultra|under|well|zero"
)
_LEADS_A_CLAUSE = (
    r"a|an|and|as|at|but|by|for|from|here|how|in|it|new|of|on|or|says?|see|the|this|to|what|when|"
    r"where|who|why|with|analysts?|data|experts?|minister|officials?|photos?|police|poll|reports?|"
    r"reuters|review|sources?|study|survey|video|watch"
)
_PARTICIPLES = (
    "Based|Backed|Driven|Focused|Free|Friendly|Funded|Grade|Haven|Led|Linked|Made|Old|Owned|Powered|"
    "Quality|Ready|Related|Scale|Style|Term|Yield"
)
_DATE_BEFORE = re.compile(rf"{_MONTH} $", re.IGNORECASE)
_LONGEST_MONTH = 12
"""Characters of a month's name with what stands behind it."""
_YEAR = re.compile(r"(?:19|20)\d\d$")

_STEPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=\b[A-Za-z]) ?\. ?(?=[A-Z]\b ?\.)", "."),  # U . S . -> U.S .
        (r"(?<=[A-Za-z]\.[A-Z]) \.", "."),  # U.S . -> U.S.
        (r"(?<=\w) \. (?=(?:com|org|net|co|io|ca|uk|eu|tv)\b)", "."),  # Baystreet . ca
        (r"(?<=\.) ?- (?=[A-Z])", "-"),  # U.S .- China
        (r"(?<=\b[A-Z]) & (?=[A-Z]\b)", "&"),  # S & P
        (r"\bAT & T\b", "AT&T"),
        (r"\bBen & Jerry\b(?!['\u2019])", "Ben & Jerry's"),
        (r"(?<=\w) ['\u2019] ?(?=(?:s|re|ve|ll|d|t|m)\b)", "'"),  # Putin ' s
        (r"(?<=\d) ([/-]) (?=\d)", r"\1"),  # 24 / 7, 2025 - 2026
        (r"(?<=[a-z0-9]) - (?=(?!(?:" + _LEADS_A_CLAUSE + r")\b)[a-z])", "-"),  # two - month
        (r"\b((?i:" + _PREFIXES + r")) - (?=\w)", r"\1-"),  # High - Quality, ex - Bharat
        (r"\b(US|EU|UK|UN|AI) - (?=[A-Z]\w+ )", r"\1-"),  # US - China talks
        (r"(?<=\w) - (?=(?:" + _PARTICIPLES + r")\b)", "-"),  # Climate - Linked
        (r"\b([A-Z]{1,4}) - (?=\d)", r"\1-"),  # GPT - 5
        (r"\bunited states\b", "United States"),
        (r"\bunited kingdom\b", "United Kingdom"),
        (r"(?<=[#$£€]) (?=\d)", ""),  # # 1
        (r"° (?=[CF]\b)", "°"),
        (r"(?<=\d) (?=°)", " "),
        (r"(?<! ) +([,;:!?%)\]…])", r"\1"),
        (r"(?<! ) +\.(?= |$|[,;:)\]'\"-])", "."),
        (r"([(\[]) +", r"\1"),
    )
)


_OUTLET = re.compile(
    r" [|\u2013\u2014-] (?=[A-Z])(?:[^|\u2013\u2014-]*\b"
    r"(?i:news\w*|radio|tv|weather|sports?|herald|times|post|dispatch|gazette|tribune|journal|press|"
    r"magazine|chronicle|observer|courier|daily|weekly)\b[^|\u2013\u2014]*)$"
)


def without_outlet(title: str) -> str:
    """Drop what outlets put after a headline: ` | Outlet`, ` - Town Herald`, ` - News, Weather`.

    Else "weather" finds every story of a station that has the word in its name.
    """
    head, bar, _ = title.rpartition(" | ")
    return _OUTLET.sub("", head if bar else title)


def clean(raw: str) -> str:
    """Resolve HTML entities and CSV's doubled quotes, and leave single spaces only."""
    text = unescape(unescape(raw)).replace('""', '"')
    return " ".join(text.split())


def repair(raw: str) -> str:
    """Undo the tokens of a DOC 2.0 title: `$4, 500`, `1. 5 °C`, ` : `, `two - month`."""
    text = clean(raw)
    text = re.sub(r"(?<!\d)(\d{1,3}(?: ?, ?\d{3})*) ?, (\d{3})(?!\d)", _thousands, text)
    text = re.sub(r"(?<!\d)(\d+) ?\. (?=\d)", _decimal, text)
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def _thousands(match: re.Match[str]) -> str:
    """Join `4 , 500`, but not `June 10 , 100 workers`."""
    start = match.start()
    if _DATE_BEFORE.search(match.string[max(0, start - _LONGEST_MONTH) : start]):
        return match[0]
    return re.sub(r" ?, ?", ",", match[0])


def _decimal(match: re.Match[str]) -> str:
    """Join `1 . 5`, but not the end of a sentence in a year: `in 2025 . 5 ways`."""
    return match[0] if _YEAR.search(match[1][-4:]) else f"{match[1]}."
