"""How a persona puts what it has to say: in the ways of chat models, so that a parser has work."""

from typing import Final

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
