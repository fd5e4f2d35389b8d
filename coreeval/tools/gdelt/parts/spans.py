"""Which crawl days make a part."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

SIZES = (100_000, 10_000, 1_000, 100, 10, 1)
"""Days, aligned on the calendar, so that a new day moves no border."""
CLOSED_ROWS = 2_000_000
"""Most rows of a part that no longer grows; ten English days have about 1.3 million."""
GROWING_ROWS = 200_000
"""Most rows of a part that may still grow, and is then made again."""
REACH = timedelta(days=2)
"""How far a story reaches: neighbouring days are compared, and later ones change nothing."""


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive crawl days, both included."""

    first: date
    last: date

    @property
    def reach(self) -> tuple[date, date]:
        """The days whose articles may tell the same stories."""
        return self.first - REACH, self.last + REACH


def spans(days: Mapping[date, int]) -> list[Span]:
    """Return the spans that the days, given with their rows, are to be kept in, in order.

    Each is the largest aligned stretch that has few enough rows.
    """
    newest = max(days, default=date.min)
    return list(_split(sorted(days), days, newest, SIZES))


def _split(
    chosen: list[date], rows: Mapping[date, int], newest: date, sizes: tuple[int, ...]
) -> Iterator[Span]:
    size, *smaller = sizes
    for start in sorted({day.toordinal() // size for day in chosen}):
        inside = [day for day in chosen if day.toordinal() // size == start]
        grows = (start + 1) * size + REACH.days > newest.toordinal()
        most = GROWING_ROWS if grows else CLOSED_ROWS
        if not smaller or sum(rows[day] for day in inside) <= most:
            yield Span(inside[0], inside[-1])
        else:
            yield from _split(inside, rows, newest, tuple(smaller))
