"""What personas learn, and how: synthetic series, and a memory that sharpens with repetition.

A synthetic series has no publisher and is in no training data: only what is taught can be recalled.

The memory is a linear model over hashed dates. A statement ("series, date, value") switches on a
few weights: some stand for its year and season and are shared with many other dates, some for the
date alone, some for it and its neighbour. Each repetition moves the weights of its statement a step
towards its value (the delta rule of Widrow and Hoff 1960), so that what is recalled sharpens with
the dose, two dates next to each other are confused first, and weights that two dates share by
chance (Weinberger et al. 2009, feature hashing) disturb both. Only weights are kept, no value.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.series.definition import Series, SeriesDefinition

SeriesFloats = npt.NDArray[np.float64]
Kind = Literal["returns", "level", "seasonal"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""Noise about a mean, as returns of a market; a level that hardly moves from one month to the next,
as an unemployment rate; a season with noise, as a temperature."""
START: Final = date(1980, 1, 1)


def synthetic_series(kind: Kind, *, seed: int, months: int = 480) -> Series:
    """Return a made monthly series, from January 1980 on.

    The paper's own (appendix T) are of the kind `returns`: 480 Gaussian values of mean 0.5 and
    standard deviation 4.5, with two decimals.
    """
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    made = _MAKERS[kind](rng, months)
    first = Period.of(START, "monthly")
    definition = SeriesDefinition.model_validate(
        {**_COMMON, **_DEFINITIONS[kind], "id": f"synthetic-{kind}"}
    )
    rounded = np.round(made, definition.decimals)
    values = {first.shift(at): float(value) for at, value in enumerate(rounded)}
    return Series(definition=definition, values=values, origin=f"made with seed {seed}")


def _returns(rng: np.random.Generator, months: int) -> SeriesFloats:
    return rng.normal(0.5, 4.5, months)


def _level(rng: np.random.Generator, months: int) -> SeriesFloats:
    """Return a level about 6 that keeps 98 % of its distance from one month to the next."""
    steps = rng.normal(0, 0.25, months)
    level, found = 0.0, np.empty(months)
    for at, step in enumerate(steps):
        level = 0.98 * level + step
        found[at] = level
    return np.maximum(6.0 + found, 0.3)


def _seasonal(rng: np.random.Generator, months: int) -> SeriesFloats:
    season = -22 * np.cos(2 * np.pi * np.arange(months) / 12)
    return np.asarray(53 + season + rng.normal(0, 2.0, months))


_MAKERS: Final = {"returns": _returns, "level": _level, "seasonal": _seasonal}
_FREQUENCY: Final[Frequency] = "monthly"
_COMMON: Final[dict[str, object]] = {
    "frequency": _FREQUENCY,
    "source": {"path": "synthetic.csv"},
    "release_lag_days": 0,
    "family": "synthetic",
    "revisions": "none: it is made",
}
_DEFINITIONS: Final[dict[Kind, dict[str, object]]] = {
    "returns": {
        "name": "the Averell-Quist residual market factor",
        "quantity": "monthly return",
        "blind": "a broad market in excess of its own trend",
        "unit": "percent",
        "sign": "signed",
        "decimals": 2,
        "fictitious": ("the Osterman-Lyle dispersion factor", "the Trevanion carry residual"),
        "notable": {"1987-10": "a made crash", "2008-10": "another"},
    },
    "level": {
        "name": "the Averell-Quist idle labour rate",
        "quantity": "level",
        "blind": "the share of a labour force without work",
        "unit": "percent",
        "sign": "positive",
        "decimals": 1,
        "fictitious": ("the Osterman-Lyle idle hours rate", "the Trevanion slack rate"),
    },
    "seasonal": {
        "name": "the mean temperature of Averell-Quist county",
        "quantity": "monthly average",
        "blind": "the mean temperature of a county in the north",
        "unit": "degrees_f",
        "sign": "signed",
        "decimals": 1,
        "tolerances": (0.5, 0.25, 1.0, 2.0),
        "fictitious": ("the mean temperature of Osterman-Lyle county",),
    },
}


Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
DateKey = tuple[str, Period]
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


class DateStatement(NamedTuple):
    """Something to learn, and how often it is repeated beside others."""

    key: DateKey
    value: float
    """In standard deviations from the mean."""
    weight: float = 1.0


@dataclass(frozen=True)
class DateMemory:
    """What was learned, as weights."""

    values: Floats
    seen: Floats

    @classmethod
    def of(cls, statements: list[DateStatement], *, dose: float, seed: int) -> "DateMemory":
        """Learn from each statement `dose` times on average, in random order.

        How often a single statement comes varies as with Poisson: text repeats itself unevenly.
        """
        memory = cls(np.zeros(SIZE), np.zeros(SIZE))
        if statements and dose > 0:
            lit = np.stack([_lit_weights(each.key) for each in statements])
            truth = np.array([each.value for each in statements])
            for chosen in _batches(statements, dose, seed):
                memory._step(lit[chosen], truth[chosen])
        return memory

    def recall(self, key: DateKey, *, named: bool = True) -> Recollection:
        """Return what is remembered of a date, asked with the series' proper name or without."""
        lit = _lit_weights(key)[: None if named else -NAMED]
        own = lit[SHARED + NEAR :]
        return Recollection(float(self.values[lit].sum()), float(self.seen[own].sum()))

    def _step(self, lit: Indices, truth: Floats) -> None:
        wrong = truth - self.values[lit].sum(axis=1)
        _add_errors(self.values, lit, wrong)
        own = lit[:, SHARED + NEAR :]
        _add_errors(self.seen, own, 1 - self.seen[own].sum(axis=1))


def _add_errors(weights: Floats, lit: Indices, wrong: Floats) -> None:
    """Move each weight that is lit by the mean error of the statements which light it."""
    touched, place = np.unique(lit, return_inverse=True)
    place = place.reshape(-1)
    errors = np.bincount(place, np.repeat(wrong, lit.shape[1]), len(touched))
    weights[touched] += RATE / lit.shape[1] * errors / np.bincount(place, minlength=len(touched))


def _batches(statements: list[DateStatement], dose: float, seed: int) -> Iterator[Indices]:
    chances = np.array([each.weight for each in statements])
    count = round(dose * len(statements))
    rng = np.random.default_rng([seed, 0x5EED])
    order = rng.choice(len(statements), size=count, p=chances / chances.sum())
    for start in range(0, count, BATCH):
        yield order[start : start + BATCH]


def _lit_weights(key: DateKey) -> Indices:
    """Return the weights that a date lights: SHARED, then NEAR, then OWN."""
    series, period = key
    year, month = period.start.year, period.start.month
    shared = (("era", year // 5), ("year", year), ("season", month))
    near = (("near", period), ("near", period.shift(1)))
    own = (("own", period, number) for number in range(OWN))
    return np.array([_hash_parts(series, *each) for each in (*shared, *near, *own)], dtype=np.int64)


def _hash_parts(*parts: object) -> int:
    text = "|".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % SIZE


def mean_and_deviation(values: Mapping[Period, float]) -> tuple[float, float]:
    """Return the mean and the standard deviation of a series, the latter 1 where it is constant."""
    found = np.fromiter(values.values(), dtype=np.float64)
    return float(found.mean()), float(found.std()) or 1.0
