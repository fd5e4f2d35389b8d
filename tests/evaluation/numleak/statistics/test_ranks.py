"""Comparisons beside values: what a model's own answers would order, and what it does order."""

import math
from itertools import pairwise

import numpy as np
import pytest

from coreeval.evaluation.numleak.replies import DateComparison
from coreeval.evaluation.numleak.statistics.estimation import measure_ranks
from coreeval.evaluation.numleak.statistics.metrics import measure_repeats
from coreeval.evaluation.statistics import Array
from tests.evaluation.numleak.statistics.kit import FEW, asked, compared, month, returns

TRUTH = returns(80)
SAID = TRUTH + np.random.default_rng(1).normal(0, 1.5, 80)
VALUES = {month(index): float(value) for index, value in enumerate(TRUTH)}
PAIRS = [
    (int(first), int(second))
    for first, second in np.random.default_rng(2).integers(80, size=(400, 2))
    if TRUTH[first] != TRUTH[second]
]


def chosen_by(values: Array, pairs: list[tuple[int, int]]) -> list[DateComparison]:
    """Compare months by some values for them."""
    return [
        compared(
            first, second,
            higher="first" if TRUTH[first] > TRUTH[second] else "second",
            chosen="first" if values[first] > values[second] else "second",
        )
        for first, second in pairs
    ]  # fmt: skip


def test_comparisons_made_by_values_show_no_gap() -> None:
    found = measure_ranks(chosen_by(SAID, PAIRS), asked(TRUTH, SAID), VALUES, settings=FEW)
    right = np.mean([(SAID[a] > SAID[b]) == (TRUTH[a] > TRUTH[b]) for a, b in PAIRS])
    assert found.accuracy.estimate == pytest.approx(right)
    assert found.expected.estimate == pytest.approx(right, abs=0.03)
    assert found.gap.ci_low < 0 < found.gap.ci_high
    assert found.coherence.estimate == 1
    assert found.accuracy.dates < found.accuracy.n == len(PAIRS)


def test_comparisons_by_chance_fall_short_of_values() -> None:
    guessed = chosen_by(returns(80, seed=7), PAIRS[:60])
    found = measure_ranks(guessed, asked(TRUTH, SAID), VALUES, settings=FEW)
    assert found.gap.ci_low > 0.15
    assert found.gap.estimate == pytest.approx(found.expected.estimate - found.accuracy.estimate)
    assert found.coherence.estimate < 0.75


def test_values_that_never_vary_order_half() -> None:
    found = measure_ranks(chosen_by(TRUTH, PAIRS), asked(TRUTH, np.ones(80)), VALUES, settings=FEW)
    assert found.expected.estimate == 0.5
    assert found.gap.ci_high < 0
    assert found.coherence.n == 0


def test_near_dates_are_harder_than_far_ones() -> None:
    ordered = np.argsort(TRUTH)
    near = [(int(a), int(b)) for a, b in pairwise(ordered)]
    far = list(zip(map(int, ordered[:40]), map(int, ordered[40:]), strict=True))
    points = asked(TRUTH, SAID)
    hard, easy = (
        measure_ranks(chosen_by(SAID, pairs), points, VALUES, settings=FEW).expected.estimate
        for pairs in (near, far)
    )
    assert hard < 0.65 < 0.95 < easy


def test_refused_comparisons_and_unknown_dates() -> None:
    refused = [compared(0, 1, higher="first", chosen=None)] * 3
    found = measure_ranks(refused, asked(TRUTH, SAID), VALUES, settings=FEW)
    assert (found.asked, found.parse_rate.estimate, found.accuracy.n) == (3, 0, 0)
    assert math.isnan(found.gap.estimate)
    beyond = [compared(500, 501, higher="first", chosen="first")]
    unknown = measure_ranks(beyond, asked(TRUTH, SAID), VALUES, settings=FEW)
    assert unknown.accuracy.estimate == 1 and math.isnan(unknown.expected.estimate)


def test_few_pairs_have_no_interval() -> None:
    found = measure_ranks(chosen_by(SAID, PAIRS[:3]), asked(TRUTH, SAID), VALUES, settings=FEW)
    assert not math.isnan(found.gap.estimate) and math.isnan(found.gap.ci_low)


def test_repeated_answers_spread_about_their_own_mean() -> None:
    off = [-0.3, 0.0, 0.3]
    points = [
        each
        for draw, shift in enumerate(off)
        for each in asked(TRUTH, TRUTH + 5 + shift, variant="repeated", draw=draw)
    ]
    found = measure_repeats(points, tolerance=0.25)
    assert (found.dates, found.spread.n) == (80, 240)
    assert found.spread[:3] == pytest.approx((0.3, 0.3, 0.3))
    assert found.agreement.estimate == 0
    assert found.relative_spread == pytest.approx(0.3 / TRUTH.std())
    assert measure_repeats(points, tolerance=0.6).agreement.estimate == 1


def test_answers_given_once_have_no_spread() -> None:
    found = measure_repeats(asked(TRUTH, SAID, variant="repeated"), tolerance=0.25)
    assert found.dates == 0 and math.isnan(found.spread.estimate)
    assert math.isnan(measure_repeats([], tolerance=0.25).relative_spread)
