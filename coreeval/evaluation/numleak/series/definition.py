"""What a series is: its definition (a YAML file with name, unit and source) and its values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from importlib import resources
from typing import Annotated, Final, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationInfo,
    model_validator,
)

from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.schema import Text, Value


class Unit(Value):
    """What the values of a series are counted in."""

    name: Text
    """What a question asks for: "percent", "degrees Fahrenheit"."""
    symbol: str = ""
    """Written behind a number: "%", "°F"; empty where nothing is."""
    points_name: Text
    """What differences of values are counted in: "percentage points"."""
    forms: tuple[str, ...] = ()
    """Other words and symbols for it in an answer, in lower case; plurals too."""
    basis_points: bool = False
    """Whether an answer may count in hundredths of it, as basis points (percent alone)."""


@cache
def load_units() -> dict[str, Unit]:
    """Return the built-in units, by the key that series use for them."""
    file = resources.files("coreeval.evaluation.numleak.series") / "units.yaml"
    return TypeAdapter(dict[str, Unit]).validate_python(yaml.safe_load(file.read_text("utf-8")))


def resolve_unit(raw: object) -> object:
    """Return the unit with the given name; other types are returned unchanged.

    Raises:
        ValueError: there is no unit with this name.
    """
    if not isinstance(raw, str):
        return raw
    units = load_units()
    if raw not in units:
        known = ", ".join(units)
        raise ValueError(
            f"there is no unit {raw!r} (known: {known}); a unit of your own is a mapping"
        )
    return units[raw]


Format = Literal["french", "fred", "noaa", "csv", "wide_csv"]
Combine = Literal["mean", "last"]
Change = Literal["difference", "percent_change", "log_change"]
PERCENT_TOLERANCES: Final = (0.25, 0.1, 0.5, 1.0)
"""Tolerances of a series in percent, in percentage points: 25 basis points is NumLeak's own
headline, the others its ladder (research: numleak, appendix H)."""


def _as_texts(raw: object) -> object:
    """Return a list of texts, even if YAML has a single text or numbers (`missing: [-99]`)."""
    items = raw if isinstance(raw, list | tuple) else [raw]
    return [str(item) if isinstance(item, int | float) else item for item in items]


def _as_text_keys(raw: object) -> object:
    """Convert keys to text, since YAML reads 2020 as a number and 2020-03-05 as a date."""
    if not isinstance(raw, dict):
        return raw
    return {str(key) if isinstance(key, int | date) else key: said for key, said in raw.items()}


class SeriesSource(Value):
    """Where the file is that has the values, and how it is laid out."""

    format: Format = "csv"
    """`french`: Kenneth French's library; `fred`, `noaa` (Climate at a Glance); `csv`: one row for
    a date; `wide_csv`: one row for a year, one column for each of its months or quarters."""
    url: str | None = Field(default=None, pattern="^https?://")
    """Where the publisher has it; `{year}` stands for the present year."""
    path: str | None = None
    """A file, from the folder of the YAML on, or one inside `package`."""
    package: Literal["statsmodels"] | None = None
    """An installed library that brings the file."""
    dates: Annotated[tuple[str, ...], BeforeValidator(_as_texts)] = Field(default=(), max_length=2)
    """The column of dates, or those of year and month, or of year and quarter; else the first."""
    missing: Annotated[tuple[str, ...], BeforeValidator(_as_texts)] = ()
    """What stands for "no value" besides what the format has (an empty cell, `.`, `-99.99`)."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.url is None) == (self.path is None):
            raise ValueError("a source has a url or a path, and not both")
        if self.package and self.url:
            raise ValueError("a package has a path inside it, no url")
        return self


class Transform(Value):
    """How the published numbers become those that are asked about, in this order."""

    combine: Combine | None = None
    """What a period is of the finer values in the file (days, weeks): `last` is its close."""
    change: Change | None = None
    """The change against the value `over` periods before: in the unit, in percent, or as 100 times
    the difference of logarithms."""
    over: int = Field(default=1, ge=1)
    """Periods that a change spans: 12 for the year-over-year change of a monthly series."""
    scale: float = Field(default=1.0, gt=0)
    """Factor at the end: 100 where the file has fractions and the unit is percent."""


class Plausible(Value):
    """What values in the right unit look like; anything else is said, or refused."""

    low: float
    high: float
    """No published value is outside `low` and `high`."""
    typical: tuple[float, float] | None = None
    """The median size (absolute value) lies between: fractions in place of percent do not."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low >= self.high:
            raise ValueError("low must be below high")
        return self


def _positive(values: tuple[float, ...]) -> tuple[float, ...]:
    if any(value <= 0 for value in values):
        raise ValueError("a tolerance is above zero")
    return values


class SeriesDefinition(Value):
    """One series: what questions call it, how its numbers are judged, and where they are."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    name: Text
    """As questions have it, article and all: "What was the QUANTITY of NAME in March 2020?"."""
    aliases: tuple[str, ...] = ()
    quantity: Text
    """What is asked of it: "monthly return", "level", "annual flow volume"."""
    blind: Text | None = None
    """The same without any proper name, in the place of `name`; None: it cannot be asked blind."""
    about: Text | None = None
    """What people have feelings about where it moves ("the U.S. stock market"); else `name`."""
    unit: Annotated[Unit, BeforeValidator(resolve_unit)]
    """The name of a known unit, or one of your own as a mapping."""
    sign: Literal["signed", "positive"]
    """Whether values can be below zero: a question then asks for the sign."""
    decimals: int = Field(ge=0, le=8)
    """Digits after the point that its publisher gives."""
    frequency: Frequency
    source: SeriesSource
    column: str | None = None
    """The column with the values; None where the file has only one besides the dates."""
    transform: Transform = Transform()
    release_lag_days: int = Field(ge=0, le=3650)
    """Days from the end of a period to the first publication of its value."""
    revisions: str = ""
    """Whether and how published values change later."""
    family: str | None = None
    """Series of the same family are siblings: confusing them tells of memory."""
    fictitious: tuple[Text, ...] = ()
    """Names of series that do not exist, in the form of `name`."""
    tolerances: Annotated[tuple[float, ...], AfterValidator(_positive)] = ()
    """How near counts as right, in the unit: the headline first, then the ladder."""
    notable: Annotated[dict[str, str], BeforeValidator(_as_text_keys)] = {}
    """Dates that are widely written about, and what happened."""
    plausible: Plausible | None = None
    publisher: str = ""
    """Who publishes it, under which terms."""

    @property
    def tolerance(self) -> float:
        """The headline tolerance, in the unit."""
        return self.tolerances[0]

    @property
    def notable_periods(self) -> frozenset[Period]:
        """The notable dates as periods."""
        return frozenset(Period.parse(text, self.frequency) for text in self.notable)

    @model_validator(mode="before")
    @classmethod
    def _default_tolerances(cls, raw: object, info: ValidationInfo) -> object:
        if isinstance(raw, dict) and raw.get("unit") == "percent" and not raw.get("tolerances"):
            return {**raw, "tolerances": PERCENT_TOLERANCES}
        return raw

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.tolerances:
            raise ValueError(f"tolerances: say how near counts as right, in {self.unit.name}")
        _ = self.notable_periods
        return self


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

    def release_date(self, period: Period) -> date:
        """Return the day on which the value of a date was first published."""
        return period.last_day + timedelta(days=self.definition.release_lag_days)

    def available_on(self, day: date) -> dict[Period, float]:
        """Return the values published on or before a day."""
        return {at: value for at, value in self.values.items() if self.release_date(at) <= day}
