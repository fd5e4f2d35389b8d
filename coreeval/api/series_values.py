"""The true values of series in memory: mappings, pairs, frames, dated series."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from math import isfinite
from pathlib import Path
from typing import Protocol, cast

from pydantic import ValidationError

from coreeval.api.arguments import require_choice
from coreeval.api.rows import (
    DATE,
    ArrowData,
    PathLike,
    Rows,
    is_path,
    list_rows,
    to_date_text,
    to_plain,
)
from coreeval.config.validation import explain_validation_error
from coreeval.errors import UsageError
from coreeval.evaluation.benchmarks.rows import make_bad_row
from coreeval.evaluation.numleak.periods import FREQUENCIES, Frequency, Period
from coreeval.evaluation.numleak.replies import LARGEST_VALUE
from coreeval.evaluation.numleak.series import Series, SeriesDefinition, Unit, open_series
from coreeval.evaluation.numleak.series.definition import load_units, name_unit
from coreeval.evaluation.numleak.series.observations import check_values
from coreeval.evaluation.numleak.series.own_values import (
    UNKNOWN_UNIT,
    OwnSeries,
    define_series,
    infer_step,
    scale_tolerance,
)
from coreeval.schema import BadRow
from coreeval.tools.short_floats import is_narrow, shorten_column
from coreeval.tools.workspace import workspace_for

Day = str | int | date
"""A date of a series: 2020-03-05, 2020-03, 2020-Q1, a year, or a Python date."""
VALUE = "value"
SERIES = "series"


class DatedSeries(Protocol):
    """Values by date other than a mapping, such as a pandas series with a date index."""

    def items(self) -> Iterable[tuple[object, object]]:
        """Return each date with its value."""
        ...


OneSeries = Mapping[Day, float] | Iterable[tuple[Day, float]] | DatedSeries | Rows | PathLike
"""The values of one series, the id of a built-in series, or the YAML file of one."""
Values = OneSeries | Mapping[str, OneSeries]
"""The values of one series, or of several by name."""


@dataclass(frozen=True, kw_only=True)
class SeriesTerms:
    """The caller's statements about the series besides its values."""

    name: str | None
    """The name of the series; None to name it as the answers do."""
    quantity: str
    unit: str | None
    """The unit; None for percent if the answers are in percent, otherwise for unnamed units."""
    frequency: Frequency | None
    tolerances: tuple[float, ...]
    in_percent: frozenset[str]
    """The names, in the answers, of the series whose answers are in percent."""


@dataclass(frozen=True, kw_only=True)
class ReadValues:
    """Series by id, and the rows that are not values."""

    series: Mapping[str, Series]
    bad: tuple[BadRow, ...]


def split_series(values: Values, asked: Sequence[str]) -> Mapping[str, OneSeries]:
    """Return the values of each series, by its name in the answers.

    Args:
        values: The values.
        asked: The names of the series in the answers.

    Raises:
        UsageError: it is unclear which of several series the values belong to.
    """
    if isinstance(values, Mapping) and any(_is_nested(each) for each in values.values()):
        return cast("Mapping[str, OneSeries]", values)
    rows = _list_table(values)
    if rows and any(row.get(SERIES) is not None for row in rows):
        names = dict.fromkeys(str(row[SERIES]) for row in rows if row.get(SERIES) is not None)
        return {name: [row for row in rows if str(row.get(SERIES)) == name] for name in names}
    if len(asked) > 1:
        raise UsageError(
            f"the answers are about {len(asked)} series: {', '.join(asked)}",
            where="values",
            hint="pass the values of each: {series: values}, or rows with a `series` column",
        )
    one: OneSeries = rows or values
    return dict.fromkeys(asked, one)


def _is_nested(value: object) -> bool:
    """Return whether a mapping's value is not a number but the values of a series."""
    return value is not None and not isinstance(to_plain(value), int | float)


def _list_table(values: object) -> list[dict[str, object]]:
    """Return the rows of a table; empty if the values are not in a table."""
    if isinstance(values, Mapping | str | Path):
        return []
    is_table = hasattr(values, "columns")
    if not is_table and isinstance(values, Sequence):
        is_table = any(isinstance(each, Mapping) for each in values)
    return list_rows(cast("Rows", values), "values", index=DATE) if is_table else []


def read_series(given: Mapping[str, OneSeries], terms: SeriesTerms) -> ReadValues:
    """Return the series made from values.

    Args:
        given: The values, by the name of the series.
        terms: Other properties; the name is used for a single series.

    Raises:
        UsageError: there are no values, or an argument cannot be used.
        CoreEvalError: a named series does not exist, or its file cannot be read.
    """
    found, bad = dict[str, Series](), list[BadRow]()
    for name, values in given.items():
        if is_path(values):
            base = Path.cwd()
            found[name] = open_series(str(values), base=base, cache=workspace_for(base).series)
            continue
        source = "<values>" if len(given) == 1 else f"<values of {name}>"
        rows = _DatedRows(source, list(_list_dated(values)))
        known_as = (terms.name if len(given) == 1 else None) or name
        found[name] = rows.to_series(known_as, terms, in_percent=name in terms.in_percent)
        bad += rows.bad
    return ReadValues(series=found, bad=tuple(bad))


def _list_dated(values: object) -> Iterator[tuple[object, object]]:
    """Yield each date with its given value."""
    if rows := _list_table(values):
        column = _find_value_column(rows)
        yield from ((row.get(DATE), row.get(column)) for row in rows)
    elif hasattr(values, "items"):
        items = cast("DatedSeries", values).items()
        if is_narrow(getattr(values, "dtype", None)):
            items = zip((day for day, _ in items), shorten_column(values), strict=True)
        yield from items
    elif isinstance(values, Iterable) and not isinstance(values, ArrowData):
        for each in values:
            if not (isinstance(each, tuple | list) and len(each) == 2):
                raise _no_values()
            yield each[0], each[1]
    else:
        raise _no_values()


def _no_values() -> UsageError:
    return UsageError(
        "these are not values keyed by date",
        where="values",
        hint="pass {date: number}, a list of (date, number), a data frame with `date` and "
        "`value` columns, or a series with an index of dates",
    )


def _find_value_column(rows: Sequence[Mapping[str, object]]) -> str:
    columns = dict.fromkeys(name for row in rows for name in row)
    others = [name for name in columns if name not in (DATE, SERIES)]
    if DATE in columns and (VALUE in columns or len(others) == 1):
        return VALUE if VALUE in columns else others[0]
    raise UsageError(
        "values need `date` and `value` columns",
        where="values",
        hint=f"available columns: {', '.join(columns)}",
    )


class _DatedRows:
    """The given dates and values, from which a series is made."""

    def __init__(self, source: str, rows: list[tuple[object, object]]) -> None:
        self._source = source
        self._read = list[tuple[int, str, float]]()
        self.bad = list[BadRow]()
        for number, (day, value) in enumerate(rows, start=1):
            text, plain = str(to_date_text(to_plain(day))).strip(), to_plain(value)
            if defect := _find_defect(day, plain):
                self._refuse(number, defect, f"{text}: {plain}")
            else:
                self._read.append((number, text, float(cast("float", plain))))

    def _refuse(self, number: int, reason: str, raw: str) -> None:
        self.bad.append(make_bad_row(self._source, number, reason, raw))

    def to_series(self, name: str, terms: SeriesTerms, *, in_percent: bool) -> Series:
        """Return the series with a name."""
        frequency = terms.frequency or infer_step([text for _, text, _ in self._read])
        if frequency is None:
            raise UsageError(
                "no date of the values can be read" if self._read else "there are no values",
                where="values",
                hint="write dates as 2020-03-05, 2020-03, 2020-Q1 or 2020",
            )
        require_choice("frequency", frequency, FREQUENCIES)
        values = self._by_period(frequency)
        if not values:
            raise UsageError(
                f"no value has a date that fits a {frequency} series",
                where="values",
                hint=f"the first bad row: {self.bad[0].reason}",
            )
        definition, note = _define(name, terms, values, frequency, in_percent=in_percent)
        notes = check_values(values, definition)
        return Series(
            definition=definition, values=values, notes=(note, *notes), origin=self._source
        )

    def _by_period(self, frequency: Frequency) -> dict[Period, float]:
        """Return the value of each date; dates with conflicting values are left out."""
        found = dict[Period, list[tuple[int, str, float]]]()
        for number, text, value in self._read:
            period: Period | None = None
            with suppress(ValueError):
                period = Period.parse(text, frequency)
            if period is None:
                reason = f"{text!r} is not a date that fits a {frequency} series"
                self._refuse(number, reason, f"{text}: {value}")
            else:
                found.setdefault(period, []).append((number, text, value))
        for period, rows in found.items():
            if len({value for *_, value in rows}) > 1:
                for number, text, value in rows:
                    self._refuse(number, f"{period} has more than one value", f"{text}: {value}")
        kept = {at: {row[2] for row in rows} for at, rows in found.items()}
        return {at: min(each) for at, each in sorted(kept.items()) if len(each) == 1}


def _find_defect(day: object, value: object) -> str:
    if day is None or to_plain(day) is None:
        return "the date is missing"
    if value is None:
        return "the value is missing"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"the value {value!r} is not a number"
    return "" if isfinite(value) and abs(value) <= LARGEST_VALUE else f"the value is {value}"


def _define(
    name: str,
    terms: SeriesTerms,
    values: Mapping[Period, float],
    frequency: Frequency,
    *,
    in_percent: bool,
) -> tuple[SeriesDefinition, str]:
    """Return the definition, and a note on assumed properties."""
    tolerances, how = terms.tolerances, ""
    if not tolerances and terms.unit != "percent":
        tolerances = (scale_tolerance(values),)
        how = ", one twentieth of the standard deviation of the values"
        if tolerances[0] <= 0:
            raise UsageError(
                "the values do not vary, so no tolerance can be derived from them",
                where="tolerances",
                hint="specify how close an answer must be: tolerances=[0.25]",
            )
    about = OwnSeries(
        name=name,
        quantity=terms.quantity,
        unit=_choose_unit(terms, in_percent=in_percent),
        tolerances=tolerances,
    )
    try:
        definition = define_series(about, values, frequency)
    except ValidationError as error:
        explained = explain_validation_error(error, SeriesDefinition, "coreeval.numleak")
        raise UsageError(explained.message, where="coreeval.numleak", hint=explained.hint) from None
    assumed = "" if terms.frequency else f"the frequency ({frequency}) is inferred from the dates; "
    unit = definition.unit.points_name
    unknown = "" if terms.unit or in_percent else f"; {UNKNOWN_UNIT}: pass unit if answers name one"
    return definition, f"{assumed}the tolerance is {definition.tolerance:g} {unit}{how}{unknown}"


def _choose_unit(terms: SeriesTerms, *, in_percent: bool) -> Unit | str:
    unit = terms.unit or ("percent" if in_percent else None)
    if unit is None:
        return Unit(name="units", points_name="units")
    if unit in load_units():
        return unit
    return name_unit(unit)
