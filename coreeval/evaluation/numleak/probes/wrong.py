"""A wrong value for a date: far from the true one, and on the other side of zero for half of them.

How far is decided by the series: at least FAR times its widest tolerance, so that nobody who has
the value in mind takes the wrong one for it, and at least its standard deviation, so that one who
has not is not nearer to it than to others; at most twice that, so that it is no absurd number.
"""

import hashlib
from collections.abc import Mapping
from statistics import pstdev
from typing import Final

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series import SeriesDefinition

FAR: Final = 4.0
"""Widest tolerances that lie at least between a wrong value and the true one. Ours."""


def wrong_values(
    dates: list[Period], values: Mapping[Period, float], definition: SeriesDefinition, *, seed: int
) -> dict[Period, float]:
    """Return a wrong value for each date, in the digits of the series.

    Of a series that can be below zero, half of the wrong values have the other sign; of another
    one, half lie below the true value as far as that leaves room above zero.
    """
    least = max(FAR * max(definition.tolerances), pstdev(values.values()))
    order = sorted(dates, key=lambda date: _turn(seed, date))
    return {
        date: round(
            _wrong(values[date], least, seed, date, definition.sign, turned=at % 2 == 0),
            definition.decimals,
        )
        for at, date in enumerate(order)
    }


def _wrong(
    truth: float, least: float, seed: int, date: Period, sign: str, *, turned: bool
) -> float:
    distance = least * (1 + int.from_bytes(_turn(seed, date)[:4]) / 2**32)
    outward = 1.0 if truth >= 0 else -1.0
    if not turned:
        return truth + outward * distance
    if sign == "signed":
        return truth - outward * max(distance, abs(truth) + least / 2)
    return truth - distance if truth - distance > 0 else truth + distance


def _turn(seed: int, date: Period) -> bytes:
    return hashlib.sha256(f"wrong\0{seed}\0{date}".encode()).digest()
