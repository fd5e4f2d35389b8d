"""Read a value from prose: a description that ends in an estimate, or thinking that ends in one."""

import re
from typing import Final

from coreeval.evaluation.numleak.parsing.others import NUMBER, strike, without_others
from coreeval.evaluation.numleak.parsing.text import plain
from coreeval.evaluation.numleak.parsing.values import ReadValue, read_value
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.units import Unit
from coreeval.schema import AnswerKind

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
_AS_EXAMPLE: Final = re.compile(r"\((?:e\.g\.,? )(?=roughly|about|around|approximately)")


def read_prose(
    response: str | None,
    *,
    unit: Unit,
    period: Period,
    name: str,
    kind: AnswerKind = "answered",
) -> ReadValue:
    """Read the value that a description commits to (rules: docs/numleak_parsing.md).

    Args:
        response: What was said.
        unit: Of the series.
        period: The date asked about.
        name: All that the series is called: what is said of others is not of it.
        kind: How the answer ended.
    """
    return read_value(
        _of_the_series(response or "", name), unit=unit, period=period, name=name, kind=kind
    )


def read_reasoned(
    response: str | None,
    *,
    unit: Unit,
    period: Period,
    name: str,
    kind: AnswerKind = "answered",
) -> ReadValue:
    """Read the value that thinking step by step ends in: its last line, else as prose.

    One cut off at its limit has come to no end, whatever it says on the way.
    """
    if kind == "truncated":
        return ReadValue(None, "truncated", "cut off while thinking")
    text = _of_the_series(response or "", name)
    if kind == "answered":
        last = read_value(text.rstrip().rsplit("\n", 1)[-1], unit=unit, period=period, name=name)
        if last.status == "parsed":
            return last
    return read_value(text, unit=unit, period=period, name=name, kind=kind)


def _of_the_series(response: str, name: str) -> str:
    """Return a plain text without numbering and numbers of other series, headings as openings."""
    text = _NUMBERING.sub(strike, plain(response))
    text = _AS_EXAMPLE.sub("(", text)
    return without_others(_NARROWED.sub(strike, _HEADING.sub(r"\1: ", text)), name)
