"""A series: its definition (a YAML file with name, unit and source) and its values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from importlib import resources
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationInfo,
    model_validator,
)

from coreeval.config.user_files import parse_yaml
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.schema import Text, Value
from coreeval.tools.units import SCALES

_SHORT_SCALE: Final = 3
"""The length of abbreviations of a power of ten that may also be a unit, such as `mm`."""


class Unit(Value):
    """The unit of a series' values."""

    name: Text
    """The unit as named in questions: "percent", "degrees Fahrenheit"."""
    symbol: str = ""
    """The symbol after a number: "%", "°F"; empty if there is none."""
    points_name: Text
    """The unit of differences between values: "percentage points"."""
    forms: tuple[str, ...] = ()
    """Other words and symbols for the unit in answers, in lower case and including plurals."""
    basis_points: bool = False
    """Whether answers may use hundredths of the unit, such as basis points (percent only)."""
    scale: float | None = Field(default=None, gt=0)
    """The number that one unit stands for, if answers may name another power of ten: 1 for dollars,
    1e9 for billions of dollars. None: a number in millions is in another unit."""

    @property
    def suffix(self) -> str:
        """The text that follows a number: "%", " degrees Fahrenheit"."""
        text = self.symbol or self.name
        return text if text.startswith(("%", "\N{DEGREE SIGN}")) else f" {text}"


@cache
def load_units() -> dict[str, Unit]:
    """Return the built-in units, by the key that series use for them."""
    file = resources.files("coreeval.evaluation.numleak.series") / "units.yaml"
    return TypeAdapter(dict[str, Unit]).validate_python(parse_yaml(file.read_text("utf-8")))


def name_unit(text: str) -> Unit:
    """Return the unit that a text names: a built-in one, or one with powers of ten.

    `thousands of persons` stands for 1,000 persons each.
    """
    for unit in load_units().values():
        if text.lower() in (unit.name.lower(), unit.symbol.lower()):
            return unit
    first, _, rest = text.lower().partition(" ")
    scale = SCALES.get(first, 1.0) if len(first) > _SHORT_SCALE else 1.0
    counted = rest.removeprefix("of ") if scale > 1 else text.lower()
    dollars = load_units()["usd"].forms
    forms = dollars if counted in dollars else tuple(sorted({text.lower(), counted} - {""}))
    return Unit(name=text, points_name=text, forms=forms, scale=scale)


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
            f"there is no unit {raw!r} (known: {known}); define your own unit as a mapping"
        )
    return units[raw]


Format = Literal["french", "fred", "noaa", "csv", "wide_csv"]
Combine = Literal["mean", "last"]
Change = Literal["difference", "percent_change", "log_change"]
PERCENT_TOLERANCES: Final = (0.25, 0.1, 0.5, 1.0)
"""Tolerances for a series in percent, in percentage points.

25 basis points is NumLeak's headline, the others its ladder (research: numleak, appendix H).
"""


def _as_texts(raw: object) -> object:
    """Return a list of texts, also if YAML has a single text or numbers (`missing: [-99]`)."""
    items = raw if isinstance(raw, list | tuple) else [raw]
    return [str(item) if isinstance(item, int | float) else item for item in items]


def _as_text_keys(raw: object) -> object:
    """Convert keys to text, because YAML reads 2020 as a number and 2020-03-05 as a date."""
    if not isinstance(raw, dict):
        return raw
    return {str(key) if isinstance(key, int | date) else key: said for key, said in raw.items()}


class SeriesSource(Value):
    """Location and layout of the file that contains the values."""

    format: Format = "csv"
    """The layout of the file.

    `french`: Kenneth French's library; `fred`; `noaa` (Climate at a Glance); `csv`: one row per
    date; `wide_csv`: one row per year, with a column for each month or quarter.
    """
    url: str | None = Field(default=None, pattern="^https?://")
    """The publisher's URL; `{year}` stands for the current year."""
    path: str | None = None
    """The path of a file, relative to the folder of the YAML file or inside `package`."""
    package: Literal["statsmodels"] | None = None
    """The installed library that contains the file."""
    dates: Annotated[tuple[str, ...], BeforeValidator(_as_texts)] = Field(default=(), max_length=2)
    """The date column, or those of year and month or quarter; empty for the first column."""
    missing: Annotated[tuple[str, ...], BeforeValidator(_as_texts)] = ()
    """Markers of "no value" besides those of the format (an empty cell, `.`, `-99.99`)."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.url is None) == (self.path is None):
            raise ValueError("a source must have either a url or a path, not both")
        if self.package and self.url:
            raise ValueError("a package source must have a path inside the package, not a url")
        return self


class Transform(Value):
    """The conversion of published numbers to the values asked about; steps apply in this order."""

    combine: Combine | None = None
    """The method to combine the finer values (days, weeks) of a period; `last` is its close."""
    change: Change | None = None
    """The change from the value `over` periods earlier.

    In the unit, in percent, or as 100 times the difference of logarithms.
    """
    over: int = Field(default=1, ge=1)
    """The number of periods that a change spans: 12 for a monthly year-over-year change."""
    scale: float = Field(default=1.0, gt=0)
    """A final factor: 100 if the file has fractions and the unit is percent."""


class Plausible(Value):
    """The range of values in the right unit; others cause a note or an error."""

    low: float
    high: float
    """Upper bound of all published values; `low` is the lower bound."""
    typical: tuple[float, float] | None = None
    """Bounds of the median absolute value; detects fractions in place of percent."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low >= self.high:
            raise ValueError("low must be below high")
        return self


def _positive(values: tuple[float, ...]) -> tuple[float, ...]:
    if any(value <= 0 for value in values):
        raise ValueError("a tolerance must be above zero")
    return values


class SeriesDefinition(Value):
    """A series: its name in questions, the tolerances of its numbers, and their source."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    name: Text
    """The name in questions, including the article.

    "What was the QUANTITY of NAME in March 2020?"
    """
    aliases: tuple[str, ...] = ()
    quantity: Text
    """The quantity asked about: "monthly return", "level", "annual flow volume"."""
    blind: Text | None = None
    """A substitute for `name` without any proper name; None if it cannot be asked blind."""
    about: Text | None = None
    """The subject of investors' sentiment ("the U.S. stock market"); None for `name`."""
    unit: Annotated[Unit, BeforeValidator(resolve_unit)]
    """The name of a built-in unit, or a unit of your own as a mapping."""
    sign: Literal["signed", "positive"]
    """Whether values can be negative; if so, questions ask for the sign."""
    decimals: int = Field(ge=0, le=8)
    """The number of decimals in the publisher's values."""
    frequency: Frequency
    source: SeriesSource
    column: str | None = None
    """The column with the values; None if the file has only one besides the dates."""
    transform: Transform = Transform()
    release_lag_days: int = Field(ge=0, le=3650)
    """Days from the end of a period to the first publication of its value."""
    revisions: str = ""
    """Whether and how published values change later."""
    family: str | None = None
    """The family of the series; confusing siblings in it is evidence about memory."""
    fictitious: tuple[Text, ...] = ()
    """Names of series that do not exist, in the form of `name`."""
    tolerances: Annotated[tuple[float, ...], AfterValidator(_positive)] = ()
    """Tolerances for a right answer, in the unit: the headline first, then the ladder."""
    notable: Annotated[dict[str, str], BeforeValidator(_as_text_keys)] = {}
    """Widely discussed dates, each with its event."""
    plausible: Plausible | None = None
    publisher: str = ""
    """The publisher and its licence terms."""

    @property
    def tolerance(self) -> float:
        """The headline tolerance, in the unit."""
        return self.tolerances[0]

    def format_number(self, value: float, *, plus: bool = True) -> str:
        """Return a value with the publisher's decimals.

        Unless `plus` is False, positive values of a signed series have a plus sign.
        """
        sign = "+" if plus and self.sign == "signed" else ""
        return f"{value:{sign}.{self.decimals}f}"

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
            raise ValueError(
                "tolerances is missing: set the largest error of a right answer, in "
                f"{self.unit.name}"
            )
        _ = self.notable_periods
        return self


@dataclass(frozen=True, kw_only=True)
class Series:
    """A series definition with the published value of each date."""

    definition: SeriesDefinition
    values: Mapping[Period, float]
    """Values in chronological order, in the definition's unit; dates without a value are absent."""
    notes: tuple[str, ...] = ()
    """Notes on the file for readers of the results: gaps, duplicates, too few values."""
    origin: str = ""
    """The file or URL that the values were read from."""
    digest: str = ""
    """SHA-256 of that file, which shows whether two audits used the same truth."""
    text: str = field(default="", repr=False, compare=False)
    """The text of that file as published; empty if the values come from elsewhere."""

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
