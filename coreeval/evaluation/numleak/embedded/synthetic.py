"""Made series, of no publisher and in no training data: only what is taught can be recalled."""

from datetime import date
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.series.series import Series

Floats = npt.NDArray[np.float64]
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
    values = {first.shifted(at): float(value) for at, value in enumerate(rounded)}
    return Series(definition=definition, values=values, origin=f"made with seed {seed}")


def _returns(rng: np.random.Generator, months: int) -> Floats:
    return rng.normal(0.5, 4.5, months)


def _level(rng: np.random.Generator, months: int) -> Floats:
    """Return a level about 6 that keeps 98 % of its distance from one month to the next."""
    steps = rng.normal(0, 0.25, months)
    level, found = 0.0, np.empty(months)
    for at, step in enumerate(steps):
        level = 0.98 * level + step
        found[at] = level
    return np.maximum(6.0 + found, 0.3)


def _seasonal(rng: np.random.Generator, months: int) -> Floats:
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
