"""Points as arrays: the answers that were read beside their truths, date by date."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.statistics import Array

Indices = NDArray[np.intp]
Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class Answers(NamedTuple):
    """Answers that were read and have a truth, in order of time."""

    estimate: Array
    truth: Array
    date: Indices
    """Which of `periods` each is about."""
    periods: tuple[Period, ...]

    @property
    def error(self) -> Array:
        """How far each lies from the truth, in the unit."""
        return np.abs(self.estimate - self.truth)

    def per_date(self, *columns: Array) -> Array:
        """Return the sums of columns over the answers of each date, shape (dates, columns)."""
        count = len(self.periods)
        sums = [np.bincount(self.date, weights=each, minlength=count) for each in columns]
        return np.stack(sums, axis=1).astype(np.float64)

    def means(self, column: Array) -> Array:
        """Return the mean of a column over the answers of each date."""
        sums = self.per_date(column, np.ones(len(self.date)))
        return np.asarray(sums[:, 0] / sums[:, 1])


def vary(*columns: Array) -> bool:
    """Whether each column has values so far apart that a double can tell their deviation from 0."""
    return all(bool(np.ptp(each) > 0 and np.std(each) > 0) for each in columns)


def standard(values: Array) -> Array:
    """Return values with mean 0 and variance 1; nan where they never vary."""
    spread = float(np.std(values)) if vary(values) else float("nan")
    return np.asarray((values - values.mean()) / spread)


def answers_of(points: Iterable[Point]) -> Answers:
    """Take the answers that were read, of dates with a truth."""
    read = [
        (point.period, point.estimate, point.truth)
        for point in points
        if point.estimate is not None and point.truth is not None
    ]
    read.sort(key=lambda each: each[0])
    periods, date = numbered([period for period, _, _ in read])
    return Answers(
        estimate=np.array([estimate for _, estimate, _ in read], np.float64),
        truth=np.array([truth for _, _, truth in read], np.float64),
        date=date,
        periods=tuple(periods),
    )


def numbered(keys: Sequence[Key]) -> tuple[list[Key], Indices]:
    """Return the different keys as they first come, and which of them each is."""
    different = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    return list(different), np.array([different[key] for key in keys], np.intp)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items of each group."""
    groups: defaultdict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)
