"""Whether the intervals and p-values of NumLeak are right, and how long one cell takes.

    OMP_NUM_THREADS=1 python -m benchmarks.numleak_statistics [--studies 400]

Series of 1200 months are made, heavy-tailed returns and a level that persists, and models that
recall them in known ways. Each study asks about some months drawn without replacement; what it
should find is the number over all 1200. An interval should hold it in 95 % of studies. Of models
that know only each year's mean, 5 % at most may seem to know more, and of models that compare
dates by their own values 2.5 % at most may seem not to.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import NamedTuple

import numpy as np

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import DateComparison, Point
from coreeval.evaluation.numleak.series import SeriesDefinition
from coreeval.evaluation.numleak.statistics import (
    AuditSettings,
    Metric,
    measure,
    pearson_r,
    signature,
)
from coreeval.evaluation.numleak.statistics.baselines import score_baselines
from coreeval.evaluation.numleak.statistics.date_intervals import Answers, Indices, collect_answers
from coreeval.evaluation.numleak.statistics.estimation import measure_ranks
from coreeval.evaluation.numleak.statistics.metrics import slope, within_tolerance
from coreeval.evaluation.numleak.statistics.nulls import shuffle_nulls
from coreeval.evaluation.statistics import Array, bootstrap_sums

MONTHS = 1200
TOLERANCE = 0.1
"""Of the series' standard deviation, which is 1."""
SETTINGS = AuditSettings(draws=500)
"""Enough, since errors of single intervals average out."""
SIZES = (8, 40, 120)
DEFINITION = SeriesDefinition.model_validate(
    {
        "id": "made", "name": "a made series", "quantity": "value", "unit": "percent",
        "sign": "signed", "decimals": 2, "frequency": "monthly", "release_lag_days": 0,
        "tolerances": [TOLERANCE], "source": {"path": "made.csv"},
    }
)  # fmt: skip
Model = Callable[[Array, np.random.Generator], Array]


def standardised(values: Array) -> Array:
    """Return values with mean 0 and variance 1."""
    return np.asarray((values - values.mean()) / values.std())


def returns(rng: np.random.Generator) -> Array:
    """Make a series without memory of its own, with tails as heavy as monthly returns have."""
    return standardised(rng.standard_t(5, MONTHS))


def level(rng: np.random.Generator) -> Array:
    """Make a series whose months resemble their neighbours."""
    values = np.zeros(MONTHS)
    for month in range(1, MONTHS):
        values[month] = 0.98 * values[month - 1] + rng.normal()
    return standardised(values)


def exact(truth: Array, rng: np.random.Generator) -> Array:
    """Say seven values in ten nearly exactly, the others roughly."""
    rough = rng.random(MONTHS) < 0.3
    return truth + rng.normal(0, np.where(rough, 0.3, 0.03))


def partly(truth: Array, rng: np.random.Generator) -> Array:
    """Recall every second value, and make up the others."""
    known = rng.random(MONTHS) < 0.5
    return np.where(known, truth + rng.normal(0, 0.05, MONTHS), rng.permutation(truth))


def heavy(truth: Array, rng: np.random.Generator) -> Array:
    """Recall all values, a few of them very badly."""
    return truth + 0.3 * rng.standard_t(3, MONTHS)


def unknowing(truth: Array, rng: np.random.Generator) -> Array:
    """Say plausible values that have nothing to do with the dates."""
    return rng.permutation(truth)


def yearly(truth: Array, rng: np.random.Generator) -> Array:
    """Know each year's mean, and nothing within it."""
    means = np.repeat(truth.reshape(-1, 12).mean(axis=1), 12)
    return means + rng.normal(0, 0.2, MONTHS)


SERIES: dict[str, Callable[[np.random.Generator], Array]] = {"returns": returns, "level": level}
MODELS: dict[str, Model] = {
    "exact": exact, "partly": partly, "heavy": heavy, "unknowing": unknowing, "yearly": yearly,
}  # fmt: skip
PERIODS = [Period(date(1900, 1, 1), "monthly").shift(month) for month in range(MONTHS)]


class World(NamedTuple):
    """A series, and what a model would say of each month."""

    truth: Array
    said: Array

    def points(self, months: Indices, *, drawings: int = 1) -> list[Point]:
        """Ask about some months, each so many times; later answers are near the first."""
        rng = np.random.default_rng(int(months[0]))
        return [
            Point(
                period=PERIODS[month], variant="value", status="parsed", seed=drawing,
                truth=float(self.truth[month]),
                estimate=float(self.said[month] + (rng.normal(0, 0.02) if drawing else 0.0)),
            )
            for drawing in range(drawings)
            for month in map(int, months)
        ]  # fmt: skip

    @property
    def values(self) -> Mapping[Period, float]:
        """The whole series."""
        return dict(zip(PERIODS, map(float, self.truth), strict=True))


def measures(world: World, points: list[Point]) -> dict[str, Metric]:
    """Return the numbers whose intervals are checked."""
    year = score_baselines(points, world.values, tolerance=TOLERANCE)["year"]
    answers = collect_answers(points)
    return {
        "r": pearson_r(points),
        "r percentile": percentile(answers, _r),
        "MAE": signature(points, tolerance=TOLERANCE, settings=SETTINGS).mae,
        "MAE percentile": percentile(answers, _mae),
        "within": within_tolerance(points, TOLERANCE),
        "slope": slope(points),
        "gain": year.gain,
        "partial r": year.partial_r,
    }


def percentile(answers: Answers, statistic: Callable[[Array], Array]) -> Metric:
    """Return what is not used, for comparison: the percentile interval of the bootstrap."""
    x, y, error = answers.truth, answers.estimate, answers.error
    rows = answers.per_date(np.ones_like(x), x, y, x * x, x * y, y * y, error)
    drawn = statistic(bootstrap_sums(rows, SETTINGS.draws, np.random.default_rng(0)))
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Metric(float(statistic(rows.sum(axis=0))), float(low), float(high), len(x), len(rows))


def _r(sums: Array) -> Array:
    n, x, y, xx, xy, yy, _ = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        r: Array = (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))
    return r


def _mae(sums: Array) -> Array:
    return np.asarray(sums[..., 6] / sums[..., 0])


def worlds() -> Iterator[tuple[str, World, Model]]:
    """Yield every model of every series."""
    for name, series in SERIES.items():
        truth = series(np.random.default_rng(1))
        for model, says in MODELS.items():
            world = World(truth, says(truth, np.random.default_rng(2)))
            yield f"{name}, {model}", world, says


def coverage(world: World, size: int, studies: int, drawings: int) -> dict[str, float]:
    """Return the share of studies whose interval holds the number over all months."""
    due = measures(world, world.points(np.arange(MONTHS)))
    rng = np.random.default_rng(3)
    held = dict.fromkeys(due, 0.0)
    for _ in range(studies):
        months = rng.choice(MONTHS, size, replace=False)
        for name, found in measures(world, world.points(months, drawings=drawings)).items():
            held[name] += (found.ci_low <= due[name].estimate <= found.ci_high) / studies
    return held


def alarms(truth: Array, says: Model, size: int, studies: int) -> tuple[float, float]:
    """Return how often p is up to 0.05, and how often values seem not to reach comparisons.

    The model speaks anew in each study: what it says of all months agrees with none by chance.
    """
    rng = np.random.default_rng(4)
    significant = decoupled = 0
    for _ in range(studies):
        world = World(truth, says(truth, rng))
        points = world.points(rng.choice(MONTHS, size, replace=False))
        nulls = shuffle_nulls(points, world.values, tolerance=TOLERANCE, settings=SETTINGS)
        significant += max(each.pearson_r.p_value for each in nulls.values()) <= 0.05
        pairs = [_compared(world, *rng.choice(MONTHS, 2, replace=False)) for _ in range(60)]
        decoupled += measure_ranks(pairs, points, world.values, settings=SETTINGS).gap.ci_low > 0
    return significant / studies, decoupled / studies


def _compared(world: World, first: int, second: int) -> DateComparison:
    """Compare two months by what the model says of each."""
    return DateComparison(
        first=PERIODS[first], second=PERIODS[second], variant="pair", status="parsed",
        higher="first" if world.truth[first] > world.truth[second] else "second",
        chosen="first" if world.said[first] > world.said[second] else "second",
    )  # fmt: skip


def time_one_cell() -> float:
    """Return the processor seconds that 120 points with 10,000 draws take."""
    _, world, _ = next(worlds())
    points = world.points(np.arange(0, MONTHS, 10))
    started = time.process_time()
    measure(points, definition=DEFINITION, values=world.values, settings=AuditSettings())
    return time.process_time() - started


def main() -> None:
    """Print coverage by world and size, rates of false alarms, and the time of one cell."""
    options = argparse.ArgumentParser()
    options.add_argument("--studies", type=int, default=400)
    studies: int = options.parse_args().studies
    time_one_cell()
    print(f"one cell of 120 points, 10,000 draws: {time_one_cell():.2f} s of one core")
    for name, world, says in worlds():
        for size, drawings in (*((size, 1) for size in SIZES), (40, 3)):
            held = coverage(world, size, studies, drawings)
            cells = "  ".join(f"{each} {share:.3f}" for each, share in held.items())
            print(f"{name:20} {size:3d} dates x {drawings}  {cells}", flush=True)
        significant, decoupled = alarms(world.truth, says, 40, studies)
        print(f"{name:20} p <= 0.05: {significant:.3f}  gap > 0: {decoupled:.3f}", flush=True)


if __name__ == "__main__":
    main()
