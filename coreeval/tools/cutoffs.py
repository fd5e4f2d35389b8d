"""Until when models were trained, and when they came out: a table with a source for each date."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from coreeval.config import Config, TargetConfig
from coreeval.config.dates import StatedDate, counts_from
from coreeval.schema import Value
from coreeval.tools.model_names import bare_name, nearest_names, split_date
from coreeval.tools.sourced import built_in, user_table

Confidence = Literal["stated", "reported", "inferred", "given"]
"""Stated by the maker; reported by somebody else; inferred from something else; given at a target
in the config."""
DateKind = Literal["cutoff", "released"]
Day = date


class Stated(Value):
    """A date and who says so."""

    date: StatedDate
    source: str = Field(min_length=1)
    confidence: Confidence
    as_of: Day | None = None
    """Day on which the source said so; None for what the config gives."""

    @property
    def counts_from(self) -> datetime:
        """The first moment that counts as after it."""
        return counts_from(self.date)

    @property
    def last_day(self) -> Day:
        """The day itself; of a month its last one."""
        month = len(self.date) == len("2026-03")
        return (self.counts_from - timedelta(days=month)).date()


class ModelDates(Value):
    """What is known of one model: its training cutoff, its release, or both."""

    cutoff: Stated | None = None
    """The last day, or the last month, of its training data."""
    released: Stated | None = None
    aliases: tuple[str, ...] = ()
    """Other names of the same weights."""

    @model_validator(mode="after")
    def _sourced(self) -> Self:
        facts = [fact for fact in (self.cutoff, self.released) if fact]
        if not facts:
            raise ValueError("neither cutoff nor released is there")
        if any(fact.as_of is None or fact.confidence == "given" for fact in facts):
            raise ValueError("a date has as_of, and is stated, reported or inferred")
        return self


class Latest(Stated):
    """The later of a target's cutoff and its release: what a target cannot know came after it."""

    target: str
    kind: DateKind


class TargetDates(Value):
    """What is known of a target; either date may be unknown."""

    target: str
    cutoff: Stated | None = None
    released: Stated | None = None

    @property
    def latest(self) -> Latest | None:
        """The later of the two; None where neither is known."""
        kinds: tuple[DateKind, ...] = ("released", "cutoff")
        known = [
            Latest(target=self.target, kind=kind, **fact.model_dump())
            for kind in kinds
            if (fact := getattr(self, kind))
        ]
        return max(known, key=lambda one: one.counts_from, default=None)


Cutoffs = Mapping[str, ModelDates]
"""What is known by name: that of a model, or `provider:name`."""
_TABLE = TypeAdapter(dict[str, ModelDates])
_ROW = (
    "a model has cutoff, released or both, each with date (2026-03-15 or 2026-03), source, "
    "confidence (stated, reported or inferred) and as_of"
)


@cache
def built_in_cutoffs() -> Cutoffs:
    """Return the dates that come with the package."""
    return built_in("cutoffs.yaml", _TABLE)


def load_cutoffs(path: Path | None = None) -> Cutoffs:
    """Return the built-in dates with a user's file on top.

    Raises:
        ConfigError: the file cannot be read, or a date in it lacks its source.
    """
    own = user_table(path, _TABLE, hint=_ROW) if path else {}
    return {**built_in_cutoffs(), **{name.lower(): row for name, row in own.items()}}


def cutoffs_of(config: Config) -> Cutoffs:
    """Return the dates that hold for a run.

    Raises:
        ConfigError: the file that the config names cannot be used.
    """
    listed = config.knowledge.cutoffs
    return load_cutoffs(Path(listed) if listed else None)


def target_dates(config: Config) -> tuple[TargetDates, ...]:
    """Return what is known of each target that was trained elsewhere; embedded ones are left out.

    Raises:
        ConfigError: the file of dates that the config names cannot be used.
    """
    table = cutoffs_of(config)
    return tuple(dates_of(each, table) for each in config.models.targets if not each.embedded)


def dates_of(target: TargetConfig, table: Cutoffs) -> TargetDates:
    """Return what is known of a target: a date that its config gives comes before the table's."""
    known = find(target.model, table)
    return TargetDates(
        target=target.model,
        cutoff=_given(target.cutoff) or (known and known.cutoff),
        released=_given(target.released) or (known and known.released),
    )


def _given(stated: str | None) -> Stated | None:
    return Stated(date=stated, source="config", confidence="given") if stated else None


def find(model: str, table: Cutoffs) -> ModelDates | None:
    """Return what is known of a model; who serves it does not matter.

    A spelling with a date is the model without it, released on that day at the earliest. Names that
    end in `latest` or `preview` move from model to model: they are known where they are listed.
    """
    aliases = {alias.lower(): row for row in table.values() for alias in row.aliases}
    names, bare = {**aliases, **table}, bare_name(model)
    base, pinned = split_date(bare)
    exact = names.get(model.lower()) or names.get(bare)
    if exact or not pinned:
        return exact
    row = names.get(base)
    return _not_before(pinned, row) if row else None


def _not_before(pinned: str, row: ModelDates) -> ModelDates:
    """Return what is known of the version of a model that has a date in its name."""
    first = row.released or row.cutoff
    if first is None or (row.released and row.released.counts_from >= counts_from(pinned)):
        return row
    source = f"the date in the model's name; else: {first.source}"
    released = Stated(date=pinned, source=source, confidence="inferred", as_of=first.as_of)
    return row.model_copy(update={"released": released})


def nearest_known(model: str, table: Cutoffs) -> list[str]:
    """Return up to three names of models whose dates are known, the likeliest first."""
    return nearest_names(model, table)
