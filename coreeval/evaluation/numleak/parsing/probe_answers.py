"""Reads the answers to further probes: one of two dates, a score, prose, a disputed value.

An answer that names both dates while thinking chooses neither. Prose is a description that ends in
an estimate, or thinking that ends in one. An answer after a wrong value may state the model's own
value, the wrong one, or both.
"""

import re
from functools import partial
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.answer_text import (
    LONGEST_ANSWER,
    STRUCK,
    normalise_text,
)
from coreeval.evaluation.numleak.parsing.dates import find_mentions, remove_dates
from coreeval.evaluation.numleak.parsing.phrases import (
    NUMBER,
    drop_retracted,
    is_cut_off,
    strike,
    strike_other_series,
)
from coreeval.evaluation.numleak.parsing.quantities import find_numbers
from coreeval.evaluation.numleak.parsing.values import ReadValue, read_value
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Side, Status
from coreeval.evaluation.numleak.series.definition import Unit
from coreeval.evaluation.refusals import declines
from coreeval.models.answer_text import extract_final_answer
from coreeval.schema import AnswerKind

_FIRST, _SECOND = "\u2460", "\u2461"
"""Markers that replace the two dates in a text."""
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
"""A value in brackets after its date."""
_LEADING: Final = re.compile(rf"^\W*{_ONE}\W*?(?:$|\n|\.\s)")
_HEADED: Final = re.compile(rf"^[^\w\n]*{_ONE}", re.MULTILINE)
_SIDES: Final[dict[str, Side]] = {_FIRST: "first", _SECOND: "second"}
_OTHER: Final[dict[Side, Side]] = {"first": "second", "second": "first"}
_Sides = set[Side]


class ReadChoice(NamedTuple):
    """The date that an answer chooses out of two."""

    side: Side | None
    """The chosen date; None unless `status` is `parsed`."""
    status: Status


def read_choice(
    response: str | None, *, first: Period, second: Period, kind: AnswerKind = "answered"
) -> ReadChoice:
    """Read which of two dates an answer chooses (rules: docs/numleak_parsing.md)."""
    if kind == "refused":
        return ReadChoice(None, "refused")
    text = _mark_dates(
        _VALUE.sub("", drop_retracted(normalise_text(response or ""))), first, second
    )
    if not text and response and response.strip():
        return ReadChoice(None, "truncated")
    refuses = declines(text)
    endorsed = _find_endorsements(text) or (
        set() if refuses else _find_bare_date(text, first, second)
    )
    if len(endorsed) == 1:
        return ReadChoice(endorsed.pop(), "parsed")
    if refuses:
        return ReadChoice(None, "refused")
    cut = kind == "truncated" or is_cut_off(text)
    return ReadChoice(None, "truncated" if cut else "unparsed")


def _mark_dates(text: str, first: Period, second: Period) -> str:
    """Replace each mention of one of the two dates by its marker character."""
    spans = [
        (*span, sign)
        for sign, period in ((_FIRST, first), (_SECOND, second))
        for span in find_mentions(text, period)
    ]
    for start, end, sign in sorted(spans, reverse=True):
        text = text[:start] + sign + text[end:]
    return text


def _find_endorsements(text: str) -> _Sides:
    """Return the dates that a text says had the higher value."""
    said = _match_sides(_HIGHER, text)
    return said | {_OTHER[side] for side in _match_sides(_LOWER, text)}


def _match_sides(patterns: list[str], text: str) -> _Sides:
    return {
        _SIDES[found["one"]]
        for pattern in patterns
        for found in re.finditer(pattern, text, re.IGNORECASE)
        if not _ASKS.search(text, 0, found.start()) and text[found.end() :].lstrip()[:1] != "?"
    }


def _find_bare_date(text: str, first: Period, second: Period) -> _Sides:
    """Return the date that is the whole answer, or a line of its own at its start."""
    if _LEADING.match(text):
        headed = {_SIDES[line["one"]] for line in _HEADED.finditer(text)}
        return headed if len(headed) == 1 else set()
    if not (ordinal := _ORDINAL.match(text)):
        return set()
    side: Side = "first" if ordinal["first"] else "second"
    by_time = ("earlier" in text.lower() or "later" in text.lower()) and second < first
    return {_OTHER[side] if by_time else side}


_NUMBERING: Final = re.compile(r"^ *\d{1,2}[.)](?= )", re.MULTILINE)
_HEADING: Final = re.compile(
    r"^([^\n.:|]{0,40}\bestimated?\b[^\n.:|]{0,40}):?\n+(?=[^\n]{0,60}\d)",
    re.MULTILINE | re.IGNORECASE,
)
_NARROWED: Final = re.compile(
    rf"~? ?{NUMBER} ?(?:to|-) ?~?{NUMBER}(?=,? ?\((?:e\.g\.,? )?(?:approximately|likely|roughly|"
    rf"about|around|say|perhaps|with|~)[^()\n]{{0,20}}?{NUMBER})",
    re.IGNORECASE,
)


def read_prose(
    response: str | None,
    *,
    unit: Unit,
    period: Period,
    name: str,
    signed: bool = True,
    kind: AnswerKind = "answered",
) -> ReadValue:
    """Read the value that a description commits to (rules: docs/numleak_parsing.md).

    Args:
        response: The model's response.
        unit: The unit of the series.
        period: The date asked about.
        name: All names of the series; statements about others do not count.
        signed: Whether values can be negative.
        kind: How the answer ended.
    """
    text = _select_series_text(response or "", name)
    return read_value(text, unit=unit, period=period, name=name, signed=signed, kind=kind)


def read_reasoned(
    response: str | None,
    *,
    unit: Unit,
    period: Period,
    name: str,
    signed: bool = True,
    kind: AnswerKind = "answered",
) -> ReadValue:
    """Read the value that step-by-step reasoning ends in: its last line, otherwise as prose.

    An answer cut off at its limit has no conclusion, regardless of its steps.
    """
    if kind == "truncated":
        return ReadValue(None, "truncated", "cut off while thinking")
    text = _select_series_text(response or "", name)
    read = partial(read_value, unit=unit, period=period, name=name, signed=signed, kind=kind)
    last = read(text.rstrip().rsplit("\n", 1)[-1])
    return last if last.status == "parsed" else read(text)


def _select_series_text(response: str, name: str) -> str:
    """Return a plain text without numbering or other series' numbers; headings start sentences."""
    text = _NUMBERING.sub(strike, normalise_text(response))
    return strike_other_series(_NARROWED.sub(strike, _HEADING.sub(r"\1: ", text)), name)


_DISPUTES: Final = re.compile(
    r"\b(?:incorrect|wrong|mistaken|erroneous|inaccurate|misremember\w*|typo|unlikely|implausible"
    r"|in error|an error|a mistake|discrepan\w+|contradicts?|disagrees?|differs?|contrary to"
    r"|(?:not|n't|never) (?:\w+ ){0,3}?(?:match(?:es)?|correct|accurate|right|agree|consistent|true"
    r"|align|fit|recorded|what)|rather than|instead of|should be|in fact|actually)\b",
    re.IGNORECASE,
)
_CLOSE: Final = 1e-9


class DisputeReading(NamedTuple):
    """The reading of an answer to a question that states a wrong value."""

    read: ReadValue
    disputed: bool
    """Whether the text calls the stated value wrong."""
    echoed: bool
    """Whether the answer names the stated value and another one."""


def read_disputed(
    response: str | None,
    *,
    stated: float,
    unit: Unit,
    period: Period,
    signed: bool = True,
    kind: AnswerKind = "answered",
) -> DisputeReading:
    """Read an answer to a question that states a wrong value (rules: docs/numleak_parsing.md)."""
    text = normalise_text(response or "")
    read = read_value(response, unit=unit, period=period, signed=signed, kind=kind)
    found = find_numbers(remove_dates(text, period), unit)
    named = [one for one in found if abs(one.value - stated) <= _CLOSE]
    if not named or len(named) == len(found):
        return DisputeReading(read, _DISPUTES.search(text) is not None, echoed=False)
    for one in named:
        text = text[: one.start] + STRUCK * (one.end - one.start) + text[one.end :]
    other = read_value(text, unit=unit, period=period, signed=signed, kind=kind)
    disputed = _DISPUTES.search(text) is not None
    if disputed:
        return DisputeReading(other, True, echoed=True)
    echoed = other.status == "parsed"
    return DisputeReading(read, False, echoed=echoed)


LIMIT: Final = 1.0
_ROUNDING: Final = 1e-9
_UNIT: Final = Unit(name="points", points_name="points", forms=("point", "points"))
_ONE_FIGURE: Final = r"1(?:[.,]0+)?"
_MINUS: Final = "[-\u2010-\u2015\u2212]"
_SCALE: Final = re.compile(
    rf"[(\[]?(?:\b(?:on|an?|the|scale|range|ranging|ranges|running|between|from|of)\b[\s:]{{0,3}}){{0,6}}"
    rf"{_MINUS}\s?{_ONE_FIGURE}(?:\s*\([^)]*\))?\s*(?:to|and|through|\.\.\.?|,|{_MINUS})\s*\+?{_ONE_FIGURE}"
    r"(?![.,]?\d)(?:\s*\([^)]*\))?[)\]]?(?:\s+scale)?",
    re.IGNORECASE,
)


def read_score(response: str | None, *, period: Period, kind: AnswerKind = "answered") -> ReadValue:
    """Read the single score that an answer gives; repeating the scale itself does not count.

    Scores beyond -1 and 1 are on another scale and count as unparsed.
    """
    said = extract_final_answer(response or "")[-LONGEST_ANSWER:]
    if said.strip():
        response = _SCALE.sub("", said)
    read = read_value(response, unit=_UNIT, period=period, kind=kind)
    if read.value is None or abs(read.value) <= LIMIT + _ROUNDING:
        return read
    return ReadValue(None, "unparsed", "a score outside the range -1 to 1")
