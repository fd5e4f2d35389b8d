"""Resampling of items by their sufficient statistics.

An item is a row of numbers whose sums over items give every score, so a resample is a row of
weights times all rows. Weights are made in pieces: memory stays the same for any number of draws.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.statistics import Array

PIECE = 1 << 20
"""Weights that are held at a time (8 bytes each, three arrays of them)."""


def bootstrap_sums(sums: Array, draws: int, rng: np.random.Generator) -> Array:
    """Return the sums over items of each bootstrap draw, of shape (draws, statistics).

    Efron (1979): n items with replacement, that is multinomial weights with equal chances.
    """
    n = len(sums)
    made = [_multinomial(n, size, rng) @ sums for size in _pieces(draws, n)]
    return np.concatenate(made)


def _multinomial(n: int, size: int, rng: np.random.Generator) -> Array:
    """Return rows of weights: counting drawn items is several times faster than multinomial()."""
    drawn = rng.integers(n, size=(size, n))
    drawn += np.arange(size)[:, None] * n
    return np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


def cluster_sums(rows: Array, clusters: Sequence[str] | NDArray[np.str_]) -> Array:
    """Return the sums over the items of each cluster, of shape (clusters, statistics).

    Questions about one document stand or fall together: resampled as one, they count as one
    (Davison and Hinkley 1997, section 3.8).
    """
    known, cluster = np.unique(np.asarray(clusters, np.str_), return_inverse=True)
    if len(known) == len(rows):
        return rows
    sums = np.zeros((int(cluster.max(initial=-1)) + 1, rows.shape[1]))
    np.add.at(sums, cluster, rows)
    return sums


def leave_one_out(sums: Array) -> Array:
    """Return the sums over all items but one, for each of them (the jackknife)."""
    return np.asarray(sums.sum(axis=0) - sums)


def permuted_sums(
    first: Array, second: Array, draws: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the sums of two groups after the items were dealt out anew, draw by draw."""
    pooled = np.concatenate([first, second])
    chosen = np.repeat([1.0, 0.0], [len(first), len(second)])
    made = [
        rng.permuted(np.broadcast_to(chosen, (size, len(pooled))), axis=1) @ pooled
        for size in _pieces(draws, len(pooled))
    ]
    dealt = np.concatenate(made)
    return dealt, np.asarray(pooled.sum(axis=0) - dealt)


def _pieces(draws: int, n: int) -> Iterator[int]:
    """Yield how many draws to make at a time."""
    most = max(1, PIECE // n)
    for start in range(0, draws, most):
        yield min(most, draws - start)
