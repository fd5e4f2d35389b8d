"""Training cutoffs and releases of models, and whether evidence is newer.

Each date of the table has a source. A target may know a fact from one old piece of evidence, so the
oldest piece determines how fresh a sample is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import Field, TypeAdapter, model_validator

from coreeval.config import Config, TargetConfig
from coreeval.config.dates import DateText, first_moment_after
from coreeval.schema import Count, Evidence, Freshness, Precision, Value
from coreeval.tools.catalogs import (
    bare_name,
    find_nearest_names,
    load_built_in_table,
    load_user_table,
    split_date,
)
from coreeval.tools.local_paths import shorten_name

Confidence = Literal["stated", "reported", "inferred", "given"]
"""Whether a date is stated by the model's maker, reported by somebody else, inferred from something
else, or given for a target in the config."""
DateKind = Literal["cutoff", "released"]
Day = date


class DateClaim(Value):
    """A date and its source."""

    date: DateText
    source: str = Field(min_length=1)
    confidence: Confidence
    as_of: Day | None = None
    """The day on which the source stated the date; None for a date from the config."""

    @property
    def counts_from(self) -> datetime:
        """The first time that counts as after this date."""
        return first_moment_after(self.date)

    @property
    def last_day(self) -> Day:
        """The day itself, or the last day of a month."""
        month = len(self.date) == len("2026-03")
        return (self.counts_from - timedelta(days=month)).date()


class ModelDates(Value):
    """The known dates of one model: its training cutoff, its release, or both."""

    cutoff: DateClaim | None = None
    """The last day or month of the model's training data."""
    released: DateClaim | None = None
    aliases: tuple[str, ...] = ()
    """Other names of the same weights."""

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        facts = [fact for fact in (self.cutoff, self.released) if fact]
        if not facts:
            raise ValueError("both cutoff and released are missing")
        if any(fact.as_of is None or fact.confidence == "given" for fact in facts):
            raise ValueError("a date needs as_of and a confidence: stated, reported or inferred")
        return self


class LatestDate(DateClaim):
    """The later of a target's cutoff and release; the target cannot know anything later."""

    target: str
    kind: DateKind


class TargetDates(Value):
    """The known dates of a target; either may be unknown."""

    target: str
    cutoff: DateClaim | None = None
    released: DateClaim | None = None

    @property
    def latest(self) -> LatestDate | None:
        """The later of the two dates; None if neither is known."""
        kinds: tuple[DateKind, ...] = ("released", "cutoff")
        known = [
            LatestDate(target=self.target, kind=kind, **fact.model_dump())
            for kind in kinds
            if (fact := getattr(self, kind))
        ]
        return max(known, key=lambda one: one.counts_from, default=None)


Cutoffs = Mapping[str, ModelDates]
"""The known dates by model name or `provider:name`."""
_TABLE = TypeAdapter(dict[str, ModelDates])
_ROW = (
    "a model needs cutoff, released or both; each of them needs date (2026-03-15 or 2026-03), "
    "source, confidence (stated, reported or inferred) and as_of"
)


@cache
def load_built_in_cutoffs() -> Cutoffs:
    """Return the dates of the package."""
    return load_built_in_table("cutoffs.yaml", _TABLE)


def load_cutoffs(path: Path | None = None) -> Cutoffs:
    """Return the built-in dates with a user's file on top.

    Raises:
        ConfigError: the file cannot be read, or a date in it lacks its source.
    """
    own = load_user_table(path, _TABLE, hint=_ROW) if path else {}
    return {**load_built_in_cutoffs(), **{name.lower(): row for name, row in own.items()}}


def load_run_cutoffs(config: Config) -> Cutoffs:
    """Return the dates that apply to a run.

    Raises:
        ConfigError: the file that the config names cannot be used.
    """
    listed = config.knowledge.cutoffs
    return load_cutoffs(Path(listed) if listed else None)


def load_target_dates(config: Config, *bases: Path) -> tuple[TargetDates, ...]:
    """Return the known dates of each target that was trained elsewhere, without embedded targets.

    A target that is a local file has its public name, relative to one of the bases if it is there.

    Raises:
        ConfigError: the file of dates that the config names cannot be used.
    """
    table = load_run_cutoffs(config)
    found = (
        find_target_dates(each, table) for each in config.models.targets if not each.is_embedded
    )
    return tuple(
        each.model_copy(update={"target": shorten_name(each.target, *bases)}) for each in found
    )


def find_target_dates(target: TargetConfig, table: Cutoffs) -> TargetDates:
    """Return the known dates of a target; a date in its config precedes the table's."""
    known = find_model_dates(target.model, table)
    return TargetDates(
        target=target.model,
        cutoff=_claim_from_config(target.cutoff) or (known and known.cutoff),
        released=_claim_from_config(target.released) or (known and known.released),
    )


def _claim_from_config(stated: str | None) -> DateClaim | None:
    return DateClaim(date=stated, source="config", confidence="given") if stated else None


def find_model_dates(model: str, table: Cutoffs) -> ModelDates | None:
    """Return the known dates of a model; its provider does not matter.

    A dated spelling is the same model without the date, released on that day at the earliest. Names
    that end in `latest` or `preview` change their model, so only listed ones are known.
    """
    aliases = {alias.lower(): row for row in table.values() for alias in row.aliases}
    names, bare = {**aliases, **table}, bare_name(model)
    base, pinned = split_date(bare)
    exact = names.get(model.lower()) or names.get(bare)
    if exact or not pinned:
        return exact
    row = names.get(base)
    return _dates_of_version(pinned, row) if row else None


def _dates_of_version(pinned: str, row: ModelDates) -> ModelDates:
    """Return the known dates of the version of a model that has a date in its name."""
    first = row.released or row.cutoff
    if first is None or (row.released and row.released.counts_from >= first_moment_after(pinned)):
        return row
    source = f"the date in the model's name; for the model without that date, {first.source}"
    released = DateClaim(date=pinned, source=source, confidence="inferred", as_of=first.as_of)
    return row.model_copy(update={"released": released})


def suggest_models(model: str, table: Cutoffs) -> list[str]:
    """Return up to three names of models with known dates, the likeliest first."""
    return find_nearest_names(model, table)


CERTAIN_FIRST: tuple[Precision, ...] = get_args(Precision)


def measure_freshness(
    evidence: Iterable[Evidence], targets: Sequence[TargetDates]
) -> Freshness | None:
    """Return the freshness of one sample's evidence; None if it has no evidence.

    A target may know the fact from one old piece, so the oldest piece decides. The least certain
    time determines how reliable the result is.
    """
    items = list(evidence)
    if not items:
        return None
    earliest = min(item.published_at for item in items)
    return Freshness(
        earliest=earliest,
        precision=max((item.published_precision for item in items), key=CERTAIN_FIRST.index),
        after_cutoff={each.target: _is_after(earliest, each) for each in targets},
    )


def _is_after(published: datetime, target: TargetDates) -> bool | None:
    latest = target.latest
    return published >= latest.counts_from if latest else None


class TargetFreshness(Value):
    """The number of accepted samples whose evidence is newer than a target."""

    target: str
    after: Count = 0
    """Samples whose evidence was all published after the target's cutoff and release."""
    before: Count = 0
    """Samples with some evidence that was not published after both dates."""
    unknown: Count = 0
    """Samples for which neither date of the target is known, or that predate this field."""
    by_crawl: Count = 0
    """Samples of `after` with evidence of which only the crawl time is known: it may be older."""

    @property
    def sample_count(self) -> int:
        """The number of accepted samples."""
        return self.after + self.before + self.unknown


def count_by_target(
    samples: Iterable[Freshness | None], targets: Sequence[TargetDates]
) -> tuple[TargetFreshness, ...]:
    """Return the number of accepted samples by freshness, for each target."""
    counts = {each.target: Counter[str]() for each in targets}
    for sample in samples:
        for target, counted in counts.items():
            is_after = sample.after_cutoff.get(target) if sample else None
            counted[_COUNT_NAMES[is_after]] += 1
            counted["by_crawl"] += bool(is_after and sample and sample.precision == "crawl")
    return tuple(TargetFreshness(target=name, **found) for name, found in counts.items())


_COUNT_NAMES = {True: "after", False: "before", None: "unknown"}
