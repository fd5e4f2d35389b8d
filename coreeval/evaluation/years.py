"""The years of a text: which of its numbers are years, in any notation.

Years from 1900 to 2099 are found: alone, in dates (2014-12-31, 12/31/2014, 31-dec-14, 20141231), in
ranges (2013-2014, 2013-14), as decades (1990s), quarters and fiscal years (FY14, 4Q14, 2014E).
Numbers that only look like years are skipped: amounts of money, numbers with a unit, a minus sign
or a thousands separator, decimals, addresses, numbers of accounting standards, and numbers in the
body of a table.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

FIRST, LAST = 1900, 2099
_Y = r"(?:19|20)\d\d"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![a-z])"
)
_MM, _DD = r"(?:1[0-2]|0?[1-9])", r"(?:[12]\d|3[01]|0?[1-9])"
_SCALE = r"(?:%|per ?cent|hundred|thousand|[mb]illion|trillion|mn\b|bn\b|basis|bps\b|dollars|euros)"
_COUNTED = (
    r"(?:shares|stockholders|shareholders|holders|employees|people|persons|customers|stores|units"
    r"|square|acres|miles|km|barrels|tons|tonnes|ounces|gallons|megawatts|[mgk]wh?|hours|days)\b"
)
_AGAIN = r"(?:\s\(\s?\d[\d,.]*\s?\))?"
"""The same amount repeated in parentheses, as FinQA writes negative amounts."""
_WHEN = rf"(?:in|since|during|until|fiscal|year|{_MONTH}|,)\s"

_FORMS = re.compile(
    rf"""
    (?<![A-Za-z0-9_.])(?P<iso>{_Y})(?P<iso_cut>[-/.]){_MM}(?P=iso_cut){_DD}(?!\d)
  | (?P<skip>
        https?://\S+ | www\.\S+
      | (?:[$€£¥₹]|\b(?:usd|eur|gbp|rmb|cny|rs)\b\.?)(?!\s?{_Y}-\d\d-)\s?[-(]?\s?\d[\d,.]*{_AGAIN}
      | (?<![A-Za-z0-9])[-−]\d[\d,.]*{_AGAIN}
      | \basu\s(?:no\s?\.?\s?)?\d{{4}}-\d+
      | (?<![\d,.])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?!\d)
      | (?<!\d){_Y}\s?{_SCALE}
    )
  | (?<![A-Za-z0-9_.]){_DD}(?P<dmy_cut>[-/.]){_DD}(?P=dmy_cut)(?P<dmy>{_Y})(?!\d)
  | (?<![\w.,/]){_DD}/{_DD}/(?P<slashed>\d\d)(?![\w/]|[.,]\d)
  | (?<![A-Za-z0-9_.])(?P<compact>{_Y})(?:1[0-2]|0[1-9])(?:[12]\d|3[01]|0[1-9])(?![A-Za-z0-9_])
  | \b{_MONTH}\s{_DD}(?P<glued>{_Y})(?!\d)
  | \b{_DD}-{_MONTH}-(?P<dashed>\d\d)(?!\d)
  | \b(?:fy\s?['’]?|fiscal\s(?:year\s)?['’]|{_MONTH}\s?['’]|[1-4]q['’]?|q[1-4]\s?['’])
    (?P<short>{_Y}|\d\d)(?![\w]|[.,]\d)
  | (?<!\d)\d+\.\d[\d.]*
  | (?<![A-Za-z0-9_])(?P<from>{_Y})[-–/](?P<to>\d\d)(?![\w/-]|[.,]\d)
  | (?<![A-Za-z0-9_])(?P<decade>(?:19|20)\d0)['’]?s\b
  | (?<=[A-Za-z]-)(?P<joined>{_Y})(?![A-Za-z0-9_])
  | (?<![A-Za-z0-9_])(?P<bare>{_Y})
    (?:(?={_MONTH})|(?:[ea]|q[1-4]|h[12])?(?![A-Za-z0-9_]|\.\d|,\d{{3}}(?!\d)))
    """,  # noqa: RUF001
    flags=re.VERBOSE | re.IGNORECASE,
)
_LOOKS = re.compile(rf"\s*{_Y}\s*")
_COUNT_AFTER = re.compile(rf"\s(?:[\w-]+\s)?{_COUNTED}", re.IGNORECASE)
_WHEN_BEFORE = re.compile(rf"(?<![a-z]){_WHEN}$", re.IGNORECASE)
_TIMES = re.compile(r"\s*(?:fiscal|years?|dates?|matur|expir)", re.IGNORECASE)


class Year(NamedTuple):
    """A year and its position in a text; two digits are read as 1970 to 2069."""

    start: int
    end: int
    value: int
    decade: bool = False


def find_years(text: str) -> Iterator[Year]:
    """Yield the years in a text, from left to right."""
    cells = _value_cells(text)
    for match in _FORMS.finditer(text):
        kind = match.lastgroup or "skip"
        if kind == "skip" or (kind == "bare" and _is_no_year(text, match, cells)):
            continue
        if kind == "to":
            yield from _range(match)
        else:
            name = {"iso_cut": "iso"}.get(kind, kind)
            start, end = match.span(name)
            yield Year(start, end, _complete_year(match[name]), decade=name == "decade")


def _is_no_year(text: str, match: re.Match[str], cells: set[int]) -> bool:
    start, end = match.span("bare")
    counts = _COUNT_AFTER.match(text, end) and not _WHEN_BEFORE.search(text, 0, start)
    return start in cells or bool(counts)


def _range(match: re.Match[str]) -> Iterator[Year]:
    """Yield both ends of 2013-14, or only the first if the second is not 1 to 30 years later."""
    start, end = match.span("from")
    first = int(match["from"])
    yield Year(start, end, first)
    if 0 < (int(match["to"]) - first) % 100 <= 30:
        later = first + (int(match["to"]) - first) % 100
        yield Year(*match.span("to"), later)


def _complete_year(digits: str) -> int:
    value = int(digits)
    return value if len(digits) == 4 else value + (1900 if value >= 70 else 2000)


def _value_cells(text: str) -> set[int]:
    """Return the positions of year-like numbers in the body of a table with `|` between its cells.

    The first row and the first cell of a row are headings, and so are rows headed by year or date.
    """
    found, first, at = set[int](), True, 0
    for line in text.split("\n"):
        if not line.startswith("|"):
            first = True
        elif first:
            first = False
        elif not _TIMES.match(line.split("|")[1]):
            found |= set(_later_cells(line, at))
        at += len(line) + 1
    return found


def _later_cells(line: str, at: int) -> Iterator[int]:
    for place, cell in enumerate(line.split("|")):
        if place > 1 and _LOOKS.fullmatch(cell):
            yield at + len(cell) - len(cell.lstrip())
        at += len(cell) + 1
