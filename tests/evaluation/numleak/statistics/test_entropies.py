"""Entropies by condition: means, medians, their difference, and what is left out."""

import math
from dataclasses import replace

import numpy as np
import pytest

from coreeval.evaluation.numleak.points import Point
from coreeval.evaluation.numleak.readout.bits import ReadOut
from coreeval.evaluation.numleak.statistics import Settings, measure
from coreeval.evaluation.numleak.statistics.entropies import entropies, notes_on_entropies
from coreeval.evaluation.statistics import Array
from tests.evaluation.numleak.statistics.kit import DEFINITION, FEW, asked, returns


def points(bits: Array, *, invented: bool = False) -> list[Point]:
    """Return an answer for each month with so many bits; nan was not measured."""
    made = asked(
        returns(len(bits)), returns(len(bits)), variant="fictitious" if invented else "value"
    )
    return [
        replace(one, read_out=ReadOut(None, "no value") if math.isnan(each) else ReadOut(each))
        for one, each in zip(made, bits.tolist(), strict=True)
    ]


def test_what_is_memorized_is_more_peaked_than_what_is_made_up() -> None:
    rng = np.random.default_rng(3)
    low, high = rng.gamma(1.0, 0.21, 30), rng.gamma(9.0, 1.14 / 9, 30)
    found = entropies(points(low), points(high, invented=True), FEW)
    assert found is not None
    assert found.series.mean.estimate == pytest.approx(low.mean())
    assert found.fictitious.median.estimate == pytest.approx(np.median(high))
    assert found.series.bits == tuple(sorted(low.tolist()))
    assert found.difference.estimate == pytest.approx(high.mean() - low.mean())
    assert found.difference.ci_low > 0 and found.p_value == pytest.approx(1 / 401)
    for metric in (found.series.mean, found.series.median, found.fictitious.median):
        assert metric.ci_low < metric.estimate < metric.ci_high and metric.dates == 30


def test_two_of_a_kind_do_not_differ_and_equal_answers_differ_never() -> None:
    rng = np.random.default_rng(1)
    found = entropies(points(rng.gamma(2, 0.5, 40)), points(rng.gamma(2, 0.5, 40)), FEW)
    assert found is not None and found.difference.ci_low < 0 < found.difference.ci_high
    assert found.p_value > 0.05
    same = entropies(points(np.full(6, 0.5)), points(np.full(6, 0.5)), FEW)
    assert same is not None and same.p_value == 1.0
    assert same.series.median[:3] == (0.5, 0.5, 0.5)


def test_the_permutation_test_holds_its_level() -> None:
    rng, found = np.random.default_rng(5), []
    for _ in range(200):
        made = entropies(points(rng.gamma(1, 0.5, 12)), points(rng.gamma(1, 0.5, 12)),
                         Settings(draws=200, seed=int(rng.integers(99))))  # fmt: skip
        assert made is not None
        found.append(made.p_value)
    assert np.mean(np.array(found) <= 0.05) < 0.1


def test_what_has_none_is_counted_with_its_reason() -> None:
    value = points(np.array([0.1, math.nan, 0.2, math.nan]))
    value[3] = replace(value[3], read_out=None)
    found = entropies(value, [], FEW)
    assert found is not None
    assert (found.series.asked, found.series.mean.n) == (4, 2)
    assert found.series.left_out == {"no value": 1, "no log-probabilities came": 1}
    assert math.isnan(found.series.mean.ci_low) and math.isnan(found.p_value)
    assert math.isnan(found.difference.estimate) and not found.fictitious.bits
    notes = list(notes_on_entropies(found))
    assert notes[0].startswith("2 of 4 answers about the series have no entropy: no value (1)")
    assert notes[1].startswith("entropies are held against nothing")


def test_several_answers_on_a_date_are_one_date() -> None:
    twice = points(np.array([0.1, 0.2, 0.3, 0.4, 0.5])) * 2
    found = entropies(twice, [], FEW)
    assert found is not None
    assert (found.series.mean.n, found.series.mean.dates) == (10, 5)
    assert (found.series.median.n, found.series.median.dates) == (10, 5)


def test_answers_without_log_probabilities_have_no_entropies() -> None:
    plain = asked([1.0] * 6, [1.0] * 6)
    assert entropies(plain, plain, FEW) is None
    assert measure(plain, definition=DEFINITION, settings=FEW).entropy is None
    assert list(notes_on_entropies(None)) == []
