"""A series from a caller's values, without a YAML file.

Missing details are inferred: the frequency from the dates, the sign and the decimals from the
values, and the tolerance from the unit or the variation of the values.
"""

import calendar
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from math import gcd
from statistics import median, pstdev
from typing import Final

from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.series.definition import SeriesDefinition, SeriesSource, Unit

TOLERANCE_SHARE: Final = 0.05
"""The tolerance in standard deviations of the truth.

NumLeak chose 25 basis points on the US market excess return, whose standard deviation is 5.3
percentage points: about a twentieth.
"""
PLAIN_UNIT: Final = Unit(name="the file's unit", points_name="units of the file")
UNKNOWN_UNIT: Final = "the unit is unknown, so numbers with a unit are not read"
_SHAPES: Final[dict[Frequency, re.Pattern[str]]] = {
    "annual": re.compile(r"\d{4}"),
    "quarterly": re.compile(r"\d{4}[- ]?[Qq][1-4]"),
    "monthly": re.compile(r"\d{4}-?\d{2}(-?01)?"),
    "daily": re.compile(r"\d{4}-?\d{2}-?\d{2}"),
}
"""Date formats by frequency; the first day of a month stands for the month."""
_LAST_DAYS: Final = 4
"""The number of last days of a month that stand for the month.

A month's last trading day may be three days before its end, as before Easter 2024.
"""
_DAY: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}")
_STEPS: Final[tuple[tuple[int, Frequency], ...]] = (
    (300, "annual"), (80, "quarterly"), (25, "monthly"), (5, "weekly"),
)  # fmt: skip
"""The fewest days between the days of two values, by frequency; fewer are daily."""


@dataclass(frozen=True, kw_only=True)
class OwnSeries:
    """A caller's description of a series."""

    name: str
    """The name of the series, from which the id is derived."""
    quantity: str = "value"
    unit: Unit | str = PLAIN_UNIT
    """The unit, or the name of a built-in one."""
    tolerances: tuple[float, ...] = ()
    """The tolerances of an answer, in the unit: the headline first. If they are empty, only a
    series in percent has default tolerances; see `scale_tolerance`."""
    source: str = "<values>"
    """The source of the values."""


def define_series(
    about: OwnSeries, values: Mapping[Period, float], frequency: Frequency
) -> SeriesDefinition:
    """Return the definition of a series.

    Args:
        about: The caller's description.
        values: The values by date; at least one.
        frequency: The frequency of the dates.

    Raises:
        pydantic.ValidationError: the description is not valid.
    """
    return SeriesDefinition.model_validate(
        {
            "id": make_series_id(about.name),
            "name": about.name,
            "quantity": about.quantity,
            "unit": about.unit,
            "sign": "signed" if min(values.values()) < 0 else "positive",
            "decimals": max(map(_count_decimals, values.values())),
            "frequency": frequency,
            "source": SeriesSource(path=about.source),
            "release_lag_days": 0,
            "tolerances": about.tolerances,
        }
    )


def scale_tolerance(values: Mapping[Period, float]) -> float:
    """Return a twentieth of the values' standard deviation; 0 if they hardly vary."""
    return float(f"{TOLERANCE_SHARE * pstdev(values.values()):.2g}")


def make_series_id(name: str) -> str:
    """Return the id of a series by its name."""
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_") or "series"


def infer_frequency(texts: Sequence[str]) -> Frequency | None:
    """Return the frequency that matches the format of most dates; None if there is none.

    If all of them are first or all are last days of different months, it is that of the months.
    """
    if months := _infer_months(texts):
        return months
    there = {
        frequency: sum(1 for text in texts if shape.fullmatch(text.strip()))
        for frequency, shape in _SHAPES.items()
    }
    best = max(there, key=lambda frequency: there[frequency])
    return best if there[best] else None


def infer_step(texts: Sequence[str]) -> Frequency | None:
    """Return the frequency of dates; if they are days, the frequency of their usual step."""
    days = _list_days(texts)
    if not days or _infer_months(texts):
        return infer_frequency(texts)
    steps = [(after - before).days for before, after in pairwise(days)]
    usual = median(steps) if steps else 0
    return next((frequency for least, frequency in _STEPS if usual >= least), "daily")


def _infer_months(texts: Sequence[str]) -> Frequency | None:
    """Return the frequency of days that stand for their months; None if they do not.

    Only some of the months may be there, so the step that divides all gaps counts, not the usual
    one.
    """
    days = _list_days(texts)
    months = sorted({12 * day.year + day.month for day in days})
    first = all(day.day == 1 for day in days)
    if len(months) < len(days) or not (first or all(map(_ends_month, days))):
        return None
    step = gcd(*(after - before for before, after in pairwise(months)))
    if not step:
        return None
    return "monthly" if step % 3 else "quarterly" if step % 12 else "annual"


def _ends_month(day: date) -> bool:
    return calendar.monthrange(day.year, day.month)[1] - day.day < _LAST_DAYS


def _list_days(texts: Sequence[str]) -> list[date]:
    """Return the different days in order; empty if most of the dates are not days."""
    days = sorted({day for text in texts if (day := _parse_day(text.strip())) is not None})
    return days if 2 * len(days) > len(set(texts)) else []


def _parse_day(text: str) -> date | None:
    """Return a day; None if the text is not a day."""
    if not _DAY.fullmatch(text):
        return None
    with suppress(ValueError):
        return date.fromisoformat(text)
    return None


def _count_decimals(value: float) -> int:
    """Return the number of digits after the decimal point, at most eight."""
    return len(f"{value:.8f}".rstrip("0").partition(".")[2])
