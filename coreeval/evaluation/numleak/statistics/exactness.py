"""Answers that are the published value to its last digit: at its date, a shifted one, or scaled.

Whoever knows roughly how a series stood is near its values, and now and then exact; among answers a
few digits off, the exact ones are then no more frequent than the others. Memory of digits makes
exact answers far more frequent than near misses. This tells memory in series whose level is easy
to know, and memory of a part of the dates, where no error can.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.statistics.answers import Indices, answers_of
from coreeval.evaluation.numleak.statistics.baselines import guesses_without_memory
from coreeval.evaluation.numleak.statistics.intervals import UNDEFINED, share
from coreeval.evaluation.numleak.statistics.measured import Exactness
from coreeval.evaluation.numleak.statistics.yearbook import Values
from coreeval.evaluation.statistics import SIGNIFICANCE, Array

NEAR: Final = (50, 25, 10, 5, 2)
"""Steps of a series that a near miss may be off: the most that `CLOSE` allows, at least two. Within
two, errors of one who knows the level are still about equally frequent."""
CLOSE: Final = 0.25
"""Of the best baseline's error: whoever errs less than that on average remembers anyway, with a
gain above the weakest memory's (`bars.MEMORY_GAIN`, 0.77)."""
LAGS: Final = tuple(range(-12, 13))
"""Periods by which values may be shifted: a year of months either way."""
FACTORS: Final = (1.0, 0.001, 0.01, 100.0, 1000.0)
"""What answers may be times the value: fractions for percent, thousands for units, and back."""
PLAIN: Final = 0.75
"""Ours: most models that remember say the value of the date, in its unit."""
_STEPS: Final = (100, 50, 25, 20, 10, 5, 2)
"""Digits that a series may move in, such as 25 hundredths of a policy rate."""
_MOSTLY: Final = 0.95
"""Of the values that lie on a grid, so that it is the series' own."""
_FEW: Final = 20
"""Near misses of a baseline, exact hits among them, from which on their share is taken."""
_EXACT: Final = 0.5 + 1e-6
"""Last digits that an exact answer is off at most: half of one, and rounding."""


class _Alignment(NamedTuple):
    """Answers held against values that are shifted, or scaled."""

    shift: int
    factor: float
    exact: Array
    """1 for each answer that is exact, 0 for the others; those whose date has a value there."""
    near: int
    dealt_p: float
    p_value: float


class _Chance(NamedTuple):
    """What near answers are, and how many of them are exact without memory."""

    reach: float
    """In last digits."""
    expected: float


def exactness_of(points: Sequence[Point], values: Values, decimals: int) -> Exactness:
    """Count the answers that are exact, where most are: at their dates, shifted or scaled.

    The p-value is the larger of two. Among answers near the value, exact ones are
    binomial with the largest share that a baseline without memory has; among answers dealt out to
    other dates, exact ones are about Poisson (Barbour, Holst and Janson 1992, chapter 4). It is
    adjusted for the alignments looked at by a weighted Bonferroni rule (Genovese and others 2006):
    `PLAIN` of the weight is that of the plain one.

    Args:
        points: Questions for a value.
        values: The whole series; the truths of the points if it is empty.
        decimals: Digits after the point that are published.
    """
    answers = answers_of(points)
    if not answers.periods:
        return Exactness(share=UNDEFINED)
    truths = dict(zip(answers.periods, answers.means(answers.truth).tolist(), strict=True))
    known = {**values, **truths}
    placed = {period: place for place, period in enumerate(sorted(known))}
    places = np.array([placed[period] for period in answers.periods])
    scale = 10.0**decimals
    digits = np.array([known[period] for period in placed]) * scale
    said, chance = answers.means(answers.estimate) * scale, _chance(known, digits, scale)
    looked_at = [_align(said, digits, places, how, chance) for how in _alignments(len(digits))]
    chosen, p_value = _choose(looked_at)
    return Exactness(
        share=share(chosen.exact > 0, np.arange(len(chosen.exact))),
        near=chosen.near,
        expected=chance.expected,
        shift=chosen.shift,
        factor=chosen.factor,
        scanned=len(looked_at),
        dealt_p=looked_at[0].dealt_p,
        p_value=p_value,
    )


def _alignments(length: int) -> Iterator[tuple[int, float]]:
    """Yield shift and factor, the plain alignment first."""
    yield from ((0, factor) for factor in FACTORS)
    yield from ((lag, 1.0) for lag in LAGS if lag and abs(lag) < length)


def _choose(found: Sequence[_Alignment]) -> tuple[_Alignment, float]:
    """Return the alignment with most exact answers of those that chance does not explain."""
    plain, others = found[0], found[1:]
    weighted = [(plain, plain.p_value / PLAIN)]
    weighted += [(each, len(others) * each.p_value / (1 - PLAIN)) for each in others]
    refuted = [pair for pair in weighted if pair[1] <= SIGNIFICANCE]
    if not refuted:
        return plain, min(1.0, min(p for _, p in weighted))
    return max(refuted, key=lambda pair: float(pair[0].exact.sum()))


def _align(
    said: Array, digits: Array, places: Indices, how: tuple[int, float], chance: _Chance
) -> _Alignment:
    """Compare answers with values, both in last digits; 0 is the same in every unit."""
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


def step_of(digits: Array) -> int:
    """Return the step in which a series moves, in last digits: 1, or that of a coarser grid."""
    whole = np.round(digits)
    for step in _STEPS:
        if np.mean(whole % step == 0) >= _MOSTLY:
            return step
    return 1


def _digits_p(exact: int, near: int, expected: float) -> float:
    """Return how often so many of the near answers are exact without memory of the digits."""
    from scipy.special import bdtrc  # type: ignore[import-untyped]  # slow to import

    return float(bdtrc(exact - 1, near, expected)) if exact else 1.0


def _dealt_p(answers: Array, truths: Array, exact: int) -> float:
    """Return how often so many answers are exact if they are dealt out among all dates."""
    from scipy.special import pdtrc

    if not exact:
        return 1.0
    matches = np.abs(answers[:, None] - truths) <= _EXACT
    return float(pdtrc(exact - 1, float(matches.mean()) * len(answers)))


def _chance(known: Values, digits: Array, scale: float) -> _Chance:
    """Return what is near, and the largest share exact among near answers without memory."""
    place = {period: at for at, period in enumerate(sorted(known))}
    distances = [
        np.abs(
            np.round(np.array(list(guess.values())) * scale)
            - digits[[place[period] for period in guess]]
        )
        for guess in guesses_without_memory(known).values()
        if guess
    ]
    step = step_of(digits)
    error = min(float(each.mean()) for each in distances)
    steps = next((each for each in NEAR if each * step <= CLOSE * error), NEAR[-1])
    reach = steps * step + _EXACT
    shares = [1 / (2 * steps + 1)]
    for each in distances:
        near = np.count_nonzero(each <= reach)
        if near >= _FEW:
            shares.append(float(np.count_nonzero(each <= _EXACT) / near))
    return _Chance(reach, max(shares))
