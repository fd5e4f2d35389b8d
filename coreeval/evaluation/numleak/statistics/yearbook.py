"""What a yearbook tells of a series without telling its months: the means of years and seasons."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from typing import Final

from coreeval.evaluation.numleak.periods import Frequency, Period

Values = Mapping[Period, float]
_HALF_A_YEAR: Final[dict[Frequency, int]] = {
    "daily": 120, "weekly": 26, "monthly": 6, "quarterly": 2,
}  # fmt: skip
"""A year's mean is taken from at least so many of its values: of fewer, each is half the answer."""


def season(period: Period) -> int:
    """Return the part of the year that a date repeats in: its month, or its quarter."""
    return period.quarter if period.frequency == "quarterly" else period.start.month


def year_means(values: Values) -> Values:
    """Return for each date the mean of its year, the date included; of years nearly complete.

    An annual series has none: its year's mean is the answer.
    """
    least = _HALF_A_YEAR.get(next(iter(values)).frequency) if values else None
    return _means(values, lambda date: date.start.year, least) if least else {}


def season_means(values: Values) -> Values:
    """Return for each date the mean of its season over the years; none of an annual series."""
    if not values or next(iter(values)).frequency == "annual":
        return {}
    return _means(values, season, 2)


def _means(values: Values, group: Callable[[Period], Hashable], least: int) -> Values:
    """Return for each date the mean of its group, where that has enough values."""
    sums: defaultdict[Hashable, float] = defaultdict(float)
    counts = Counter(group(date) for date in values)
    for date, value in values.items():
        sums[group(date)] += value
    kept = (date for date in values if counts[group(date)] >= least)
    return {date: sums[group(date)] / counts[group(date)] for date in kept}
