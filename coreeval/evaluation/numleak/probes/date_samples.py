"""The dates to ask about, spread over eras, notable dates and the cutoff, and wrong values.

A hash of a date and the seed determines its order, so after a series has grown by a month, most
questions are the same as before and already answered.

The distance of a wrong value from the true one depends on the series: at least FAR times its widest
tolerance, so that a model that knows the value does not mistake the wrong one for it, and at least
its standard deviation, so that a model that does not know it is not closer to it than to others; at
most twice that, so that it is not absurd. Half of them have the opposite sign.
"""

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import pstdev
from typing import Final

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Stratum, find_stratum
from coreeval.evaluation.numleak.series import SeriesDefinition

STRATUM_SHARES: Final[Mapping[Stratum, float]] = {"pre": 0.5, "near": 0.25, "post": 0.25}
"""Target share of each stratum in a drawing, if the series has enough dates.

Our choice: half are dates that a model can remember, with enough dates for a comparison that it can
hardly know.
"""
NOTABLE_SHARE: Final = 0.25
"""Largest share of notable dates among those before the cutoff.

Our choice: both kinds must be frequent enough to be compared.
"""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """The dates drawn with one seed, in chronological order."""

    seed: int
    dates: tuple[Period, ...]
    notes: tuple[str, ...] = ()
    """Notes on shortfalls: fewer dates than asked for, or an empty stratum."""


def draw_dates(
    dates: Iterable[Period],
    *,
    count: int,
    seeds: Sequence[int],
    cutoff: date | None,
    notable: frozenset[Period] = frozenset(),
) -> list[Drawing]:
    """Return one drawing for each seed; no two drawings share a date.

    Args:
        dates: The dates that have a value.
        count: The size of each drawing, if there are enough dates.
        seeds: One for each drawing.
        cutoff: The last day of the model's training data; None if it is not known.
        notable: Dates that the series lists as well known.
    """
    left, drawings = set(dates), list[Drawing]()
    for seed in seeds:
        drawing = _draw_seed(left, count, seed, cutoff, notable)
        left -= set(drawing.dates)
        drawings.append(drawing)
    return drawings


def _draw_seed(
    dates: set[Period], count: int, seed: int, cutoff: date | None, notable: frozenset[Period]
) -> Drawing:
    strata = defaultdict[Stratum, list[Period]](list)
    for period in sorted(dates):
        strata[find_stratum(period, cutoff)].append(period)
    quotas = _quotas({name: len(found) for name, found in strata.items()}, count)
    chosen = [
        period
        for name, quota in quotas.items()
        for period in itertools.islice(_in_turn(strata[name], quota, seed, notable), quota)
    ]
    notes = _shortage(quotas, len(dates), count, seed)
    return Drawing(seed=seed, dates=tuple(sorted(chosen)), notes=tuple(notes))


def _quotas(there: Mapping[Stratum, int], count: int) -> dict[Stratum, int]:
    """Return the number of dates to draw from each stratum; others make up for a short one."""
    if "unknown" in there:
        return {"unknown": min(count, there["unknown"])}
    wanted = {name: round(share * count) for name, share in STRATUM_SHARES.items()}
    quotas = {name: min(wanted[name], there.get(name, 0)) for name in STRATUM_SHARES}
    for name in STRATUM_SHARES:
        lacking = count - sum(quotas.values())
        quotas[name] = max(0, min(there.get(name, 0), quotas[name] + lacking))
    return quotas


def _shortage(quotas: Mapping[Stratum, int], there: int, count: int, seed: int) -> Iterator[str]:
    if there < count:
        yield (
            f"seed {seed}: only {there} dates are left to ask about instead of {count}, so all of "
            "them are used"
        )
    for name, share in STRATUM_SHARES.items():
        wanted, got = round(share * count), quotas.get(name, 0)
        if "unknown" not in quotas and got < wanted:
            yield (
                f"seed {seed}: only {got} of the {wanted} requested dates {_WHERE[name]} are "
                "available"
            )


_WHERE: Final[Mapping[Stratum, str]] = {
    "pre": "before the cutoff",
    "near": "within six months of the cutoff",
    "post": "after the cutoff",
}


def _in_turn(
    dates: Sequence[Period], quota: int, seed: int, notable: frozenset[Period]
) -> Iterator[Period]:
    """Yield some notable dates first, then dates from each era in turn."""
    order = sorted(dates, key=lambda period: _date_turn(seed, str(period)))
    known = [period for period in order if period in notable][: round(NOTABLE_SHARE * quota)]
    yield from known
    eras = defaultdict[int, list[Period]](list)
    for period in order:
        if period not in notable:
            eras[era_of(period)].append(period)
    rounds = itertools.zip_longest(*(eras[era] for era in sorted(eras)))
    yield from (period for each in rounds for period in each if period is not None)
    yield from (period for period in order if period in notable and period not in known)


def era_of(period: Period) -> int:
    """Return the first year of a date's decade."""
    return period.start.year // 10 * 10


def draw_pairs(
    values: Mapping[Period, float], *, count: int, seed: int
) -> list[tuple[Period, Period]]:
    """Return pairs of dates with different values, in the order used in the question.

    The later date comes first in half of the pairs where it is the higher one, and in half of the
    others. So always answering "the first" or "the later" has no advantage.
    """
    unlike = (pair for pair in itertools.combinations(sorted(values), 2)
              if values[pair[0]] != values[pair[1]])  # fmt: skip
    order = sorted(unlike, key=lambda pair: _date_turn(seed, f"{pair[0]} {pair[1]}"))[:count]
    seen, pairs = {True: 0, False: 0}, list[tuple[Period, Period]]()
    for earlier, later in order:
        rising = values[later] > values[earlier]
        seen[rising] += 1
        turned = seen[rising] % 2 == 0
        pairs.append((later, earlier) if turned else (earlier, later))
    return pairs


def _date_turn(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{text}".encode()).digest()


FAR: Final = 4.0
"""Least distance between a wrong value and the true one, in multiples of the widest tolerance.

Our choice.
"""


def draw_wrong_values(
    dates: list[Period], values: Mapping[Period, float], definition: SeriesDefinition, *, seed: int
) -> dict[Period, float]:
    """Return a wrong value for each date, with the number of decimals of the series.

    If the series can be below zero, half of the wrong values have the opposite sign. Otherwise half
    of them are below the true value, if there is room above zero.
    """
    least = max(FAR * max(definition.tolerances), pstdev(values.values()))
    order = sorted(dates, key=lambda date: _value_turn(seed, date))
    return {
        date: round(
            _make_wrong_value(values[date], least, seed, date, definition.sign, turned=at % 2 == 0),
            definition.decimals,
        )
        for at, date in enumerate(order)
    }


def _make_wrong_value(
    truth: float, least: float, seed: int, date: Period, sign: str, *, turned: bool
) -> float:
    distance = least * (1 + int.from_bytes(_value_turn(seed, date)[:4]) / 2**32)
    outward = 1.0 if truth >= 0 else -1.0
    if not turned:
        return truth + outward * distance
    if sign == "signed":
        return truth - outward * max(distance, abs(truth) + least / 2)
    return truth - distance if truth - distance > 0 else truth + distance


def _value_turn(seed: int, date: Period) -> bytes:
    return hashlib.sha256(f"wrong\0{seed}\0{date}".encode()).digest()
