"""Read a score from -1 to 1 from an answer, by the rules for values."""

import re
from typing import Final

from coreeval.evaluation.numleak.parsing.text import LONGEST
from coreeval.evaluation.numleak.parsing.values import ReadValue, read_value
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.units import Unit
from coreeval.models.answer_text import extract_final_answer
from coreeval.schema import AnswerKind

LIMIT: Final = 1.0
_ROUNDING: Final = 1e-9
_UNIT: Final = Unit(name="points", points_name="points", forms=("point", "points"))
_ONE: Final = r"1(?:[.,]0+)?"
_MINUS: Final = "[-\u2010-\u2015\u2212]"
_SCALE: Final = re.compile(
    rf"[(\[]?(?:\b(?:on|an?|the|scale|range|ranging|ranges|running|between|from|of)\b[\s:]{{0,3}}){{0,6}}"
    rf"{_MINUS}\s?{_ONE}(?:\s*\([^)]*\))?\s*(?:to|and|through|\.\.\.?|,|{_MINUS})\s*\+?{_ONE}"
    r"(?![.,]?\d)(?:\s*\([^)]*\))?[)\]]?(?:\s+scale)?",
    re.IGNORECASE,
)


def read_score(response: str | None, *, period: Period, kind: AnswerKind = "answered") -> ReadValue:
    """Read the one score that an answer gives; the scale itself, repeated, is none.

    What lies beyond -1 and 1 is on another scale, and unparsed.
    """
    said = extract_final_answer(response or "")[-LONGEST:]
    if said.strip():
        response = _SCALE.sub("", said)
    read = read_value(response, unit=_UNIT, period=period, kind=kind)
    if read.value is None or abs(read.value) <= LIMIT + _ROUNDING:
        return read
    return ReadValue(None, "unparsed", "a score beyond -1 and 1")
