"""What a model said to one question about a series: a line of a file of recorded answers."""

from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from coreeval.schema import AnswerKind, Value

Variant = Literal[
    "value", "pair", "forced_choice", "fictitious", "blind", "repeated", "description",
    "step_by_step", "phrasing", "contradiction", "continuation", "sentiment", "defended",
    "placebo",
]  # fmt: skip
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
"""What is asked: the value of a date; which of two dates was higher, freely or as one of two
strings; the value of a series that does not exist; that of the series without its proper name;
the value again and again at temperature 1; a description of a date that ends in its value; the
value after thinking step by step, in other words, or after a wrong one was stated; the next rows of
the publisher's file; how investors felt at a date, from -1 to 1; the value, of a model that was
told not to give it away; the value at an early date, of which little is written."""
FOR_SIGNALS: Final[frozenset[Variant]] = frozenset({"sentiment", "placebo"})
"""Asked to attribute signals alone (`leak`): none is counted among the values of an audit."""
FOR_DEFENCES: Final[frozenset[Variant]] = frozenset({"defended"})
"""Asked to try instructions (`defences`): no audit has them, they tell of something else than
memory."""
COUNTED: Final = frozenset(VARIANTS) - FOR_SIGNALS - FOR_DEFENCES
"""What the numbers of an audit rest on."""


class Token(Value):
    """One token of an answer, and what stood beside it."""

    text: str
    logprob: Annotated[float, Field(le=0)]
    """Natural logarithm of its probability."""
    top: tuple[tuple[str, float], ...] = ()
    """The most probable tokens at its place with theirs, it may be among them."""


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
    phrasing: str | None = None
    """Which other words of a question for the value were used."""
    stated: float | None = None
    """The wrong value that the question states as a fact, in the unit of the series."""
    shown: Annotated[int, Field(ge=1)] | None = None
    """Of a continuation: lines of the file that stand in the question."""
    wanted: Annotated[int, Field(ge=1)] | None = None
    """Lines that are asked for; the first holds the value of `date`."""
    defence: str | None = None
    """Which instructions the model was given against giving values away."""
    suffix: str | None = None
    """Which words at the end of the question try to undo them; None: it is plainly asked."""
    shown_date: str | None = None
    """Of a sentiment with figures stated: the date that stood in the question; `date` is the one
    that the figures lead up to. The two differ where dates are scrambled."""
    first_tokens: tuple[Token, ...] | None = None
    """The first tokens of the answer, where log-probabilities were asked for and came."""
    kind: AnswerKind = "answered"
    """`truncated`: cut off at its token limit; `refused`: by its provider, without words."""
