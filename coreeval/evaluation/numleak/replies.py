"""What a model said to one question about a series: a line of a file of recorded answers."""

from typing import Final, Literal, get_args

from pydantic import Field

from coreeval.schema import AnswerKind, Value

Variant = Literal["value", "pair", "forced_choice", "fictitious", "blind", "repeated"]
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
"""What is asked: the value of a date; which of two dates was higher, freely or as one of two
strings; the value of a series that does not exist; that of the series without its proper name;
the value again and again at temperature 1."""


class Reply(Value):
    """One recorded answer (design: detection)."""

    model: str = Field(min_length=1)
    series: str = Field(min_length=1)
    """Id of the series; for a fictitious name that of the series which lent it the question."""
    date: str
    variant: Variant = "value"
    response: str | None
    """What the model said, unchanged; None where it said nothing."""
    truth: float | None = None
    """The published value; the series has it where it is absent."""
    other_date: str | None = None
    """The second date of a comparison."""
    name: str | None = None
    """The fictitious name that was asked about."""
    seed: int = 0
    """Of the drawing of dates that this one belongs to; several are pooled."""
    draw: int = 0
    """Number of a repeated answer, from 0."""
    kind: AnswerKind = "answered"
    """`truncated`: cut off at its token limit; `refused`: by its provider, without words."""
