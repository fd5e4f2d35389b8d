"""Numbers in an answer: sign, unit and place of each; a range counts as its middle."""

import re
from functools import cache
from typing import Final, Literal, NamedTuple

from coreeval.evaluation.numleak.series.units import Unit

Measure = Literal["own", "bare", "other"]
"""In the unit of the series; with no unit at all; in another one."""
_DIGITS: Final = (
    r"(?:\d{1,3}(?:_\d{3})+(?:[.,]\d+)?|\d{1,3}(?:\.\d{3})+,\d+"
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|\d+(?:[.,]\d+)?|\.\d+)"
)
_SIGN: Final = "(?P<SIDEsign>(?:minus |negative |plus |positive )?[-+]?)"
_NUMBER: Final = rf"{_SIGN}(?P<SIDEmoney>[$€£¥]?)(?P<SIDEdigits>{_DIGITS})"
_FOREIGN: Final = (
    r"%|per ?cent|pct|percentage points?|pp|(?P<SIDEbasis>bps?|basis[- ]points?)|°[CFK]?|degrees?"
    r"|[CFK]|celsius|fahrenheit|index points?|points?|pts|dollars?|usd|euros?|eur|gbp|yen|cents?"
    r"|thousand|million|billion|trillion|[kmb]n?|ppm|ppb|x|times|standard deviations?"
    r"|days?|weeks?|months?|years?|quarters?"
)
_OTHER_SCALE: Final = r"(?! ?(?:celsius|fahrenheit|kelvin|[CFK])\b)"
_FALLS: Final = re.compile(
    r"\b(?:loss(?:es)?|declin(?:e|ed|es|ing)|f[ae]ll|falling|fallen|drop(?:ped|s)?|decreas(?:e|ed|es)"
    r"|down|los[et]|losing|shrank|slumped|slid|contract(?:ed|ion)"
    r"|negative (?:\w+ ){0,2}(?:return|growth|value|reading|figure))"
    r"(?: (?:by|of|about|around|approximately|roughly|nearly|almost|an?|some|just|only))* ?~?$",
    re.IGNORECASE,
)
_LOSS_BEHIND: Final = re.compile(
    r" ?(?:loss|decline|drop|fall|decrease|below zero)\b", re.IGNORECASE
)
_NEAR: Final = 80
"""Characters before a number that tell its sign."""
_BETWEEN: Final = re.compile(r"\bbetween ?~?$", re.IGNORECASE)
_CHANGE: Final = re.compile(r"(?<!range )(?<!ranged )(?<!ranging )\bfrom ?~?$", re.IGNORECASE)


class Quantity(NamedTuple):
    """One number of a text, or the middle of a range."""

    value: float
    """In the unit of the series; as written where the measure is not `own`."""
    measure: Measure
    start: int
    end: int
    aside: bool
    """Whether it says how far off another number may be (±0.5 %), or tells of a change (from
    7.6 % to 7.8 %)."""


def quantities(text: str, unit: Unit) -> list[Quantity]:
    """Return the numbers of a plain text whose dates are struck out, in their order."""
    found = []
    at = 0
    while match := _pattern(unit).search(text, at):
        linked = match["link"] != "and" or _behind(_BETWEEN, text, match.start())
        found.append(_quantity(match, text, unit, is_range=bool(match["link"] and linked)))
        at = found[-1].end
    return found


@cache
def _pattern(unit: Unit) -> re.Pattern[str]:
    number = rf"{_NUMBER}(?:[ -]?{_kinds(unit)})?"
    ends = [number.replace("SIDE", side) for side in "ab"]
    return re.compile(
        rf"(?:(?P<about>(?:±|\+/-) ?)|(?<![\w.,/†^])(?<!\w-)){ends[0]}(?P<first_end>)"
        rf"(?:(?P<gap> ?)(?P<link>-|to|and|through) ?~?{ends[1]})?"
        r"(?![\w/\u2044†^])(?!-(?:[A-Za-z]|\s*$)|[.,]\d)",
        re.IGNORECASE,
    )


def _kinds(unit: Unit) -> str:
    """Return what may stand behind a number; the longest form first, so that none hides another."""
    forms = {unit.symbol, unit.name, unit.points_name, *unit.forms} - {""}
    own = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)) or "(?!)"
    return rf"(?:(?P<SIDEown>{own}){_OTHER_SCALE}|(?P<SIDEother>{_FOREIGN}))(?!\w)"


def _quantity(match: re.Match[str], text: str, unit: Unit, *, is_range: bool) -> Quantity:
    """Return the number or the range of a match; without a link only its first number."""
    start, end = match.start(), match.end() if is_range else match.end("first_end")
    side = "b" if is_range and _measure(match, "b", unit) != "bare" else "a"
    value = _signed(match, "a", text)
    if is_range:
        last = _signed(match, "b", text)
        if value < 0 and match["gap"] + match["link"] == "-" and not match["bsign"]:
            last = -last
        value = (value + last) / 2
    if match[f"{side}basis"] and unit.basis_points and not match[f"{side}own"]:
        value /= 100
    aside = bool(match["about"]) or (is_range and _behind(_CHANGE, text, start))
    return Quantity(round(value, 10), _measure(match, side, unit), start, end, aside)


def _measure(match: re.Match[str], side: str, unit: Unit) -> Measure:
    if match[f"{side}money"] and "$" not in unit.forms:
        return "other"
    if match[f"{side}own"] or match[f"{side}money"]:
        return "own"
    if match[f"{side}basis"] and unit.basis_points:
        return "own"
    return "other" if match[f"{side}other"] else "bare"


def _signed(match: re.Match[str], side: str, text: str) -> float:
    """Return a number with its sign; a loss or fall that it is said to be makes it negative."""
    value = float(_plain_number(match[f"{side}digits"].replace("_", "")))
    sign = match[f"{side}sign"].lower()
    if sign:
        return -value if "-" in sign or "minus" in sign or "negative" in sign else value
    lost = _behind(_FALLS, text, match.start()) or _LOSS_BEHIND.match(text, match.end())
    return -value if lost else value


def _behind(pattern: re.Pattern[str], text: str, at: int) -> bool:
    """Whether the words right before a place match."""
    return pattern.search(text, max(0, at - _NEAR), at) is not None


def _plain_number(digits: str) -> str:
    """Return digits without separators of thousands, a comma between whole and part as a point."""
    if "." in digits and digits.find(",") > digits.find("."):
        return digits.replace(".", "").replace(",", ".")
    grouped = re.fullmatch(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", digits)
    return digits.replace(",", "" if grouped else ".")
