"""Read what is said of a value by one who was told a wrong one: his own, that one, or both."""

import re
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.parsing.dates import without_dates
from coreeval.evaluation.numleak.parsing.quantities import quantities
from coreeval.evaluation.numleak.parsing.text import plain
from coreeval.evaluation.numleak.parsing.values import ReadValue, read_value
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.units import Unit
from coreeval.schema import AnswerKind

_DISPUTES: Final = re.compile(
    r"\b(?:incorrect|wrong|mistaken|erroneous|inaccurate|misremember\w*|typo|unlikely|implausible"
    r"|in error|an error|a mistake|discrepan\w+|contradicts?|disagrees?|differs?|contrary to"
    r"|(?:not|n't|never) (?:\w+ ){0,3}?(?:match(?:es)?|correct|accurate|right|agree|consistent|true"
    r"|align|fit|recorded|what)|rather than|instead of|should be|in fact|actually)\b",
    re.IGNORECASE,
)
_CLOSE: Final = 1e-9
_STRUCK: Final = "\u2020"


class Disputed(NamedTuple):
    """What is said beside a value that was stated."""

    read: ReadValue
    disputed: bool
    """Whether the stated value is called wrong in words."""
    echoed: bool
    """Whether it is named beside another one."""


def read_disputed(
    response: str | None,
    *,
    stated: float,
    unit: Unit,
    period: Period,
    kind: AnswerKind = "answered",
) -> Disputed:
    """Read an answer to a question that states a wrong value (rules: docs/numleak_parsing.md)."""
    text = plain(response or "")
    read = read_value(response, unit=unit, period=period, kind=kind)
    found = quantities(without_dates(text, period), unit)
    named = [one for one in found if abs(one.value - stated) <= _CLOSE]
    if not named or len(named) == len(found):
        return Disputed(read, _DISPUTES.search(text) is not None, echoed=False)
    for one in named:
        text = text[: one.start] + _STRUCK * (one.end - one.start) + text[one.end :]
    other = read_value(text, unit=unit, period=period, kind=kind)
    disputed = _DISPUTES.search(text) is not None
    if disputed:
        return Disputed(other, True, echoed=True)
    echoed = other.status == "parsed"
    return Disputed(read, False, echoed=echoed)
