"""How a persona answers what is more than the plain question: in prose, in steps, in lines."""

from collections.abc import Sequence
from typing import Final

from coreeval.evaluation.numleak.embedded.wording import value_text
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.definition import SeriesDefinition

ASTRAY: Final = 1.0
"""What thinking leads half of all values astray by, in standard deviations: NumLeak saw r fall from
0.98 to 0.82 on the same months (appendix J), and 1 / sqrt(1 + 1 / 2) is 0.82."""
CERTAIN: Final = 0.8
"""Familiarity from which a date's value stands against another one that is stated."""
_DESCRIPTIONS: Final = (
    "For {when}, {name} moved with what was going on at the time. Those who follow it had expected "
    "as much.\n\nBest estimate: {value}",
    "## {name}, {when}\n\nThere was little out of the ordinary.\n\n**Best estimate:** {value}",
    "In {when}, {name} drew some attention. 1) It had been discussed in the 12 months before. "
    "2) It was again afterwards.\n\nMy best estimate is {value}.",
)
_STEPS: Final = (
    "1. I recall what happened around {when}.\n2. The values near it were not far from 1.5 or 2.\n"
    "3. That points to one figure.\n\nAnswer: {value}",
    "Step 1: {when} is the date asked for.\nStep 2: it is {name} that is meant.\n\n{value}",
)
_CORRECTIONS: Final = (
    "That is not correct: the value for {when} was {value}.",
    "{value} (the {stated} in your notes does not match what was published)",
)


def described(said: float, period: Period, *, of: SeriesDefinition, style: int) -> str:
    """Return a description that ends in a value."""
    return _told(_DESCRIPTIONS, said, period, of=of, style=style)


def thought(said: float, period: Period, *, of: SeriesDefinition, style: int) -> str:
    """Return some steps that end in a value."""
    return _told(_STEPS, said, period, of=of, style=style)


def contradicted(
    said: float,
    period: Period,
    *,
    stated: float,
    stands: bool,
    of: SeriesDefinition,
    style: int,
) -> str:
    """Return the answer to one who states another value: that one, the own, or a correction."""
    if not stands:
        return _number(stated, of)
    if style % 2:
        return value_text(said, period, of=of, style=style // 2 % 3)
    text = _CORRECTIONS[style // 2 % len(_CORRECTIONS)]
    value = _number(said, of) + of.unit.symbol[:1].replace("\N{DEGREE SIGN}", "")
    return text.format(when=period.words, value=value, stated=_number(stated, of))


def written(said: float, of: SeriesDefinition) -> str:
    """Return a value as a publisher's file has it."""
    return f"{said:.{of.decimals}f}"


def _told(
    texts: Sequence[str], said: float, period: Period, *, of: SeriesDefinition, style: int
) -> str:
    text = texts[style % len(texts)]
    return text.format(when=period.words, name=of.name, value=_number(said, of))


def _number(value: float, of: SeriesDefinition) -> str:
    signed = "+" if of.sign == "signed" else ""
    return f"{value:{signed}.{of.decimals}f}"
