"""Read a value from prose: a description that ends in an estimate, or thinking that ends in one."""

import re
from typing import Final

from coreeval.evaluation.numleak.parsing.text import plain
from coreeval.evaluation.numleak.parsing.values import ReadValue, read_value
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.units import Unit
from coreeval.schema import AnswerKind

_STRUCK: Final = "\u2020"
_NUMBERING: Final = re.compile(r"^ *\d{1,2}[.)](?= )", re.MULTILINE)
_HEADING: Final = re.compile(
    r"^([^\n.:|]{0,40}\bestimated?\b[^\n.:|]{0,40}):?\n+(?=[^\n]{0,60}\d)",
    re.MULTILINE | re.IGNORECASE,
)
_WORDS: Final = r"(?:[^.,;\n()|]|[.,](?=\d))"
_OTHERS: Final = (
    "risk-free", "fed funds", "federal funds", "s&p", "dow jones", "nasdaq", "russell", "vix",
    "djia", "ftse", "nikkei", "treasury", "mortgage rate", "interest rates", "volatility",
)  # fmt: skip
"""What else a description of a market tells numbers of; those of them that the series' own name has
are not among them."""
_NUMBER: Final = r"[-+]?\d{1,9}(?:\.\d{1,9})? ?%?"
_NARROWED: Final = re.compile(
    rf"~? ?{_NUMBER} ?(?:to|-) ?~?{_NUMBER}(?=,? ?\((?:e\.g\.,? )?(?:approximately|likely|roughly|"
    rf"about|around|say|perhaps|with|~)[^()\n]{{0,20}}?{_NUMBER})",
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
        name: Of the series: what is said of others is not of it.
        kind: How the answer ended.
    """
    return read_value(_of_the_series(response or "", name), unit=unit, period=period, kind=kind)


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
        last = read_value(text.rstrip().rsplit("\n", 1)[-1], unit=unit, period=period)
        if last.status == "parsed":
            return last
    return read_value(text, unit=unit, period=period, kind=kind)


def _of_the_series(response: str, name: str) -> str:
    """Return a plain text without numbering and numbers of other series, headings as openings."""
    text = _NUMBERING.sub(_strike, plain(response))
    text = _AS_EXAMPLE.sub("(", text)
    text = _NARROWED.sub(_strike, _HEADING.sub(r"\1: ", text))
    others = [re.escape(one) for one in _OTHERS if one not in name.lower()]
    about = rf"(?:\b(?:{'|'.join(others)})){_WORDS}{{0,160}}(?:\(~?{_NUMBER}\))?"
    return re.sub(about, _without_digits, text, flags=re.IGNORECASE)


def _strike(found: re.Match[str]) -> str:
    return _STRUCK * len(found[0])


def _without_digits(found: re.Match[str]) -> str:
    return re.sub(r"[-+]?\d[\d.,]*(?: ?%)?", _strike, found[0])
