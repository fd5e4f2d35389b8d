"""The settings of NumLeak's questions about dated series, in a run or standalone.

`LeakConfig` has the controls for attributing a model's own signal: an early era and scrambled
dates. `DefencesConfig` sets the instructions against giving values away that are tried, the attacks
on them, and the judges of their cost.
"""

import calendar
import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from coreeval.config.base import MOST, Count, CountOrZero, Section
from coreeval.config.models import ModelConfig

LEAST_CONTROL_DATES = 5
"""The fewest dates for which an interval is given (`statistics/intervals.py`)."""


class LeakConfig(Section):
    """The questions in addition to the sentiment of each date (research: numleak, app. M and Q)."""

    until: Annotated[int, Field(ge=1, le=9999)] | None = None
    """The last year of the early era. None: the early era is the first 15 % of the series."""
    early: CountOrZero = 30
    """The number of early dates for which the target is asked for the value and the sentiment,
    regardless of `period`: 0, or at least 5."""
    scrambled: CountOrZero = 30
    """The number of dates whose figures are shown under their own dates and under other dates: 0,
    or at least 5."""

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        for name in ("early", "scrambled"):
            if 0 < getattr(self, name) < LEAST_CONTROL_DATES:
                raise ValueError(
                    f"{name} must be 0 or at least {LEAST_CONTROL_DATES}: fewer dates give no "
                    "interval"
                )
        return self


DEFENCES: Final = ("none", "soft", "strong", "retrieval_only")
"""The built-in defences (NumLeak, section 5): control, request, ban, and pointer to the source."""
SUFFIXES: Final = ("override", "research", "public", "confirm", "number_only", "reasoning")
"""The built-in suffixes of a question that try to override defences (NumLeak, appendix S)."""


class InstructionConfig(Section):
    """A defence or suffix of a question: a built-in one by name, or custom text."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """A built-in name, or a name of your own: letters, digits, `.`, `_` and `-`."""
    text: str | None = None
    """The text of your own instruction."""
    file: str | None = None
    """A file of plain text, instead of `text`."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_text(self) -> Self:
        if self.text is not None and self.file is not None:
            raise ValueError(f"{self.name!r} has both a text and a file: remove one")
        if self.text is not None and not self.text.strip():
            raise ValueError(f"the text of {self.name!r} is empty, so it is not an instruction")
        return self

    @property
    def is_built_in(self) -> bool:
        """Return whether the instruction is built in, with no text of its own."""
        return self.text is None and self.file is None


def _list_built_in(names: Sequence[str]) -> tuple[InstructionConfig, ...]:
    return tuple(InstructionConfig(name=name) for name in names)


class DefencesConfig(Section):
    """Defences under attack, and their cost in usefulness (research: numleak, section 5)."""

    names: Annotated[tuple[InstructionConfig, ...], Field(min_length=1)] = _list_built_in(DEFENCES)
    """Built-in defences by name, and your own: `{name: house, file: house.md}`. `none` is the
    control."""
    suffixes: tuple[InstructionConfig, ...] = _list_built_in(SUFFIXES)
    """Endings of the question that try to override a defence, built-in ones by name and your own.
    Empty: only the plain question is asked."""
    dates: Count = 40
    """The number of dates from the first draw on which each defence is tried."""
    utility: bool | None = None
    """Whether ordinary questions are asked and judged under each defence. None: they are asked if
    there is a judge."""
    questions: str | None = None
    """A YAML file of your own ordinary questions: a list of `{id, category, question, points}`.
    None: the built-in questions."""
    judge: ModelConfig | None = None
    """The model that scores answers to ordinary questions on a scale from 0 to 4. `offline` is
    a rule that compares words, so you can try this without a key."""
    second_judge: ModelConfig | None = None
    """The model that scores some of the answers again."""
    rescored: Annotated[int, Field(ge=2, le=MOST)] = 50
    """The number of answers that the second judge scores."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        _check_instruction_names("names", self.names, DEFENCES)
        _check_instruction_names("suffixes", self.suffixes, SUFFIXES)
        return self

    @model_validator(mode="after")
    def _check_judges(self) -> Self:
        if self.utility and self.judge is None:
            raise ValueError("utility needs a judge: set judge to a model or to offline")
        if self.second_judge and self.judge is None:
            raise ValueError("second_judge needs a first judge: set judge too")
        for judge in (self.judge, self.second_judge):
            if judge and judge.is_rule_based and judge.model != "offline":
                raise ValueError(f"{judge.model!r} cannot be a judge: name a model, or offline")
        if self.judge and self.second_judge and self.judge.model == self.second_judge.model:
            raise ValueError(
                f"both judges are {self.judge.model}, but scores are stored under the name of the "
                "judge"
            )
        return self

    def resolve(self, at: Callable[[str], str]) -> Self:
        """Return them with absolute paths of texts, questions and judges."""
        names, suffixes = (
            tuple(
                one.model_copy(update={"file": at(one.file)}) if one.file else one for one in each
            )
            for each in (self.names, self.suffixes)
        )
        changes: dict[str, object] = {"names": names, "suffixes": suffixes}
        if self.questions:
            changes["questions"] = at(self.questions)
        judges = {"judge": self.judge, "second_judge": self.second_judge}
        changes |= {role: model.resolve(at) for role, model in judges.items() if model}
        return self.model_copy(update=changes)

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
            raise ValueError(f"{key} contains {one.name!r} more than once")
        if one.is_built_in and one.name not in built_in:
            raise ValueError(
                f"{key}: there is no built-in {one.name!r}; the built-in ones are "
                f"{', '.join(built_in)}; your own instruction needs a text or a file"
            )
        if not one.is_built_in and one.name in built_in:
            raise ValueError(f"{key}: {one.name!r} is built in: choose another name")


Probe = Literal[
    "value", "pair", "forced_choice", "fictitious", "blind", "recent", "siblings", "repeated",
    "description", "step_by_step", "phrasing", "contradiction", "continuation", "entropy",
    "sentiment",
]  # fmt: skip
PROBES: Final[tuple[Probe, ...]] = get_args(Probe)
DEFAULT_PROBES: Final = PROBES[: PROBES.index("description")]
"""The default probes of an audit, on which its verdict is based."""
_PERIOD_END = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-\d{2})?)?")


def _check_period_end(said: object) -> object:
    """Raise an error for anything but a year, month or day.

    YAML reads years as numbers and days as dates.
    """
    text = str(said)
    if said is None:
        return None
    if not _PERIOD_END.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a year, month or day such as 2015, 2015-03 or 2015-03-31"
        )
    return date.fromisoformat(text).isoformat() if len(text) > len("2015-03") else text


PeriodEnd = Annotated[str | None, BeforeValidator(_check_period_end)]


class PeriodConfig(Section):
    """The period whose values are asked for, e.g. that of a back-test."""

    start: PeriodEnd = None
    """A year, month or day, inclusive. None: the beginning of the series."""
    end: PeriodEnd = None
    """A year, month or day, inclusive to its last day. None: the end of the series."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.first_day > self.last_day:
            raise ValueError(f"the period ends before it starts: from {self.start} to {self.end}")
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


class NumleakConfig(Section):
    """How memory of series is tested: the series and the questions (research: numleak, app. O)."""

    series: Annotated[
        tuple[str, ...],
        BeforeValidator(lambda said: (said,) if isinstance(said, str) else said),
        Field(min_length=1),
    ]
    """Built-in ids, names of families, or paths of YAML files."""
    files: dict[str, str] = {}
    """Publishers' files on this machine, keyed by series id; these series are not fetched."""
    probes: tuple[Probe, ...] = DEFAULT_PROBES
    """The kinds of questions (docs/numleak.md); `value` must be among them."""
    dates: Annotated[int, Field(ge=2, le=MOST)] = 40
    """The number of dates per series and draw: half before the target's cutoff, a quarter within
    six months of it, and a quarter after it, if the series has such dates."""
    seeds: Count = 1
    """The number of draws, with consecutive seeds that start at `run.seed`. The draws share no
    dates, and their answers are pooled."""
    pairs: Count = 60
    """The number of pairs of dates that the model compares in each draw, in a free answer and as a
    forced choice."""
    fictitious: Count = 30
    """The number of questions about series that do not exist, per draw."""
    recent: Count = 14
    """The number of most recent values after the cutoff to ask for. If the cutoff is unknown, they
    are the most recent values of the whole series."""
    draws: Annotated[int, Field(ge=2, le=MOST)] = 2
    """The number of answers to each repeated question, at temperature 1."""
    continuations: Count = 10
    """The number of passages of the publisher's file that the target must continue, per draw."""
    period: PeriodConfig = PeriodConfig()
    """The period from which dates are drawn, such as `{start: 2015, end: 2020-06}`; `recent` dates
    are not restricted to it."""
    leak: LeakConfig = LeakConfig()
    """Controls for the `sentiment` probe (docs/numleak_leak.md)."""
    signals: dict[str, str] = {}
    """CSV files with your own signals, keyed by name, such as `{tone: tone.csv}`. Each file has the
    columns `date` and `value`."""
    defences: DefencesConfig | None = None
    """Tests instructions that are meant to stop a model from giving values away
    (docs/numleak_defences.md). `{}` tests the four built-in defences with all endings. None: no
    defence is tested."""

    @model_validator(mode="after")
    def _require_value_probe(self) -> Self:
        if "value" not in self.probes:
            raise ValueError("probes must include 'value', because all others are compared with it")
        return self

    def resolve(self, at: Callable[[str], str]) -> Self:
        """Return it with absolute paths of series and their files."""
        named = [at(one) if one.endswith((".yaml", ".yml")) else one for one in self.series]
        files = {series: at(path) for series, path in self.files.items()}
        changes: dict[str, object] = {"series": tuple(named), "files": files}
        if self.defences:
            changes["defences"] = self.defences.resolve(at)
        return self.model_copy(update=changes)
