"""A series with its values, in order of time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.definition import SeriesDefinition


@dataclass(frozen=True, kw_only=True)
class Series:
    """What is asked about: a definition, and the published value of each date."""

    definition: SeriesDefinition
    values: Mapping[Period, float]
    """In order of time, in the unit of the definition; a date without a value is absent."""
    notes: tuple[str, ...] = ()
    """What a reader of results should know of the file: gaps, duplicates, too few values."""
    origin: str = ""
    """The file or URL that the values were read from."""
    digest: str = ""
    """SHA-256 of that file, so that two audits can be known to have used the same truth."""
    text: str = field(default="", repr=False, compare=False)
    """That file as its publisher writes it; empty where the values come from elsewhere."""

    @property
    def first(self) -> Period:
        """The earliest date with a value."""
        return min(self.values)

    @property
    def last(self) -> Period:
        """The latest date with a value."""
        return max(self.values)

    def released(self, period: Period) -> date:
        """Return the day on which the value of a date was first published."""
        return period.last_day + timedelta(days=self.definition.release_lag_days)

    def available_on(self, day: date) -> dict[Period, float]:
        """Return the values that were published on a day or before it."""
        return {at: value for at, value in self.values.items() if self.released(at) <= day}
