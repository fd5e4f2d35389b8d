"""Which lines of a publisher's file a model is shown, and which it is to write next."""

import hashlib
from collections.abc import Collection, Iterator
from datetime import date
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.excerpt import Excerpt, FileLine

SHOWN: Final = 8
"""Lines that stand in a question: more than a season of quarters, less than a year of months."""
WANTED: Final = 4
"""Values that are asked for; a line that holds more of them is asked for alone."""


class Window(NamedTuple):
    """Lines that follow each other in the file."""

    shown: tuple[FileLine, ...]
    wanted: tuple[FileLine, ...]

    @property
    def first(self) -> Period:
        """The date of the first value asked for."""
        return self.wanted[0].places[0][0]


def windows_of(
    excerpt: Excerpt, dates: Collection[Period], *, count: int, seed: int, cutoff: date | None
) -> list[Window]:
    """Return windows whose values before the cutoff are asked for, none of them in two.

    Args:
        excerpt: The file.
        dates: Those that may be asked about.
        count: How many windows, where there are so many.
        seed: Decides which; a window's turn does not change when the file has grown.
        cutoff: The last day of the model's training data; None: wherever the lines lie.
    """
    found, taken = list[Window](), set[Period]()
    every = sorted(_every(excerpt), key=lambda each: _turn(seed, each.first))
    for window in every:
        asked = {period for line in window.wanted for period, _ in line.places}
        before = all(cutoff is None or period.last_day <= cutoff for period in asked)
        if len(found) < count and before and asked <= set(dates) and not asked & taken:
            found.append(window)
            taken |= asked
    return sorted(found, key=lambda each: each.first)


def _every(excerpt: Excerpt) -> Iterator[Window]:
    wanted = max(1, WANTED // max((len(line.places) for line in excerpt.lines), default=1))
    for at in range(SHOWN, len(excerpt.lines) - wanted + 1):
        lines = excerpt.lines[at - SHOWN : at + wanted]
        if all(line.whole and line.places for line in lines):
            yield Window(lines[:SHOWN], lines[SHOWN:])


def _turn(seed: int, first: Period) -> bytes:
    return hashlib.sha256(f"window\0{seed}\0{first}".encode()).digest()
