"""What targets are asked about dated series: NumLeak, in a run or by itself."""

import calendar
import re
from datetime import date
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from coreeval.config.defence_values import DefencesConfig
from coreeval.config.leak_values import LeakConfig
from coreeval.schema import Value

Probe = Literal[
    "value", "pair", "forced_choice", "fictitious", "blind", "recent", "siblings", "repeated",
    "description", "step_by_step", "phrasing", "contradiction", "continuation", "entropy",
    "sentiment",
]  # fmt: skip
PROBES: Final[tuple[Probe, ...]] = get_args(Probe)
USUAL: Final = PROBES[: PROBES.index("description")]
"""What an audit asks that is not told otherwise: what its verdict rests on."""
_STATED = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-\d{2})?)?")


def _stated(said: object) -> object:
    """Refuse what is no year, month or day; YAML reads years as numbers and days as dates."""
    text = str(said)
    if said is None:
        return None
    if not _STATED.fullmatch(text):
        raise ValueError(f"{text!r} is no year, month or day, such as 2015, 2015-03 or 2015-03-31")
    return date.fromisoformat(text).isoformat() if len(text) > len("2015-03") else text


End = Annotated[str | None, BeforeValidator(_stated)]


class PeriodConfig(Value):
    """The stretch of time whose values are asked for, such as that of a back-test."""

    start: End = None
    """Year, month or day, itself included; None: as early as the series goes."""
    end: End = None
    """Likewise, included to its last day."""

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if self.first_day > self.last_day:
            raise ValueError(f"it runs backwards: from {self.start} to {self.end}")
        return self

    @property
    def first_day(self) -> date:
        """The first day that belongs to it."""
        if self.start is None:
            return date.min
        return date.fromisoformat(self.start + "-01-01"[len(self.start) - len("2015") :])

    @property
    def last_day(self) -> date:
        """The last day that belongs to it."""
        if self.end is None:
            return date.max
        year, month, day = [*map(int, self.end.split("-")), 0, 0][:3]
        month = month or 12
        return date(year, month, day or calendar.monthrange(year, month)[1])

    def __contains__(self, day: date) -> bool:
        """Tell whether a day lies in it."""
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
    probes: tuple[Probe, ...] = USUAL
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
    def _asks_for_values(self) -> Self:
        if "value" not in self.probes:
            raise ValueError("probes must have 'value': all others are held against it")
        return self
