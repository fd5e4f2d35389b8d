"""Which crawl days make a part."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

SIZES = (100_000, 10_000, 1_000, 100, 10, 1)
"""Days, aligned on the calendar, so that a new day moves no border but the last."""
CLOSED_ROWS = 2_000_000
"""Most rows of a part that no longer grows; ten English days have about 1.3 million."""
SMALL_ROWS = 200_000
"""A store of so few rows is one part, and is made again whole."""
REACH = timedelta(days=2)
"""How far a story reaches. A day no longer grows when so many whole days are behind it."""


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive crawl days, both included."""

    first: date
    last: date
    grows: bool
    """Whether later days may still tell its stories; they are counted once it is closed."""

    @property
    def reach(self) -> tuple[date, date]:
        """The days whose articles are compared with those of the span."""
        return self.first - REACH, self.last if self.grows else self.last + REACH


def spans(days: Mapping[date, int]) -> list[Span]:
    """Return the spans that the days, given with their rows, are to be kept in, in order.

    Days that no longer grow are put together in the largest aligned stretches that have few enough
    rows; each that may grow is alone.
    """
    ordered = sorted(days)
    if sum(days.values()) <= SMALL_ROWS:
        return [Span(ordered[0], ordered[-1], grows=True)] if ordered else []
    open_from = ordered[-1] - REACH
    closed = [day for day in ordered if day < open_from]
    growing = [Span(day, day, grows=True) for day in ordered if day >= open_from]
    return [*_split(closed, days, SIZES), *growing]


def _split(
    chosen: Sequence[date], rows: Mapping[date, int], sizes: Sequence[int]
) -> Iterator[Span]:
    size, *smaller = sizes
    for start in sorted({day.toordinal() // size for day in chosen}):
        inside = [day for day in chosen if day.toordinal() // size == start]
        if not smaller or sum(rows[day] for day in inside) <= CLOSED_ROWS:
            yield Span(inside[0], inside[-1], grows=False)
        else:
            yield from _split(inside, rows, smaller)
