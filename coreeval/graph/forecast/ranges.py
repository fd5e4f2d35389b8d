"""A number that is not known yet, as a range; and where it was taken from."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Self

from pydantic import model_validator

from coreeval.schema import Value

SLACK = 0.1
"""Share by which a mean may be off for samples that it was not taken from, at least."""


class Range(Value):
    """The lowest, the likely and the highest value; nothing here is negative."""

    low: float
    likely: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 <= self.low <= self.likely <= self.high:
            raise ValueError(f"no range: {self.low} <= {self.likely} <= {self.high}")
        return self

    def __add__(self, other: "Range") -> "Range":
        """Add, as if both came out low, or both high."""
        return between(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def __mul__(self, other: "Range") -> "Range":
        """Multiply, as if both came out low, or both high."""
        return between(self.low * other.low, self.likely * other.likely, self.high * other.high)

    def times(self, factor: float) -> "Range":
        """Return a multiple."""
        return between(self.low * factor, self.likely * factor, self.high * factor)

    def widened(self, factor: float) -> "Range":
        """Return the range with its ends further out by a factor."""
        return between(self.low / factor, self.likely, self.high * factor)

    def whole(self) -> "Range":
        """Return the range in whole numbers."""
        return between(round(self.low), round(self.likely), round(self.high))

    def at_most(self, limit: float) -> "Range":
        """Return the range without what is above a limit."""
        return between(min(self.low, limit), min(self.likely, limit), min(self.high, limit))


class Basis(Value):
    """What a figure rests on."""

    origin: str
    """In words."""
    n: int = 0
    """How many of these; 0 for what is assumed."""


class Known(Value):
    """A range and what it rests on."""

    range: Range
    basis: Basis


def between(low: float, likely: float, high: float) -> Range:
    """Return a range."""
    return Range(low=low, likely=likely, high=high)


def exactly(value: float) -> Range:
    """Return a range without width."""
    return between(value, value, value)


def total(ranges: Iterable[Range]) -> Range:
    """Return the sum."""
    return sum(ranges, exactly(0.0))


def interval(values: Sequence[float]) -> Range:
    """Return where the mean of many more such values lies: two standard errors each way.

    One value alone may be off by a factor of two.
    """
    mean = statistics.fmean(values)
    if len(values) == 1:
        return between(mean / 2, mean, mean * 2)
    off = max(2 * statistics.stdev(values) / len(values) ** 0.5, SLACK * mean)
    return between(max(0.0, mean - off), mean, mean + off)
