"""What GDELT's archive holds at all: nothing is asked about the rest."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from coreeval.schema import Window
from coreeval.tools.gdelt.holes import HOLES

FIRST = datetime(2017, 1, 1, tzinfo=UTC)
"""Earlier starts are refused: `Invalid query start date.`"""
HOLE = Window(start=HOLES[0].start, end=HOLES[0].end)
"""GDELT recorded nothing in this time."""


def held(window: Window, now: datetime) -> Iterator[Window]:
    """Yield the spans of a window that the archive can hold, newest first."""
    start, end = max(window.start, FIRST), min(window.end, now)
    for one in (
        Window(start=max(start, HOLE.end), end=end),
        Window(start=start, end=min(end, HOLE.start)),
    ):
        if one.start < one.end:
            yield one


def gaps(window: Window, now: datetime) -> tuple[str, ...]:
    """Return the whole days of a window that the archive cannot hold, both ends included."""
    spans = sorted(held(window, now), key=lambda span: span.start)
    edges = [window.start, *itertools.chain.from_iterable((s.start, s.end) for s in spans)]
    missing = zip(edges[::2], [*edges[1::2], window.end], strict=True)
    return tuple(days for start, end in missing if (days := _whole_days(start, end)))


def _whole_days(start: datetime, end: datetime) -> str:
    one = timedelta(days=1)
    first = (start.astimezone(UTC) + one - timedelta(microseconds=1)).date()
    last = end.astimezone(UTC).date() - one
    return f"{first}..{last}" if first <= last else ""
