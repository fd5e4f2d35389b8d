"""The scores of a model that remembers no date, and the number of answers exact to the last digit.

A persistent level gives a high r without memory: baselines know the mean, the year, the season or
the previous value.

A model that roughly knows the level of a series is near its values, and sometimes exact; among
answers a few digits off, the exact ones are then not more frequent than the others. Memory of
digits makes exact answers far more frequent than near misses. This detects memory in series whose
level is easy to know, and memory of a part of the dates, which no error can show.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.replies import Point
from coreeval.evaluation.numleak.statistics.date_intervals import (
    FISHER,
    RATIO,
    UNDEFINED,
    Answers,
    Indices,
    all_vary,
    collect_answers,
    jackknife,
    saved_share,
    share_interval,
    standardise,
)
from coreeval.evaluation.numleak.statistics.measurements import (
    Baseline,
    BaselineName,
    Exactness,
    Metric,
)
from coreeval.evaluation.numleak.statistics.metrics import NO_SPREAD, correlation, mark_near
from coreeval.evaluation.statistics import SIGNIFICANCE, Array

SeriesValues = Mapping[Period, float]
_HALF_A_YEAR: Final[dict[Frequency, int]] = {
    "daily": 120, "weekly": 26, "monthly": 6, "quarterly": 2,
}  # fmt: skip
"""The fewest values of a year for its mean.

With fewer, a single value would be half of its year's mean, and therefore half of the answer.
"""

_LONGEST_STEP: Final[dict[Frequency, int]] = {"daily": 7}
"""The most periods from one value to the next, if not the usual step.

Holidays may close a market for a week.
"""


def knows_most_periods(values: SeriesValues) -> bool:
    """Return whether at least half of the periods from the first to the last have a value.

    If the values are usually two periods apart, only every other period counts. With fewer, such as
    only those at the dates asked about, neither the means of the years nor the previous values are
    known.
    """
    if not values:
        return False
    return 2 * _usual_step(values) * len(values) > min(values).count_until(max(values))


def _usual_step(values: SeriesValues) -> int:
    """Return 2 if at least half of the steps between values are two periods long, otherwise 1.

    A series may be published every other year, quarter, month or week. Longer steps are not
    usual: they rather come from the choice of the dates asked about.
    """
    steps = [before.count_until(date) for before, date in pairwise(sorted(values))]
    return 2 if steps and 2 * steps.count(2) >= len(steps) else 1


def find_season(period: Period) -> int:
    """Return the part of the year of a date: its month or quarter."""
    return period.quarter if period.frequency == "quarterly" else period.start.month


def year_means(values: SeriesValues) -> SeriesValues:
    """Map each date to the mean of its year, including the date, if the year has enough values.

    Empty for an annual series, because its year's mean is the answer.
    """
    least = _HALF_A_YEAR.get(next(iter(values)).frequency) if values else None
    return _means(values, lambda date: date.start.year, least) if least else {}


def _means_of_others(values: SeriesValues) -> SeriesValues:
    """Map each date to the mean of the other values of its year, if there are at least two.

    Empty if that leaves out most dates.
    """
    sums, counts = defaultdict[int, float](float), Counter(date.start.year for date in values)
    for date, value in values.items():
        sums[date.start.year] += value
    found = {
        date: (sums[date.start.year] - value) / (counts[date.start.year] - 1)
        for date, value in values.items()
        if counts[date.start.year] > 2
    }
    return found if 2 * len(found) >= len(values) else {}


def season_means(values: SeriesValues) -> SeriesValues:
    """Map each date to the mean of its season over the years; empty for an annual series."""
    if not values or next(iter(values)).frequency == "annual":
        return {}
    return _means(values, find_season, 2)


def _means(values: SeriesValues, group: Callable[[Period], Hashable], least: int) -> SeriesValues:
    """Map each date to the mean of its group, if the group has enough values."""
    sums: defaultdict[Hashable, float] = defaultdict(float)
    counts = Counter(group(date) for date in values)
    for date, value in values.items():
        sums[group(date)] += value
    kept = (date for date in values if counts[group(date)] >= least)
    return {date: sums[group(date)] / counts[group(date)] for date in kept}


def score_baselines(
    points: Sequence[Point], values: SeriesValues, *, tolerance: float
) -> dict[BaselineName, Baseline]:
    """Return the scores of each way of answering without memory on the dates that were answered.

    Means are over all published values, including the one asked about, as in a yearbook.
    """
    guesses = guesses_without_memory(values) if values else {}
    compared = {name: _score_baseline(points, guess, tolerance) for name, guess in guesses.items()}
    return {name: each for name, each in compared.items() if each is not None}


def guesses_without_memory(values: SeriesValues) -> dict[BaselineName, SeriesValues]:
    """Return the guesses of each method without memory, for the dates that it covers.

    Without values for most periods, the year's mean is estimated from its other values. It is a
    weaker guess than the mean: it can show that answers are inexact, but not that they are exact.
    """
    overall = float(np.mean(list(values.values())))
    constant, seasons = dict.fromkeys(values, overall), season_means(values)
    if not knows_most_periods(values):
        return {"constant": constant, "year": _means_of_others(values), "season": seasons}
    years, longest = year_means(values), _usual_step(values)
    return {
        "constant": constant,
        "year": years,
        "season": seasons,
        "year_and_season": {
            date: years[date] + seasons[date] - overall for date in years.keys() & seasons.keys()
        },
        "previous": {
            date: values[before]
            for before, date in pairwise(sorted(values))
            if before.count_until(date) <= _LONGEST_STEP.get(date.frequency, longest)
        },
    }


def _nearer_neighbours(values: SeriesValues) -> SeriesValues:
    """Map each date to the nearer of the values before and after it, however distant in time.

    If the values of most periods are unknown, these stand for the unknown neighbours.
    """
    ordered = sorted(values)
    around = zip(ordered, ordered[1:], ordered[2:], strict=False)
    return {
        date: min(values[before], values[after], key=lambda near: abs(near - values[date]))
        for before, date, after in around
    }


def _score_baseline(
    points: Sequence[Point], guess: SeriesValues, tolerance: float
) -> Baseline | None:
    """Compare the model with one way of answering, on the dates that this way covers."""
    answers = collect_answers(point for point in points if point.period in guess)
    if not answers.periods:
        return None
    guessed = np.array([guess[period] for period in answers.periods])[answers.date]
    error, other = answers.error, np.abs(guessed - answers.truth)
    hits, other_hits = mark_near(error, tolerance), mark_near(other, tolerance)
    errors = answers.per_date(error, other)
    sums = answers.per_date(hits - other_hits, np.ones_like(error))
    n = len(error)
    return Baseline(
        pearson_r=correlation(guessed, answers.truth),
        mae=float(other.mean()),
        within_tolerance=float(other_hits.mean()),
        partial_r=_partial(answers, guessed),
        gain=jackknife(errors, n, saved_share, RATIO),
        within_gain=jackknife(sums, n, _within_gain),
    )


def _partial(answers: Answers, guessed: Array) -> Metric:
    columns = (answers.truth, answers.estimate, guessed)
    if len(answers.periods) < 4 or not all_vary(*columns):
        return UNDEFINED._replace(n=len(guessed), dates=len(answers.periods))
    x, y, z = map(standardise, columns)
    sums = answers.per_date(np.ones_like(x), x, y, z, x * x, y * y, z * z, x * y, x * z, y * z)
    return jackknife(sums, len(x), _partial_r, FISHER)


def _partial_r(sums: Array) -> Array:
    """Return the partial correlation of truths and answers; 0 if either has no variance left."""
    n, x, y, z, xx, yy, zz, xy, xz, yz = np.moveaxis(sums, -1, 0)
    vx, vy, vz = xx / n - (x / n) ** 2, yy / n - (y / n) ** 2, zz / n - (z / n) ** 2
    cxy, cxz, cyz = xy / n - x * y / n**2, xz / n - x * z / n**2, yz / n - y * z / n**2
    given = np.maximum(vz, NO_SPREAD)
    left = np.maximum(vx - cxz**2 / given, 0) * np.maximum(vy - cyz**2 / given, 0)
    varies = left > NO_SPREAD
    r = (cxy - cxz * cyz / given) / np.sqrt(np.where(varies, left, 1.0))
    return np.where(varies, np.clip(r, -1, 1), 0.0)


def _within_gain(sums: Array) -> Array:
    return np.asarray(sums[..., 0] / sums[..., 1])


NEAR_DIGITS: Final = (50, 25, 10, 5, 2)
"""Distances that still count as near misses, in steps of the series.

The largest distance that `CLOSE` allows is used, but at least two. Within two steps, the errors of
a model that knows the level are still about equally frequent.
"""
CLOSE: Final = 0.25
"""Largest near-miss distance, as a share of the best baseline's error.

A model with a smaller mean error remembers anyway: its gain is above the weakest memory's
(`MEMORY_GAIN`, 0.77).
"""
LAGS: Final = tuple(range(-12, 13))
"""The shifts tried, in periods: up to a year of months either way."""
FACTORS: Final = (1.0, 0.001, 0.01, 100.0, 1000.0)
"""The ratios of answers to values tried: fractions for percent, thousands for units, and back."""
PLAIN: Final = 0.75
"""Weight of the plain alignment.

Our choice: most models that remember give the value of the date in its unit.
"""
_STEPS: Final = (100, 50, 25, 20, 10, 5, 2)
"""Possible steps of a series in last digits, such as 25 hundredths for a policy rate."""
_MOSTLY: Final = 0.95
"""The share of values on a grid from which the grid counts as that of the series."""
_FEW: Final = 20
"""The fewest near misses of a baseline, including exact hits, for its exact share to be used."""
_UNKNOWN_SHARE: Final = 0.5
"""The least exact share expected without memory if the values of most periods are unknown.

Our choice: a model that knows the level to within a step is exact in up to a half, and the
baselines that would show this are missing.
"""
_EXACT: Final = 0.5 + 1e-6
"""The largest error of an exact answer, in last digits: half of one, plus rounding."""


class _Alignment(NamedTuple):
    """The comparison of answers with shifted or scaled values."""

    shift: int
    factor: float
    exact: Array
    """1 for exact answers, 0 for others; only answers whose date has a value at this shift."""
    near: int
    dealt_p: float
    p_value: float


class _ExactChance(NamedTuple):
    """The distance that counts as near, and the exact share of near answers without memory."""

    reach: float
    """The distance in last digits."""
    expected: float


def measure_exactness(points: Sequence[Point], values: SeriesValues, decimals: int) -> Exactness:
    """Count the exact answers at the alignment with most of them: plain, shifted or scaled.

    The p-value is the larger of two. Among answers near the value, the number of exact ones is
    binomial with the largest share that a baseline without memory has. Among answers permuted over
    the dates, it is approximately Poisson (Barbour, Holst and Janson 1992, chapter 4). The p-value
    is adjusted for the alignments tried by a weighted Bonferroni rule (Genovese and others 2006):
    the plain alignment has the weight `PLAIN`.

    Args:
        points: The questions for a value.
        values: The whole series; if it is empty, the truths of the points.
        decimals: The number of published digits after the decimal point.
    """
    answers = collect_answers(points)
    if not answers.periods:
        return Exactness(share=UNDEFINED)
    truths = dict(zip(answers.periods, answers.means(answers.truth).tolist(), strict=True))
    known = {**values, **truths}
    placed = {period: place for place, period in enumerate(sorted(known))}
    places = np.array([placed[period] for period in answers.periods])
    scale = 10.0**decimals
    digits = np.array([known[period] for period in placed]) * scale
    said, chance = answers.means(answers.estimate) * scale, _chance_of_exact(known, digits, scale)
    reach = len(digits) if knows_most_periods(known) else 0
    looked_at = [_align(said, digits, places, how, chance) for how in _alignments(reach)]
    chosen, p_value = _choose(looked_at)
    return Exactness(
        share=share_interval(chosen.exact > 0, np.arange(len(chosen.exact))),
        near=chosen.near,
        expected=chance.expected,
        shift=chosen.shift,
        factor=chosen.factor,
        scanned=len(looked_at),
        dealt_p=looked_at[0].dealt_p,
        p_value=p_value,
    )


def _alignments(length: int) -> Iterator[tuple[int, float]]:
    """Yield factors and the shifts below a length, the plain alignment first."""
    yield from ((0, factor) for factor in FACTORS)
    yield from ((lag, 1.0) for lag in LAGS if lag and abs(lag) < length)


def _choose(found: Sequence[_Alignment]) -> tuple[_Alignment, float]:
    """Return the alignment with the most exact answers among those that chance does not explain."""
    plain, others = found[0], found[1:]
    weighted = [(plain, plain.p_value / PLAIN)]
    weighted += [(each, len(others) * each.p_value / (1 - PLAIN)) for each in others]
    refuted = [pair for pair in weighted if pair[1] <= SIGNIFICANCE]
    if not refuted:
        return plain, min(1.0, min(p for _, p in weighted))
    return max(refuted, key=lambda pair: float(pair[0].exact.sum()))


def _align(
    said: Array, digits: Array, places: Indices, how: tuple[int, float], chance: _ExactChance
) -> _Alignment:
    """Compare answers with values, both in last digits; zeros are left out if the unit differs."""
    shift, factor = how
    there = (places + shift >= 0) & (places + shift < len(digits))
    if factor != 1:
        there &= digits[places] != 0
    answers, truths = said[there] / factor, digits[places[there] + shift]
    distance = np.abs(answers - truths)
    exact = (distance <= _EXACT).astype(np.float64)
    near = int(np.count_nonzero(distance <= chance.reach))
    count = int(exact.sum())
    dealt_p = _dealt_p(answers, truths, count)
    return _Alignment(
        shift, factor, exact, near, dealt_p, max(dealt_p, _digits_p(count, near, chance.expected))
    )


def find_step(digits: Array) -> int:
    """Return the step of a series in last digits: 1, or that of a coarser grid."""
    whole = np.round(digits)
    for step in _STEPS:
        if np.mean(whole % step == 0) >= _MOSTLY:
            return step
    return 1


def _digits_p(exact: int, near: int, expected: float) -> float:
    """Return the p-value of the number of exact answers among the near ones, without memory."""
    from scipy.special import bdtrc  # type: ignore[import-untyped]  # slow to import

    return float(bdtrc(exact - 1, near, expected)) if exact else 1.0


def _dealt_p(answers: Array, truths: Array, exact: int) -> float:
    """Return the p-value of the number of exact answers if they are permuted over all dates."""
    from scipy.special import pdtrc

    if not exact:
        return 1.0
    matches = np.abs(answers[:, None] - truths) <= _EXACT
    return float(pdtrc(exact - 1, float(matches.mean()) * len(answers)))


def _chance_of_exact(known: SeriesValues, digits: Array, scale: float) -> _ExactChance:
    """Return the distance that counts as near, and the largest exact share of near guesses.

    The guesses are those of the baselines without memory. If the values of most periods are
    unknown, the least distance counts as near, neighbouring values are guesses as well, and the
    share is at least `_UNKNOWN_SHARE`.
    """
    place = {period: at for at, period in enumerate(sorted(known))}
    guesses = list(guesses_without_memory(known).values())
    complete = knows_most_periods(known)
    if not complete:
        guesses.append(_nearer_neighbours(known))
    distances = [
        np.abs(
            np.round(np.array(list(guess.values())) * scale)
            - digits[[place[period] for period in guess]]
        )
        for guess in guesses
        if guess
    ]
    step = find_step(digits)
    error = min(float(each.mean()) for each in distances) if complete else 0.0
    steps = next((each for each in NEAR_DIGITS if each * step <= CLOSE * error), NEAR_DIGITS[-1])
    reach = steps * step + _EXACT
    shares = [1 / (2 * steps + 1) if complete else _UNKNOWN_SHARE]
    for each in distances:
        near = np.count_nonzero(each <= reach)
        if near >= _FEW:
            shares.append(float(np.count_nonzero(each <= _EXACT) / near))
    return _ExactChance(reach, max(shares))
