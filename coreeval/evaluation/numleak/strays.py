"""Answers that no value of the series could be: a slip of the point, another unit or series.

One of them outweighs all others in r and in the mean error, so that a verdict on memory would be
one on the slip. The verdict is therefore given without them where they are few; every number that
is reported has them.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.signature import plural
from coreeval.evaluation.numleak.statistics.yearbook import Values

BEYOND: Final = 1.0
"""Ranges of all known values that an answer may lie beyond them. Ours: a series that grows may
leave its range, a guess may too, but not by as much again as it ever moved."""
FEW: Final = 0.05
"""Most of the answers that are set aside. Ours: more are no slips, but how the model answers."""


class Parted(NamedTuple):
    """The questions that a verdict rests on, and those set aside."""

    kept: list[Point]
    strays: list[Point]


def parted(points: Sequence[Point], values: Values) -> Parted:
    """Set aside the answers for a value that lie far beyond all values, if they are few."""
    if not values:
        return Parted(list(points), [])
    low, high = min(values.values()), max(values.values())
    reach = BEYOND * (high - low)
    answered = [each for each in points if each.variant == "value" and each.estimate is not None]
    strays = [
        each
        for each in answered
        if each.estimate is not None and not low - reach <= each.estimate <= high + reach
    ]
    if not reach or len(strays) > FEW * len(answered):
        return Parted(list(points), [])
    aside = {id(each) for each in strays}
    return Parted([each for each in points if id(each) not in aside], strays)


def told(strays: Sequence[Point], answered: int) -> tuple[str, ...]:
    """Say which answers a verdict does not rest on; nothing where there is none."""
    if not strays:
        return ()
    said = ", ".join(f"{each.estimate:g} for {each.period}" for each in strays[:3])
    more = f" and {len(strays) - 3} more" if len(strays) > 3 else ""
    lie = plural(len(strays), "lies", "lie")
    return (
        f"{len(strays)} of {answered} answers {lie} far beyond all that the series ever was ({said}"
        f"{more}): the verdict is given without them, and all other numbers have them.",
    )
