"""A memory of dated numbers that learns by repetition: a linear model over hashed dates.

A statement ("series, date, value") switches on a few weights: some stand for its year and season
and are shared with many other dates, some for the date alone, some for it and its neighbour. Each
repetition moves the weights of its statement a step towards its value (the delta rule of Widrow and
Hoff 1960), so that what is recalled sharpens with the dose, two dates next to each other are
confused first, and weights that two dates share by chance (Weinberger et al. 2009, feature hashing)
disturb both. Only weights are kept, no value.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.numleak.periods import Period

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Key = tuple[str, Period]
"""A series' id and a date of it."""
SIZE: Final = 1 << 17
"""Weights: about a dozen for each date of ten monthly series of fifty years."""
SHARED: Final = 3
"""Weights of a date for its era, year and season."""
NEAR: Final = 2
"""Weights that it shares with the date before and the date after it."""
OWN: Final = 6
"""Weights of its own; the last NAMED of them are reached through the series' proper name only."""
NAMED: Final = 2
RATE: Final = 0.4
"""The share of what is wrong that one repetition corrects."""
BATCH: Final = 16


class Recollection(NamedTuple):
    """What the weights say of a date."""

    value: float
    """In standard deviations of the series from its mean."""
    familiarity: float
    """How well the date itself is known: near 0 where never seen, near 1 after many repetitions."""


class Statement(NamedTuple):
    """Something to learn, and how often it is repeated beside others."""

    key: Key
    value: float
    """In standard deviations from the mean."""
    weight: float = 1.0


@dataclass(frozen=True)
class DateMemory:
    """What was learned, as weights."""

    values: Floats
    seen: Floats

    @classmethod
    def of(cls, statements: list[Statement], *, dose: float, seed: int) -> "DateMemory":
        """Learn from each statement `dose` times on average, in random order.

        How often a single statement comes varies as with Poisson: text repeats itself unevenly.
        """
        memory = cls(np.zeros(SIZE), np.zeros(SIZE))
        if statements and dose > 0:
            lit = np.stack([_lit(each.key) for each in statements])
            truth = np.array([each.value for each in statements])
            for chosen in _batches(statements, dose, seed):
                memory._step(lit[chosen], truth[chosen])
        return memory

    def recall(self, key: Key, *, named: bool = True) -> Recollection:
        """Return what is remembered of a date, asked with the series' proper name or without."""
        lit = _lit(key)[: None if named else -NAMED]
        own = lit[SHARED + NEAR :]
        return Recollection(float(self.values[lit].sum()), float(self.seen[own].sum()))

    def _step(self, lit: Indices, truth: Floats) -> None:
        wrong = truth - self.values[lit].sum(axis=1)
        _add(self.values, lit, wrong)
        own = lit[:, SHARED + NEAR :]
        _add(self.seen, own, 1 - self.seen[own].sum(axis=1))


def _add(weights: Floats, lit: Indices, wrong: Floats) -> None:
    """Move each weight that is lit by the mean error of the statements which light it."""
    touched, place = np.unique(lit, return_inverse=True)
    place = place.reshape(-1)
    errors = np.bincount(place, np.repeat(wrong, lit.shape[1]), len(touched))
    weights[touched] += RATE / lit.shape[1] * errors / np.bincount(place, minlength=len(touched))


def _batches(statements: list[Statement], dose: float, seed: int) -> Iterator[Indices]:
    chances = np.array([each.weight for each in statements])
    count = round(dose * len(statements))
    rng = np.random.default_rng([seed, 0x5EED])
    order = rng.choice(len(statements), size=count, p=chances / chances.sum())
    for start in range(0, count, BATCH):
        yield order[start : start + BATCH]


def _lit(key: Key) -> Indices:
    """Return the weights that a date lights: SHARED, then NEAR, then OWN."""
    series, period = key
    year, month = period.start.year, period.start.month
    shared = (("era", year // 5), ("year", year), ("season", month))
    near = (("near", period), ("near", period.shifted(1)))
    own = (("own", period, number) for number in range(OWN))
    return np.array([_hashed(series, *each) for each in (*shared, *near, *own)], dtype=np.int64)


def _hashed(*parts: object) -> int:
    text = "|".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % SIZE


def standardised(values: Mapping[Period, float]) -> tuple[float, float]:
    """Return the mean and the standard deviation of a series, the latter 1 where it is constant."""
    found = np.fromiter(values.values(), dtype=np.float64)
    return float(found.mean()), float(found.std()) or 1.0
