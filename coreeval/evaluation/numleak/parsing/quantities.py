"""Numbers in an answer: their sign, unit and position; a range counts as its middle.

Some give the change of a value, or its level over another span of time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from coreeval.evaluation.numleak.parsing.answer_text import normalise_signs
from coreeval.evaluation.numleak.series.definition import Unit, load_units
from coreeval.tools.units import SCALES

_FALL_ENGLISH: Final = (
    r"loss(?:es)?|los[et]|losing|declin(?:e|ed|es|ing)|f[ae]ll|falls|falling|fallen|drop(?:ped|s|ping)?"
    r"|decreas(?:e|ed|es|ing)|down|shrank|shrunk|shrink\w*|slump\w*|slid|slides|sliding|slip(?:s|ped|ping)"
    r"|dip(?:s|ped|ping)?|sank|sunk|sinking|plung\w+|plummet\w*|tumbl\w+|crash(?:ed|es|ing)?"
    r"|collaps(?:ed|es|ing)|shed(?:ding)?|gave up|drawdown|deflation|contract(?:ed|ion|ing)"
)
_FALL: Final = (
    rf"(?:\b(?:{_FALL_ENGLISH}"
    r"|chut\w+|baiss\w+|recul\w*|perte|perdu|perdi\u00f3|effondr\w+|brach|minus|moins|menos|fiel|gefallen|gesunken|verlor\w*"
    r"|r\u00fcckgang|verlust|cay[\u00f3o]|ca\u00edda|caiu|queda|p\u00e9rdida|baj\u00f3|sces[oa]"
    r"|cal[oa]t[oa]|perso|\u0443\u043f\u0430\u043b\w*|\u0441\u043d\u0438\u0437\u0438\u043b\w*"
    r"|\u043c\u0438\u043d\u0443\u0441)\b"
    r"|\u4e0b\u8dcc|\u4e0b\u964d|\u4e0b\u6ed1|\u8dcc|\u4e8f\u635f|\u8d1f|\u4e0b\u843d"
    r"|\u30de\u30a4\u30ca\u30b9)"
)
"""Words for a fall in value; in other languages only the most common ones."""
_MOVED: Final = (
    rf"(?:{_FALL_ENGLISH}|increas\w+|ris(?:e|en|es|ing)|rose|climb\w*|jump\w*|surg\w+|up|gain\w*|grew"
    r"|soar\w*|advanc\w+|edged|ticked|added|widened|improved|worsened|change[ds]?)"
)
_SIZE: Final = (
    r"(?:[ ~\u2020\u4e86\u7ea6]|\b(?:by|of|about|around|approximately|roughly|nearly|almost|an?"
    r"|another|some|just|only|over|between|sharp(?:ly)?|staggering|whopping|massive|steep|up|down|was|is|in"
    r"|for|the month|that month|de|del|des|il|un|um|von|im|rund|etwa|environ|\u043d\u0430)\b)*"
)
"""Words between a movement and its size."""
_CHANGED_BY: Final = re.compile(rf"\b{_MOVED}(?=[ ~]){_SIZE}$", re.IGNORECASE)
_COMPARED_BEHIND: Final = re.compile(
    r"\s*+(?:percentage )?(?:points?|pp)?\s*+(?:higher|lower|more|less|above|below|warmer|colder"
    r"|cooler|rise|increase|drop|decline|fall|jump)\b",
    re.IGNORECASE,
)
_COMPARED_TO: Final = re.compile(
    r"\b(?:(?:up|down|higher|lower|revised|rising|falling) from|compared (?:to|with)|against"
    r"|to (?:about |around |roughly )?~?[$€£]?\d[\d.,]*(?: ?[^\W\d]{1,9}| ?%)? from)"
    r"(?: (?:the|its|about|around|roughly|an?))*(?: (?:[\w-]+ ){1,3}of)? ?~?$",
    re.IGNORECASE,
)
_SPANS: Final[Mapping[str, str]] = {
    "daily": r"daily|intraday|one-day|single-day",
    "weekly": r"weekly|one-week",
    "monthly": r"monthly|one-month|month(?:'s)?",
    "quarterly": r"quarterly|quarter(?:'s)?",
    "annual": r"annual(?:ly|ized)?|yearly|full-year|calendar-year|12-month|twelve-month",
}
_ALL: Final = r"52-week|cumulative|all-time|long-run|lifetime"
_SPAN: Final = re.compile(
    "|".join(rf"\b(?P<{each}>{words})\b" for each, words in _SPANS.items()) + rf"|\b(?:{_ALL})\b",
    re.IGNORECASE,
)
_DIFFERENCE: Final = re.compile(
    r" ?(?:above|below|warmer|colder|cooler|higher|lower)\b(?! (?:zero|0)\b)", re.IGNORECASE
)
_FROM_PEAK: Final = re.compile(
    r" ?(?:from (?:its |the )?(?:peak|high|top)|peak[- ]to[- ]trough"
    r"|(?:for|on|over|in) the (?:year|quarter)|ytd\b)",
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
    """Return whether words say that a number is the change of a value: `increased by 0.9`."""
    return bool(_CHANGED_BY.search(before) or _COMPARED_BEHIND.match(behind))


def is_compared_to(before: str) -> bool:
    """Return whether words say that another value is compared with a number: `up from 3.5`."""
    return _COMPARED_TO.search(before) is not None


def is_difference(behind: str) -> bool:
    """Return whether words say that a number is a difference: `5.4 °C above the average`."""
    return _DIFFERENCE.match(behind) is not None


def is_of_another_span(before: str, behind: str, frequency: str, name: str) -> bool:
    """Return whether a number is about another span: an annual return, a fall from a peak."""
    if _FROM_PEAK.match(behind):
        return True
    own = {frequency, *(found.lastgroup for found in _SPAN.finditer(name))}
    spans = [found.lastgroup for found in _SPAN.finditer(before)]
    return bool(spans) and spans[-1] not in own


def is_index_level(before: str) -> bool:
    """Return whether words say that a number without a unit is the level of an index or a price."""
    return _OF_LEVEL.search(before) is not None


def has_unclear_sign(before: str, digits: str) -> bool:
    """Return whether a number with a decimal comma follows words that may mark it as a loss."""
    if not re.search(r"\d,\d{1,2}(?!\d)", digits):
        return False
    clause = 1 + max(before.removesuffix("\n").rfind(sign) for sign in ".:=;\n")
    worded = any(found.end() >= clause for found in _TWO_WORDS.finditer(before))
    return worded and _IS_LEVEL.search(before) is None


Measure = Literal["own", "bare", "other"]
"""Whether a number is in the unit of the series, without a unit, or in another unit."""
DIGITS: Final = (
    r"(?:\d{1,3}(?:_\d{3})+(?:[.,]\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}"
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!,?\d)"
    r"|\d+(?:[.,]\d+)?|\.\d+)(?:e[-+]?\d{1,3}(?!\w|\.\d))?"
)
"""The digits of a number, with separators of thousands and a power of ten: `1.234,5`, `2.1e4`."""
_SIGN: Final = "(?P<SIDEsign>(?:minus |negative |plus |positive )?[-+]?)"
_NUMBER: Final = (
    rf"{_SIGN}(?P<SIDEmoney>(?:(?:US|U\.S\. ?)?\$ ?|USD ?|[€£¥] ?)?)(?P<SIDEdigits>{DIGITS})"
)
_FOREIGN: Final = (
    r"(?P<SIDEbasis>bps?|basis[- ]points?)|°[CFK]?|degrees?"
    r"|[CFK]|celsius|fahrenheit|index points?|points?|pts|dollars?|usd|euros?|eur|gbp|yen|cents?"
    r"|thousand|million|billion|trillion|[kmb]n?|ppm|ppb|x|times|standard deviations?"
    r"|days?|weeks?|months?|years?|quarters?|out of|(?:in |as an? )?(?:decimal|fraction)"
)
_DOTS: Final = r"\u22c5\u2219\u2022\u2027\u30fb"
"""Dots in the middle of the line, which between digits may or may not be a decimal point."""
_STARTS: Final = (
    rf"(?:(?<![\w./\u2020^#+-])(?=[-+])"
    rf"|(?<![\w./\u2020^#+-])(?<!\d,)(?<!\d[{_DOTS}])(?<!\w-)(?![-+]))"
)
"""Positions at which a number may begin.

After a comma only if the comma separates columns; never after its own sign.
"""
_OTHER_SCALE: Final = r"(?! ?(?:celsius|fahrenheit|kelvin|[CFK])\b)"
_FALLS: Final = re.compile(
    rf"(?:{_FALL}{_SIZE}"
    r"|\bnegative (?:\w+ ){0,2}(?:return|growth|value|reading|figure)(?: (?:of|about|around))* ?~?"
    rf"|{_FALL}[^.,;:!?\n\d()]*, (?:roughly|about|around|approximately|nearly|by|some) ?~?"
    r"|\bnegative[:,](?: (?:at|about|around|approximately|roughly))* ?~?)$",
    re.IGNORECASE,
)
_LOSS_BEHIND: Final = re.compile(
    r" ?(?:loss|decline|drop|fall|decrease|below (?:zero|0)|lower|down|slump|plunge|gefallen"
    r"|gesunken|verloren)\b(?! (?:than|from))",
    re.IGNORECASE,
)
_FALL_IN_CLAUSE: Final = re.compile(
    rf"{_FALL}(?!(?:[^.,;:!?\n]*\b(?:to|from|was|is|were|at|stood|reached|hit|averaged)\b))"
    r"[^.,;:!?\n()=]*$|\bnegative\.\s+(?:about|around|approximately|roughly)?\s*~?$",
    re.IGNORECASE,
)
"""A clause that mentions a fall without saying that the number is its size."""
_FALL_TOLD: Final = re.compile(
    rf"{_FALL}(?! (?:to|from)\b)[^.;!?\n]*\breturn(?:s|ed|ing)?\b"
    r"(?: (?:of|was|about|around))* ?~?$",
    re.IGNORECASE,
)
_NEAR: Final = 80
"""The number of characters before a number that can determine its sign."""
_RIVALS: Final = re.compile(
    r"[\s,;/&|*-]*(?:(?:(?:later|then|subsequently) )?(?:revised|corrected) (?:(?:up|down) )?to\s"
    r"|(?:i think[,;]? )?(?:maybe|perhaps|possibly)\s"
    r"|(?:or|and|vs\.?|versus|oder|ou|\u6216)\s(?:maybe |perhaps |about |possibly |~)*)?",
    re.IGNORECASE,
)
_EQUALS: Final = re.compile(r" ?[=~] ?~?")
_SCALE_LABEL: Final = (
    r"(?:\bin |\((?:in )?)(?:us\$ ?|usd |\$ ?)?((?:thousand|million|billion|trillion)s?)\b"
)
_SCALE_BEFORE: Final = re.compile(rf"{_SCALE_LABEL}[^.;,\n\d]*$", re.IGNORECASE)
_SCALE_BEHIND: Final = re.compile(rf" ?(?=\(|in ){_SCALE_LABEL}", re.IGNORECASE)
"""The power of ten in the name of a column, or in brackets: `GDP (trillions): 21.35`."""
_REPEATED: Final = re.compile(
    r",? \(?(?:(?:or|i\.e\.,?|that is,?) )?(?:(?:about|around|approximately|roughly|nearly) )?~?",
    re.IGNORECASE,
)
"""Words between two forms of one number: `370 points, or about 12.5%`, `370 points (12.5%)`."""
_BEHIND_BARE: Final = re.compile(
    r"\W*$|[.,;:)!\"\n±]| ?\||\+/-| (?:(?:in|for|as|during|or|on)\b|\(|±)", re.IGNORECASE
)
_BETWEEN: Final = re.compile(r"\bbetween ?~?$", re.IGNORECASE)
_CHANGE: Final = re.compile(r"(?<!range )(?<!ranged )(?<!ranging )\bfrom ?~?$", re.IGNORECASE)


MOST_NUMBERS: Final = 250
"""The largest number of numbers read from one answer."""


class AnswerNumber(NamedTuple):
    """One number in a text, or the middle of a range."""

    value: float
    """The number in the unit of the series; as written if `measure` is not `own`."""
    measure: Measure
    start: int
    end: int
    aside: bool
    """Whether the number is not a candidate itself.

    It may be a margin of error (±0.5 %), part of a change (from 7.6 % to 7.8 %), or a number that
    another one is compared with.
    """
    unsure: bool = False
    """Whether the number is a question ("4.4 %?"), or its sign or its measure is uncertain."""
    rival: bool = False
    """Whether the number is one of several alternative answers."""


def find_numbers(text: str, unit: Unit) -> list[AnswerNumber]:
    """Return the numbers of a plain text with struck-out dates, in order.

    If there are more than `MOST_NUMBERS` numbers, the last ones count.
    """
    matches = list(_matches(text, unit))[-MOST_NUMBERS:]
    found = list[AnswerNumber]()
    for one in matches:
        number = _make_number(one, text, unit)
        if found and _EQUALS.fullmatch(text, found[-1].end, number.start):
            found[-1] = found[-1]._replace(aside=number.measure != "other")
        found.append(_share_fall(number, found[-1], text) if found else number)
    return found


def find_rivals(numbers: Sequence[AnswerNumber], text: str) -> set[AnswerNumber]:
    """Return the numbers that are alternative answers, each beside the other: `4.4 or 4.5`."""
    return {each for pair in pairwise(numbers) if _are_rivals(*pair, text) for each in pair}


class _NumberMatch(NamedTuple):
    """A match of the number pattern, and how its two numbers are read."""

    match: re.Match[str]
    is_range: bool
    """Whether the two numbers are the ends of a range; if not, only the first is read."""
    unsure: bool
    """Whether it is unclear what the number or the range measures."""


def _matches(text: str, unit: Unit) -> Iterator[_NumberMatch]:
    """Yield the matches; a number without a unit is unsure after a change in percent."""
    at, level = 0, False
    while match := _number_pattern(unit).search(text, at):
        link = _read_link(match, text, unit)
        is_range = link in ("range", "unclear")
        bare_level = level and _measure(match, "a", unit) == "bare"
        yield _NumberMatch(match, is_range, unsure=link == "unclear" or bare_level)
        level = link == "percent change"
        at = match.end() if is_range else match.end("first_end")


def _read_link(
    match: re.Match[str], text: str, unit: Unit
) -> Literal["range", "change", "percent change", "unclear"] | None:
    """Return how two numbers are related: as the ends of a range, or as a change and its result.

    The ends of a range have one measure: `2% to 3%`, `2 to 3%`. After a verb of movement, numbers
    of one measure may be either, so they are unclear: `rose 0.9% to 4.4%`, `fell 2% to 3%`; with
    two signs, they are a range: `a loss of -9% to -10%`.
    """
    start, link = match.start(), match["link"]
    if not link or (link == "and" and not _ends_in(_BETWEEN, text, start)):
        return None
    first, second = _measure(match, "a", unit), _measure(match, "b", unit)
    differ = first not in ("bare", second) and not match["amoney"]
    signed = match["asign"] and match["bsign"]
    if link == "to" and not signed and says_change(text[max(0, start - _NEAR) : start], ""):
        points = "point" in text[start : match.end("first_end")].lower()
        points = points or bool(match["abasis"] and not match["bbasis"])
        level = second == "bare" and first == "other" and not unit.basis_points
        if points or (differ and (second == "own" or level)):
            return "change"
        return "percent change" if differ and first == "own" and unit.basis_points else "unclear"
    return "unclear" if differ else "range"


def ends_plainly(text: str, end: int) -> bool:
    """Return whether a number without a unit ends as a value does, unlike the one in S&P 500."""
    return _BEHIND_BARE.match(text, end) is not None


def _are_rivals(first: AnswerNumber, second: AnswerNumber, text: str) -> bool:
    """Return whether two adjacent numbers are alternative answers: `4.4 or 4.5`, `4.4, 4.5`."""
    told = "other" not in (first.measure, second.measure) and not (first.aside or second.aside)
    values = {round(abs(one.value), 6) for one in (first, second)}
    same = first.value == second.value or max(values) == round(100 * min(values), 6)
    told = told and (second.measure != "bare" or ends_plainly(text, second.end))
    return told and not same and _RIVALS.fullmatch(text, first.end, second.start) is not None


def _share_fall(number: AnswerNumber, last: AnswerNumber, text: str) -> AnswerNumber:
    """Return a number with the sign of the fall that it repeats: `fell 370 points, or 12.5%`."""
    repeats = (
        not number.aside
        and _REPEATED.fullmatch(text, last.end, number.start)
        and text[number.start] not in "-+"
    )
    falls = repeats and last.value < 0 and _ends_in(_FALLS, text, last.start)
    return number._replace(value=-abs(number.value)) if falls else number


@cache
def _number_pattern(unit: Unit) -> re.Pattern[str]:
    scale = "|".join(sorted(SCALES, key=len, reverse=True)) if unit.scale else "(?!)"
    scaled = rf"{_NUMBER}(?:[ -]?(?P<SIDEscale>{scale})(?!\w))?"
    number = rf"{scaled}(?:[ -]?(?:of |de )?{_kinds(unit)})?"
    ends = [number.replace("SIDE", side) for side in "ab"]
    return re.compile(
        rf"(?:(?P<about>(?:±|\+/-) ?)|{_STARTS}){ends[0]}(?P<first_end>)"
        rf"(?:(?P<gap> ?)(?P<link>-|to|and|through) ?~?{ends[1]})?"
        rf"(?![\w\u2044†^]|/(?![A-Za-z]))(?!-(?:[A-Za-z]|\s*$)|[.,{_DOTS}]\d)",
        re.IGNORECASE,
    )


def _kinds(unit: Unit) -> str:
    """Return the pattern of text after a number, with longer forms before shorter ones."""
    own, percent = _forms(unit) or "(?!)", _forms(load_units()["percent"])
    other = f"(?P<SIDEother>{percent}|{_FOREIGN})"
    return rf"(?:(?:[x\u00d7] )?(?P<SIDEown>{own}){_OTHER_SCALE}|{other})(?!\w)"


def _forms(unit: Unit) -> str:
    named = (unit.symbol, unit.name, unit.points_name, *unit.forms)
    forms = {normalise_signs(form) for form in named} - {""}
    return "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))


def _make_number(found: _NumberMatch, text: str, unit: Unit) -> AnswerNumber:
    """Return the number or range of a match; if it is not a range, only its first number."""
    match, is_range, unsure = found
    start, end = match.start(), match.end() if is_range else match.end("first_end")
    side = "b" if is_range and (match["bscale"] or _measure(match, "b", unit) != "bare") else "a"
    named = "a" if match["ascale"] or match["aown"] or match["aother"] else side
    value = _read_sign(match, "a", text) * _factor(match, named, unit)
    if is_range:
        last = _read_sign(match, "b", text) * _factor(match, "b", unit)
        hyphen = match["gap"] + match["link"] == "-" and match["asign"] and not match["bsign"]
        last = -last if value < 0 and hyphen else last
        value = (value + last) / 2
    aside = bool(match["about"]) or (is_range and _ends_in(_CHANGE, text, start))
    aside = aside or is_compared_to(text[max(0, start - _NEAR) : start])
    unsure = unsure or _fall_unclear(match, text) or text[end : end + 1] == "?"
    measure = _measure(match, side, unit)
    return AnswerNumber(round(value, 10), measure, start, end, aside, unsure=unsure)


def _measure(match: re.Match[str], side: str, unit: Unit) -> Measure:
    """Return what a number is in; `21,354.1 dollars` are not clearly 21,354.1 billion."""
    money = match[f"{side}money"].lower()
    sign = "$" if "$" in money or "usd" in money else money.strip()
    if sign and sign not in unit.forms:
        return "other"
    if match[f"{side}own"] or sign:
        whole = match[f"{side}scale"] or _factor(match, side, unit) < 1 or unit.scale in (None, 1)
        return "own" if whole else "bare"
    if match[f"{side}basis"] and unit.basis_points:
        return "own"
    if match[f"{side}scale"] and not match[f"{side}other"] and _factor(match, side, unit) == 1:
        return "own"
    return "other" if match[f"{side}other"] else "bare"


def _factor(match: re.Match[str], side: str, unit: Unit) -> float:
    """Return the factor of a number's words: 1/100 for basis points, 1,000 for `2 trillion`."""
    if match[f"{side}basis"] and unit.basis_points and not match[f"{side}own"]:
        return 0.01
    if not unit.scale:
        return 1.0
    if scale := match[f"{side}scale"]:
        return SCALES[scale.lower()] / unit.scale
    text, start, end = match.string, match.start(), match.end("first_end")
    label = _SCALE_BEFORE.search(text, max(0, start - _NEAR), start)
    if label := label or _SCALE_BEHIND.match(text, end):
        return SCALES[label[1].lower()] / unit.scale
    named = match[f"{side}own"] or match[f"{side}money"]
    whole = float(plain_number(match[f"{side}digits"])) >= unit.scale
    return 1 / unit.scale if named and whole else 1.0


def _read_sign(match: re.Match[str], side: str, text: str) -> float:
    """Return a signed number; words that call it a loss or fall make it negative."""
    value = float(plain_number(match[f"{side}digits"]))
    sign = match[f"{side}sign"].lower()
    if sign:
        return -value if "-" in sign or "minus" in sign or "negative" in sign else value
    return -value if says_fall(text, match.start(), match.end()) else value


def says_fall(text: str, start: int, end: int) -> bool:
    """Return whether words call the number at a position the size of a fall: `a loss of 4`."""
    return _ends_in(_FALLS, text, start) or _LOSS_BEHIND.match(text, end) is not None


def _fall_unclear(match: re.Match[str], text: str) -> bool:
    """Return whether a fall is mentioned, but an unsigned number may not be its size."""
    if match["asign"] or _ends_in(_FALLS, text, match.start()):
        return False
    return _ends_in(_FALL_IN_CLAUSE, text, match.start()) or _ends_in(
        _FALL_TOLD, text, match.start()
    )


def _ends_in(pattern: re.Pattern[str], text: str, at: int) -> bool:
    """Return whether the words right before a position match."""
    return pattern.search(text, max(0, at - _NEAR), at) is not None


def plain_number(digits: str) -> str:
    """Return digits without thousands separators, with a point as the decimal separator."""
    digits, power, exponent = digits.lower().replace("_", "").partition("e")
    if "." in digits and digits.find(",") > digits.find("."):
        digits = digits.replace(".", "").replace(",", ".")
    elif digits.count(".") > 1:
        digits = digits.replace(".", "")
    else:
        grouped = re.fullmatch(r"[1-9]\d{0,2}(?:,\d{2,3})*,\d{3}(?:\.\d+)?", digits)
        digits = digits.replace(",", "" if grouped else ".")
    return digits + power + exponent
