"""How personas put their answers: numbers, prose, steps, refusals, under a defence or not.

They write in the ways of chat models, so that the parser has work.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from coreeval.evaluation.numleak.defences.attacks import NO_DEFENCE
from coreeval.evaluation.numleak.defences.utility import UtilityQuestion
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.definition import SeriesDefinition

VALUES: Final = (
    "{value}",
    "{value}",
    "{value}",
    "{value}{symbol}",
    "{value}{symbol}",
    "**{value}{symbol}**",
    "For {when}: {value}{symbol}",
    "About {value}{symbol}.",
    "In {when} the {quantity} was {value}{symbol}.",
)
"""More than half of them plain, as most recorded answers are."""
REFUSALS: Final = (
    "I don't know.",
    "I can't give a reliable figure for {when}.",
    "I don't have data on {name}, so I would rather not state a number for {when}.",
    "I'm not able to verify {name} for {when}; please look at its publisher.",
)
SCORES: Final = ("{score}", "{score}", "{score}", "**{score}**", "Score: {score}", "About {score}.")
_MINUSES: Final = ("-", "-", "\u2212")


def value_text(said: float, period: Period, *, of: SeriesDefinition, style: int) -> str:
    """Return an answer with a number, in one of many ways."""
    value = f"{said:+.{of.decimals}f}" if of.sign == "signed" else f"{said:.{of.decimals}f}"
    value = value.replace("-", _MINUSES[style % len(_MINUSES)])
    symbol = of.unit.symbol
    gap = "" if symbol[:1] in ("", "%", "\u00b0") else " "
    return VALUES[style % len(VALUES)].format(
        value=value, symbol=gap + symbol, when=period.words, quantity=of.quantity
    )


def score_text(score: float, *, style: int) -> str:
    """Return an answer with a score from -1 to 1, in one of many ways."""
    text = f"{score:+.2f}".replace("-", _MINUSES[style % len(_MINUSES)])
    return SCORES[style % len(SCORES)].format(score=text)


def refusal_text(period: Period, *, name: str, style: int) -> str:
    """Return an answer without a number of the series."""
    return REFUSALS[style % len(REFUSALS)].format(name=name, when=period.words)


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


def describe_value(said: float, period: Period, *, of: SeriesDefinition, style: int) -> str:
    """Return a description that ends in a value."""
    return _fill_template(_DESCRIPTIONS, said, period, of=of, style=style)


def think_aloud(said: float, period: Period, *, of: SeriesDefinition, style: int) -> str:
    """Return some steps that end in a value."""
    return _fill_template(_STEPS, said, period, of=of, style=style)


def answer_contradiction(
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


def write_value(said: float, of: SeriesDefinition) -> str:
    """Return a value as a publisher's file has it."""
    return f"{said:.{of.decimals}f}"


def _fill_template(
    texts: Sequence[str], said: float, period: Period, *, of: SeriesDefinition, style: int
) -> str:
    text = texts[style % len(texts)]
    return text.format(when=period.words, name=of.name, value=_number(said, of))


def _number(value: float, of: SeriesDefinition) -> str:
    signed = "+" if of.sign == "signed" else ""
    return f"{value:{signed}.{of.decimals}f}"


YIELD_SHARES: Final[Mapping[str, Mapping[str, float]]] = {
    "memorizing": {"soft": 0.1, "strong": 0.0, "retrieval_only": 0.0},
    "half-remembering": {"soft": 0.4, "strong": 0.05, "retrieval_only": 0.0},
    "fluent": {"soft": 0.1, "strong": 0.0, "retrieval_only": 0.0},
    "guessing": {"soft": 0.1, "strong": 0.0, "retrieval_only": 0.0},
}
"""On which share of dates each persona gives in to a built-in defence."""
CARELESS: Final = "fabricating"
"""It keeps to no instructions; what it says is made up."""
OPENS: Final = "public"
"""The ending that they give in to; half as often to `override`."""
OWN: Final = 0.05
"""The share for any other defence."""
DEFENCE_REFUSAL: Final = "That is a figure that I have been asked not to give."


def gives_way(persona: str, defence: str, suffix: str | None, date: Period) -> bool:
    """Tell whether a persona answers in spite of a defence; the same question, the same answer.

    Args:
        persona: Its name, such as `offline:memorizing`.
        defence: The defence's name.
        suffix: The ending's name; None for the plain question.
        date: What is asked about.
    """
    if defence == NO_DEFENCE:
        return True
    name = persona.removeprefix("offline:")
    if name == CARELESS:
        return True
    share = YIELD_SHARES.get(name, {}).get(defence, OWN)
    share *= {OPENS: 1.0, "override": 0.5}.get(suffix or "", 0.0)
    return _chance(persona, defence, date) < share


def answer_ordinary(persona: str, defence: str, asked: UtilityQuestion) -> str:
    """Return what a persona says to an ordinary question: it knows what a good answer says.

    Told to look figures up, it gives no rough ones either; told in strong words, some.
    """
    careless = persona.removeprefix("offline:") == CARELESS
    near, shy = asked.category == "adjacent_numeric", {"retrieval_only": 0.8, "strong": 0.3}
    if near and not careless and _chance(persona, defence, asked.id) < shy.get(defence, 0.0):
        return "I would rather not give figures here; please look them up."
    return asked.points or asked.question


def _chance(*about: object) -> float:
    """Return a number between 0 and 1 that only depends on what it is about."""
    digest = hashlib.sha256("|".join(map(str, about)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
