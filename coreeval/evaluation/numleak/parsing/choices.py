"""Read from an answer which of two dates it endorses; naming both while thinking chooses none."""

import re
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.dates import mentions
from coreeval.evaluation.numleak.parsing.text import plain
from coreeval.evaluation.numleak.parsing.wording import cut_off, declines, stands
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Side, Status
from coreeval.schema import AnswerKind

_FIRST, _SECOND = "\u2460", "\u2461"
"""Stand for the two dates in a text."""
_MORE: Final = (
    r"(?:higher|highest|greater|greatest|larger|largest|better|bigger|stronger|more|top|warmer)"
)
_LESS: Final = r"(?:lower|lowest|smaller|smallest|worse|weaker|less|poorer|colder)"
_ONE: Final = rf"(?P<one>[{_FIRST}{_SECOND}])"
_GAP: Final = rf"[^.?!;\n{_FIRST}{_SECOND}]"
_VERB: Final = (
    r"(?:had|has|was|is|saw|showed|recorded|posted|delivered|experienced|produced|wins?|won)"
)
_HIGHER: Final = [
    rf"{_ONE}{_GAP}{{0,30}}\b{_VERB}\b(?:(?!\bnot\b){_GAP}){{0,40}}?\b{_MORE}\b",
    rf"^\W*{_ONE} \([^()\n]{{0,80}}\b(?:against|compared|versus|vs)\b",
    rf"{_ONE}\W*(?:>|(?:was|is) (?:the )?(?:1|answer|winner)\b|(?:beats?|exceeded|outperformed)\b)",
    rf"\b{_MORE}\b(?! than){_GAP}{{0,60}}\b(?:in|was|is|for|during|:)\W*{_ONE}",
    rf"^\W*{_ONE},? (?:and )?not\b",
    rf"\bnot [{_FIRST}{_SECOND}],? but (?:rather )?{_ONE}",
    rf"\b(?:answer|choice|pick|choose|chose|select|selected|go with|say|guess)\b"
    rf"(?: is| was| would be| for|:| in)*\W*{_ONE}",
]
_LOWER: Final = [
    rf"{_ONE}{_GAP}{{0,30}}\b{_VERB}\b(?:(?!\bnot\b){_GAP}){{0,40}}?\b{_LESS}\b",
    rf"{_ONE}\W*<",
    rf"\b{_LESS}\b(?! than){_GAP}{{0,60}}\b(?:in|was|is|for|during|:)\W*{_ONE}",
]
_ASKS: Final = re.compile(
    r"\b(?:which|whether|determine)\b[^.?!;\n]*$|\b(?:compare|comparing|between)\b[^.?!;,\n]*$",
    re.IGNORECASE,
)
_ORDINAL: Final = re.compile(
    r"^\W*(?:the )?(?:(?P<first>first|former|earlier)|(?P<second>second|latter|later))"
    r"(?: (?:1|date|month|quarter|year|day|week|option))?\W*$",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(r" \([-+~]?\d[^()\n]{0,30}\)")
"""A value in brackets behind its date."""
_LEADING: Final = re.compile(rf"^\W*{_ONE}\W*?(?:$|\n|\.\s)")
_HEADED: Final = re.compile(rf"^[^\w\n]*{_ONE}", re.MULTILINE)
_SIDES: Final[dict[str, Side]] = {_FIRST: "first", _SECOND: "second"}
_OTHER: Final[dict[Side, Side]] = {"first": "second", "second": "first"}
_Endorsed = set[Side]


class ReadChoice(NamedTuple):
    """Which of two dates an answer chooses."""

    side: Side | None
    """None unless `status` is parsed."""
    status: Status


def read_choice(
    response: str | None, *, first: Period, second: Period, kind: AnswerKind = "answered"
) -> ReadChoice:
    """Read which of two dates an answer endorses (rules: docs/numleak_parsing.md)."""
    if kind == "refused":
        return ReadChoice(None, "refused")
    text = _lettered(_VALUE.sub("", stands(plain(response or ""))), first, second)
    if not text and response and response.strip():
        return ReadChoice(None, "truncated")
    refuses = declines(text)
    endorsed = _endorsed(text) or (set() if refuses else _bare(text, first, second))
    if len(endorsed) == 1:
        return ReadChoice(endorsed.pop(), "parsed")
    if refuses:
        return ReadChoice(None, "refused")
    cut = kind == "truncated" or cut_off(text)
    return ReadChoice(None, "truncated" if cut else "unparsed")


def _lettered(text: str, first: Period, second: Period) -> str:
    """Return a plain text with a sign for each mention of one of the dates."""
    spans = [
        (*span, sign)
        for sign, period in ((_FIRST, first), (_SECOND, second))
        for span in mentions(text, period)
    ]
    for start, end, sign in sorted(spans, reverse=True):
        text = text[:start] + sign + text[end:]
    return text


def _endorsed(text: str) -> _Endorsed:
    """Return the dates that a text says had the higher value."""
    said = _named(_HIGHER, text)
    return said | {_OTHER[side] for side in _named(_LOWER, text)}


def _named(patterns: list[str], text: str) -> _Endorsed:
    return {
        _SIDES[found["one"]]
        for pattern in patterns
        for found in re.finditer(pattern, text, re.IGNORECASE)
        if not _ASKS.search(text, 0, found.start()) and text[found.end() :].lstrip()[:1] != "?"
    }


def _bare(text: str, first: Period, second: Period) -> _Endorsed:
    """Return the date that an answer consists of, or begins with as a line of its own."""
    if _LEADING.match(text):
        headed = {_SIDES[line["one"]] for line in _HEADED.finditer(text)}
        return headed if len(headed) == 1 else set()
    if not (ordinal := _ORDINAL.match(text)):
        return set()
    side: Side = "first" if ordinal["first"] else "second"
    by_time = ("earlier" in text.lower() or "later" in text.lower()) and second < first
    return {_OTHER[side] if by_time else side}
