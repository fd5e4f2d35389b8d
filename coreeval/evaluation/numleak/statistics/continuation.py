"""The publisher's file continued: exact values tell of the file, near ones of its level."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coreeval.evaluation.numleak.points import Continued
from coreeval.evaluation.numleak.statistics.answers import Indices, numbered
from coreeval.evaluation.numleak.statistics.intervals import RATIO, UNDEFINED, jackknifed, share
from coreeval.evaluation.numleak.statistics.measured import Metric
from coreeval.evaluation.numleak.statistics.metrics import near
from coreeval.evaluation.statistics import Array


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """What came of lines that were to follow; intervals are over stretches of the file.

    Exact is the published number to its last digit, over the values that were read.
    """

    stretches: int
    n: int
    """Values asked for."""
    read: Metric
    """Share of them that the answers have."""
    exact: Metric
    exact_untold: Metric
    """Exact, of the values that do not stand in the question: those cannot be copied from it."""
    last_exact: Metric
    """What repeating the last value shown gets exactly."""
    mean_exact: Metric
    """What the mean of the values shown gets exactly, in the digits of the series."""
    within_tolerance: Metric
    last_within: Metric
    mean_within: Metric
    gain: Metric
    """1 - mean absolute error / that of repeating the last value; above 0 the model is nearer."""
    mean_gain: Metric
    """The same against the mean of the values shown."""


def continuation(rows: Sequence[Continued], *, tolerance: float, decimals: int) -> Continuation:
    """Return how near the lines are, beside those of one who only looks at the lines shown."""
    _, window = numbered([row.window for row in rows])
    read = [row for row in rows if row.estimate is not None]
    untold = [row for row in read if not row.told]
    table = _Table(read, decimals)
    return Continuation(
        stretches=int(window.max()) + 1 if len(window) else 0,
        n=len(rows),
        read=share([row.estimate is not None for row in rows], window),
        exact=table.within(table.said, 0.0),
        exact_untold=(left := _Table(untold, decimals)).within(left.said, 0.0),
        last_exact=table.within(table.last, 0.0),
        mean_exact=table.within(table.mean, 0.0),
        within_tolerance=table.within(table.said, tolerance),
        last_within=table.within(table.last, tolerance),
        mean_within=table.within(table.mean, tolerance),
        gain=table.gain(table.last),
        mean_gain=table.gain(table.mean),
    )


class _Table:
    """Values that were read, as arrays."""

    def __init__(self, rows: Sequence[Continued], decimals: int) -> None:
        _, self._window = numbered([row.window for row in rows])
        self._truth = np.array([row.truth for row in rows], np.float64)
        self.said = np.array([row.estimate for row in rows], np.float64)
        self.last = np.array([row.last for row in rows], np.float64)
        self.mean = np.array([round(row.mean, decimals) for row in rows], np.float64)

    def within(self, guess: Array, tolerance: float) -> Metric:
        """Return the share at most so far from the truth."""
        return share(near(np.abs(guess - self._truth), tolerance) > 0, self._window)

    def gain(self, guess: Array) -> Metric:
        """Return what the answers save of a guess's error."""
        if not len(self._truth):
            return UNDEFINED
        errors = np.abs(self.said - self._truth), np.abs(guess - self._truth)
        return jackknifed(_sums(errors, self._window), len(self._truth), _saved, RATIO)


def _sums(columns: Sequence[Array], window: Indices) -> Array:
    sums = [np.bincount(window, weights=each) for each in columns]
    return np.stack(sums, axis=1).astype(np.float64)


def _saved(sums: Array) -> Array:
    """1 - error / error of the guess; nan where the guess makes none."""
    wrong = sums[..., 1] > 0
    return np.where(wrong, 1 - sums[..., 0] / np.where(wrong, sums[..., 1], 1.0), np.nan)
