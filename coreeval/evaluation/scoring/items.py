"""A score kept item by item, so that resampling the items costs one product of matrices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PerItem:
    """What each item adds to a score, and how the sums make the score."""

    sums: Floats
    """Shape (n, s): a row of sufficient statistics for each item, nothing in it for an item that
    is not counted."""
    value: Callable[[Floats], Floats]
    """From sums over items, shape (..., s), to the score, shape (...); nan without any item."""
    notes: tuple[str, ...] = ()
    """What a reader of the score should be told, a sentence each."""

    @property
    def score(self) -> float:
        """The score of all items, each taken once."""
        return float(self.value(self.sums.sum(axis=0)))

    def resampled(self, weights: Floats) -> Floats:
        """Return the score for each row of weights, shape (draws, n): how often an item counts."""
        return self.value(weights @ self.sums)


def mean(
    values: Sequence[float] | NDArray[np.bool_ | np.float64],
    counted: Sequence[bool] | None = None,
    notes: tuple[str, ...] = (),
) -> PerItem:
    """Return the mean of one value an item, over the items that are counted (all by default)."""
    each = np.asarray(values, dtype=np.float64)
    weight = np.ones_like(each) if counted is None else np.asarray(counted, dtype=np.float64)
    return PerItem(np.column_stack([each * weight, weight]), ratio, notes)


def averaged(parts: Sequence[PerItem]) -> PerItem:
    """Return the mean of several scores of the same items, each of which counts with all of its."""
    ends = np.cumsum([part.sums.shape[-1] for part in parts])[:-1]

    def value(sums: Floats) -> Floats:
        cut = np.split(sums, ends, axis=-1)
        each = [part.value(own) for part, own in zip(parts, cut, strict=True)]
        return np.asarray(np.mean(each, axis=0))

    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return PerItem(np.hstack([part.sums for part in parts]), value, notes)


def ratio(sums: Floats) -> Floats:
    """Return first sum over second, nan where the second is 0."""
    top, bottom = sums[..., 0], sums[..., 1]
    found = np.full(np.shape(top), np.nan)
    return np.asarray(np.divide(top, bottom, out=found, where=bottom != 0))
