"""From what some samples used to what many more will use: a bootstrap over the samples."""

import numpy as np
from numpy.typing import NDArray

from coreeval.graph.forecast.ranges import Range, between

LEVEL = 0.95
DRAWS = 2000
"""Another seed then moves an end by about a fiftieth of the width."""
FEWEST = 2
"""Samples that have a spread."""
Table = NDArray[np.float64]
"""A row for each sample, a column for each thing that it used."""


def extrapolate(used: Table, samples: int, *, seed: int, draws: int = DRAWS) -> list[Range]:
    """Return for each column what so many more samples will use in all.

    The interval has two parts: the mean of the samples that were seen may be off (they are drawn
    anew, with replacement), and more samples of the same kind differ among themselves.

    Args:
        used: What was seen; one sample alone may be off by a factor of two.
        samples: How many more there are.
        seed: Where chance begins.
        draws: How often the samples are drawn anew.
    """
    if len(used) < FEWEST:
        return [between(each / 2, each, each * 2) for each in (used[0] * samples).tolist()]
    seen = len(used)
    chance = np.random.default_rng(seed)
    means = np.empty((draws, used.shape[1]))
    for draw in range(draws):  # one at a time, so that memory does not grow with the samples
        means[draw] = used[chance.integers(0, seen, seen)].mean(axis=0)
    noise = chance.standard_normal((draws, 1)) * used.std(axis=0, ddof=1) * np.sqrt(samples)
    sums = np.maximum(means * samples + noise, 0.0)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(sums, [tail, 1 - tail], axis=0)
    likely = used.mean(axis=0) * samples
    return [
        between(min(first, middle), middle, max(last, middle))
        for first, middle, last in zip(low.tolist(), likely.tolist(), high.tolist(), strict=True)
    ]
