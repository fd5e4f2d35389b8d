"""The words of a question: unit, sign and digits in it, and an example that is not the answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.replies import Variant
from coreeval.evaluation.numleak.series import SeriesDefinition
from coreeval.prompts import Message, load_built_in_prompt

_SIGN: Final = {
    "signed": "with a minus sign if it is negative",
    "positive": "without a sign before it",
}
_ORDER: Final = {
    "signed": "; any positive value is higher than a negative one",
    "positive": "",
}
DATES: Final[dict[Frequency, str]] = {
    "daily": "days",
    "weekly": "weeks",
    "monthly": "months",
    "quarterly": "quarters",
    "annual": "years",
}
_EXAMPLES: Final = (12.3456789, 23.4567891, 34.5678912, 45.6789123, 56.7891234)


@dataclass(frozen=True)
class Wording:
    """How questions about one series are put.

    The words of all questions for a value are the same but for the date and the name: what differs
    in the answers to a fictitious name is not the wording's doing.
    """

    definition: SeriesDefinition
    example: str
    """A number in the form of an answer, equal to no value of the series."""

    @classmethod
    def of(cls, definition: SeriesDefinition, values: Iterable[float]) -> "Wording":
        """Return the wording whose example is none of the values, the same for all dates."""
        return cls(definition, _example(definition, list(values)))

    def value(
        self,
        date: Period,
        *,
        name: str | None = None,
        prompt: str = "series_value",
        stated: float | None = None,
    ) -> list[Message]:
        """Return the question for the value of a date.

        Args:
            date: The date.
            name: Stands in for the proper one.
            prompt: Whose words are used.
            stated: A wrong value that the question states as a fact.
        """
        return load_built_in_prompt(prompt).fill(
            **self._common(name),
            date=date.words,
            sign=_SIGN[self.definition.sign],
            decimals=_digits(self.definition.decimals),
            example=self.example,
            **({} if stated is None else {"stated": self._written(stated)}),
        )

    def continuation(self, lines: Sequence[str], *, wanted: int) -> list[Message]:
        """Return the question for the next lines of the publisher's file.

        Args:
            lines: Those that are shown, beneath the one that names the columns.
            wanted: How many lines are asked for.
        """
        return load_built_in_prompt("series_continuation").fill(
            quantity=self.definition.quantity,
            name=self.definition.name,
            shown=str(len(lines) - 1),
            lines="\n".join(lines),
            wanted="next line" if wanted == 1 else f"next {wanted} lines",
        )

    def _written(self, value: float) -> str:
        definition = self.definition
        symbol = definition.unit.symbol or definition.unit.name
        signed = "+" if definition.sign == "signed" else ""
        gap = "" if symbol[:1] in ("%", "\N{DEGREE SIGN}") else " "
        return f"{value:{signed}.{definition.decimals}f}{gap}{symbol}"

    def comparison(self, variant: Variant, first: Period, second: Period) -> list[Message]:
        """Return the question which of two dates has the higher value.

        Args:
            variant: `pair`, or `forced_choice`, which allows exactly the words of the two dates.
            first: The date that stands first.
            second: The other.
        """
        prompt = load_built_in_prompt(f"series_{variant}")
        return prompt.fill(
            **self._common(None),
            order=_ORDER[self.definition.sign],
            dates=DATES[self.definition.frequency],
            first=first.words,
            second=second.words,
        )

    def _common(self, name: str | None) -> dict[str, str]:
        return {
            "quantity": self.definition.quantity,
            "name": name or self.definition.name,
            "unit": self.definition.unit.name,
        }


def _digits(decimals: int) -> str:
    if not decimals:
        return "as a whole number"
    return f"to {decimals} decimal place{'s' if decimals > 1 else ''}"


def _example(definition: SeriesDefinition, values: list[float]) -> str:
    """Return the first example that no value comes near: within the widest tolerance is near."""
    near, sign = max(definition.tolerances), -1 if definition.sign == "signed" else 1
    scale = 1.0
    while True:
        for digits in _EXAMPLES:
            example = round(sign * scale * digits, definition.decimals)
            if all(abs(value - example) > near for value in values):
                return f"{example:.{definition.decimals}f}"
        scale *= 10
