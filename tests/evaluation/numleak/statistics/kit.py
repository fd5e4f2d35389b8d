"""Points made from numbers, so that a test shows only what matters to it."""

from collections.abc import Sequence
from datetime import date

import numpy as np

from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.replies import DateComparison, Point, Side, Stratum, Variant
from coreeval.evaluation.numleak.series import SeriesDefinition
from coreeval.evaluation.numleak.statistics import AuditSettings
from coreeval.evaluation.statistics import Array

FEW = AuditSettings(draws=400, seed=1)
FIRST = Period(date(1990, 1, 1), "monthly")
DEFINITION = SeriesDefinition.model_validate(
    {
        "id": "made", "name": "a made series", "quantity": "monthly return", "unit": "percent",
        "sign": "signed", "decimals": 2, "frequency": "monthly", "release_lag_days": 0,
        "source": {"path": "made.csv"},
    }
)  # fmt: skip


def month(index: int) -> Period:
    """Return the month so many after January 1990."""
    return FIRST.shift(index)


def at(year: int, frequency: Frequency) -> Period:
    """Return the first period of a year."""
    return Period(date(year, 1, 1), frequency)


def asked(
    truth: Sequence[float] | Array,
    said: Sequence[float | None] | Array,
    *,
    months: Sequence[int] | None = None,
    variant: Variant = "value",
    stratum: Stratum = "unknown",
    seed: int = 0,
    draw: int = 0,
    name: str | None = None,
    notable: bool = False,
) -> list[Point]:
    """Return a question for each month, counted from January 1990; None was refused."""
    return [
        Point(
            period=month(index), variant=variant, truth=float(due), seed=seed, draw=draw,
            estimate=None if value is None else float(value),
            status="refused" if value is None else "parsed",
            stratum=stratum, name=name, notable=notable,
        )
        for index, due, value in zip(months or range(len(truth)), truth, said, strict=True)
    ]  # fmt: skip


def compared(first: int, second: int, *, higher: Side, chosen: Side | None) -> DateComparison:
    """Return one comparison of two months."""
    return DateComparison(
        first=month(first), second=month(second), variant="pair", higher=higher, chosen=chosen,
        status="refused" if chosen is None else "parsed",
    )  # fmt: skip


def returns(n: int, seed: int = 0) -> Array:
    """Return numbers like a monthly return in percent."""
    return np.random.default_rng(seed).normal(0.7, 4.5, n).round(2)
