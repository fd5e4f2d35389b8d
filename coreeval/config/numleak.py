"""What NumLeak asks targets about dated series, in a run or by itself.

`LeakConfig` has the controls of what a model's own signal is attributed to: an early era and
scrambled dates. `DefencesConfig` says which instructions against giving values away are tried,
with what, and who judges what they cost.
"""

import calendar
import re
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from coreeval.config.models import ModelConfig
from coreeval.schema import Value

LEAST_CONTROL_DATES = 5
"""With fewer dates no interval is given (`statistics/intervals.py`)."""


class LeakConfig(Value):
    """What is asked besides the sentiment of each date (research: numleak, appendices M and Q)."""

    until: Annotated[int, Field(ge=1, le=9999)] | None = None
    """Last year of the early era; None: it is the first 15 % of the series."""
    early: Annotated[int, Field(ge=0)] = 30
    """Dates of it that are asked for value and sentiment, as many as in the paper; 0: none."""
    scrambled: Annotated[int, Field(ge=0)] = 30
    """Dates whose figures are stated under their own date and under another; 0: none."""

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        for name in ("early", "scrambled"):
            if 0 < getattr(self, name) < LEAST_CONTROL_DATES:
                raise ValueError(
                    f"{name} is 0 or at least {LEAST_CONTROL_DATES}: no interval comes of fewer"
                )
        return self


DEFENCES: Final = ("none", "soft", "strong", "retrieval_only")
"""The built-in ones (NumLeak, section 5): the control, a plea, a ban, a pointer to the source."""
SUFFIXES: Final = ("override", "research", "public", "confirm", "number_only", "reasoning")
"""The built-in endings of a question that try to undo them (NumLeak, appendix S)."""


class InstructionConfig(Value):
    """A defence or an ending of a question: a built-in one by its name, or one's own words."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    text: str | None = None
    file: str | None = None
    """A file of plain text, in the place of `text`."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_text(self) -> Self:
        if self.text is not None and self.file is not None:
            raise ValueError(f"{self.name!r} has a text and a file: leave one of them out")
        if self.text is not None and not self.text.strip():
            raise ValueError(f"the text of {self.name!r} is empty: it would be no instruction")
        return self

    @property
    def is_built_in(self) -> bool:
        """Return whether the instruction is built in, with no text of its own."""
        return self.text is None and self.file is None


def _list_built_in(names: Sequence[str]) -> tuple[InstructionConfig, ...]:
    return tuple(InstructionConfig(name=name) for name in names)


class DefencesConfig(Value):
    """Defences under attack, and what they cost in usefulness (research: numleak, section 5)."""

    names: Annotated[tuple[InstructionConfig, ...], Field(min_length=1)] = _list_built_in(DEFENCES)
    suffixes: tuple[InstructionConfig, ...] = _list_built_in(SUFFIXES)
    """None at all: only the plain question is asked."""
    dates: Annotated[int, Field(ge=1)] = 40
    """Dates of the first drawing that each defence is tried on: as many as NumLeak's."""
    utility: bool | None = None
    """Whether ordinary questions are asked and judged under each defence; None: if there is a
    judge."""
    questions: str | None = None
    """File of one's own ordinary questions."""
    judge: ModelConfig | None = None
    """Scores answers to them; `offline` compares words by rule."""
    second_judge: ModelConfig | None = None
    """Scores some of them again."""
    rescored: Annotated[int, Field(ge=2)] = 50
    """How many answers the second judge scores: as many as NumLeak's."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        _check_instruction_names("names", self.names, DEFENCES)
        _check_instruction_names("suffixes", self.suffixes, SUFFIXES)
        return self

    @model_validator(mode="after")
    def _check_judges(self) -> Self:
        if self.utility and self.judge is None:
            raise ValueError("utility needs a judge: name a model, or offline")
        if self.second_judge and self.judge is None:
            raise ValueError("a second_judge needs a judge before it")
        for judge in (self.judge, self.second_judge):
            if judge and judge.is_rule_based and judge.model != "offline":
                raise ValueError(f"{judge.model!r} is no judge: name a model, or offline")
        if self.judge and self.second_judge and self.judge.model == self.second_judge.model:
            raise ValueError(f"both judges are {self.judge.model}: scores are kept by that name")
        return self

    @property
    def measures_utility(self) -> bool:
        """Return whether ordinary questions are asked."""
        return self.judge is not None and self.utility is not False

    @property
    def judges(self) -> tuple[ModelConfig, ...]:
        """Return the models that score answers; empty if no ordinary questions are asked."""
        both = (self.judge, self.second_judge) if self.measures_utility else ()
        return tuple(judge for judge in both if judge)


def _check_instruction_names(
    key: str, given: Sequence[InstructionConfig], built_in: Sequence[str]
) -> None:
    names = [one.name for one in given]
    for one in given:
        if names.count(one.name) > 1:
            raise ValueError(f"{key} has {one.name!r} more than once")
        if one.is_built_in and one.name not in built_in:
            raise ValueError(
                f"{key}: there is no built-in {one.name!r}; there are {', '.join(built_in)}; one's "
                "own has a text or a file"
            )
        if not one.is_built_in and one.name in built_in:
            raise ValueError(f"{key}: {one.name!r} is built in: give your own another name")


Probe = Literal[
    "value", "pair", "forced_choice", "fictitious", "blind", "recent", "siblings", "repeated",
    "description", "step_by_step", "phrasing", "contradiction", "continuation", "entropy",
    "sentiment",
]  # fmt: skip
PROBES: Final[tuple[Probe, ...]] = get_args(Probe)
DEFAULT_PROBES: Final = PROBES[: PROBES.index("description")]
"""What an audit asks that is not told otherwise: what its verdict rests on."""
_PERIOD_END = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-\d{2})?)?")


def _check_period_end(said: object) -> object:
    """Raise an error for anything but a year, month or day.

    YAML reads years as numbers and days as dates.
    """
    text = str(said)
    if said is None:
        return None
    if not _PERIOD_END.fullmatch(text):
        raise ValueError(f"{text!r} is no year, month or day, such as 2015, 2015-03 or 2015-03-31")
    return date.fromisoformat(text).isoformat() if len(text) > len("2015-03") else text


PeriodEnd = Annotated[str | None, BeforeValidator(_check_period_end)]


class PeriodConfig(Value):
    """The stretch of time whose values are asked for, such as that of a back-test."""

    start: PeriodEnd = None
    """Year, month or day, itself included; None: as early as the series goes."""
    end: PeriodEnd = None
    """Likewise, included to its last day."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.first_day > self.last_day:
            raise ValueError(f"it runs backwards: from {self.start} to {self.end}")
        return self

    @property
    def first_day(self) -> date:
        """Return the first day of the period."""
        if self.start is None:
            return date.min
        return date.fromisoformat(self.start + "-01-01"[len(self.start) - len("2015") :])

    @property
    def last_day(self) -> date:
        """Return the last day of the period."""
        if self.end is None:
            return date.max
        year, month, day = [*map(int, self.end.split("-")), 0, 0][:3]
        month = month or 12
        return date(year, month, day or calendar.monthrange(year, month)[1])

    def __contains__(self, day: date) -> bool:
        """Return whether a day is in the period."""
        return self.first_day <= day <= self.last_day


class NumleakConfig(Value):
    """Whether a target remembers series: which, and what is asked (research: numleak, app. O)."""

    series: Annotated[
        tuple[str, ...],
        BeforeValidator(lambda said: (said,) if isinstance(said, str) else said),
        Field(min_length=1),
    ]
    """Built-in ids, names of families, or paths of YAML files."""
    files: dict[str, str] = {}
    """The publisher's file on this machine, by the id of its series: nothing is fetched for it."""
    probes: tuple[Probe, ...] = DEFAULT_PROBES
    """`recent`: the last values published after the target's cutoff; `siblings`: the other series
    of the family; the others are what an answer is recorded as."""
    dates: Annotated[int, Field(ge=2)] = 40
    """Of each series in each drawing."""
    seeds: Annotated[int, Field(ge=1)] = 1
    """Drawings of so many dates; they have none in common and are pooled."""
    pairs: Annotated[int, Field(ge=1)] = 60
    """Pairs of the dates of a drawing that are compared."""
    fictitious: Annotated[int, Field(ge=1)] = 30
    """Questions about series that do not exist, in each drawing."""
    recent: Annotated[int, Field(ge=1)] = 14
    draws: Annotated[int, Field(ge=2)] = 2
    """Repeated answers to the question for one value."""
    continuations: Annotated[int, Field(ge=1)] = 10
    """Stretches of the publisher's file that are to be continued, in each drawing."""
    period: PeriodConfig = PeriodConfig()
    """Where dates are drawn from; `recent` ones lie where they lie."""
    leak: LeakConfig = LeakConfig()
    """Controls of the sentiment, if that is asked."""
    signals: dict[str, str] = {}
    """CSV files with signals of one's own, by name, to be attributed beside it."""
    defences: DefencesConfig | None = None
    """What instructions keep back, and what they cost. Off where it is absent."""

    @model_validator(mode="after")
    def _require_value_probe(self) -> Self:
        if "value" not in self.probes:
            raise ValueError("probes must have 'value': all others are held against it")
        return self
