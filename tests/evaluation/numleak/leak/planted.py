"""Signals of which it is known where they come from, beside a recall of known quality."""

from typing import Literal

import numpy as np

from coreeval.evaluation.numleak.leak.mediation import DateTriple
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.statistics import Array

Origin = Literal["recall", "truth", "nothing"]
START = Period.parse("1980-01", "monthly")
TIED = 0.74
"""Correlation of a signal with what it is made from: as Sonnet's with the truth (section 6)."""


def planted(origin: Origin, recall_r: float, dates: int, seed: int) -> list[DateTriple]:
    """Return dates whose signal is made from recall, from the truth, or from neither."""
    rng = np.random.default_rng([seed, dates])
    truth = rng.standard_t(5, dates) / np.sqrt(5 / 3)
    recall = truth + rng.normal(0, np.sqrt(1 / recall_r**2 - 1), dates)
    return triples(signal_of(origin, truth, recall * recall_r, rng), recall, truth)


def signal_of(origin: Origin, truth: Array, recall: Array, rng: np.random.Generator) -> Array:
    """Return a signal; truth and recall have the deviation 1."""
    noise = rng.normal(0, np.sqrt(1 / TIED**2 - 1), len(truth))
    made: dict[Origin, Array] = {
        "recall": recall + noise,
        "truth": truth + noise,
        "nothing": rng.normal(size=len(truth)),
    }
    return made[origin]


def triples(signal: Array, recall: Array, truth: Array) -> list[DateTriple]:
    """Return the columns as one triple for each month from January 1980 on."""
    rows = zip(signal.tolist(), recall.tolist(), truth.tolist(), strict=True)
    return [DateTriple(START.shift(at), *row) for at, row in enumerate(rows)]
