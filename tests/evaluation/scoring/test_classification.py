from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score  # type: ignore[import-untyped]

from coreeval.evaluation.scoring.classification import (
    Pair,
    Score,
    Triple,
    accuracy,
    accuracy_difference,
    macro_f1,
    macro_f1_difference,
)

LABELS = ("a", "b", "c")
ANSWERS = st.sampled_from(["", *LABELS])
TRIPLES = st.lists(st.tuples(st.sampled_from(LABELS), ANSWERS, ANSWERS), min_size=1, max_size=30)
NOTHING = Score(estimate=None, ci_low=None, ci_high=None, n=0)


def _answered(right: int, n: int) -> Counter[Pair]:
    return Counter({("a", "a"): right, ("a", "b"): n - right})


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_accuracy_has_the_wilson_intervals_of_newcombe_1998(
    right: int, n: int, low: float, high: float
) -> None:
    score = accuracy(_answered(right, n))
    assert (score.estimate, score.n) == (right / n, n)
    assert score.ci_low == pytest.approx(low, abs=5e-5)
    assert score.ci_high == pytest.approx(high, abs=5e-5)


def test_one_right_answer_leaves_much_open() -> None:
    score = accuracy({("a", "a"): 1})
    # for one of one right the lower end is 1 / (1 + z²)
    assert score.ci_low == pytest.approx(1 / (1 + 1.959964**2), abs=1e-6)
    assert score.estimate == score.ci_high == 1.0


def test_nothing_scored_is_no_number() -> None:
    assert accuracy({}) == NOTHING
    assert macro_f1({}, LABELS, seed=7) == NOTHING
    assert accuracy_difference({}, seed=7) == NOTHING
    assert macro_f1_difference({}, LABELS, seed=7) == NOTHING


def test_one_sample_gives_no_bootstrap_interval() -> None:
    assert macro_f1({("a", "a"): 1}, ("a",), seed=7) == Score(
        estimate=1.0, ci_low=None, ci_high=None, n=1
    )
    assert accuracy_difference({("a", "a", "b"): 1}, seed=7).ci_low is None


def test_macro_f1_by_hand() -> None:
    pairs = Counter([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b"), ("c", "")])
    # a: 1 hit of 2 due and 1 said; b: 2 of 2 and 3; c: 0 of 1 and 0
    assert macro_f1(pairs, LABELS, seed=7).estimate == pytest.approx((2 / 3 + 4 / 5 + 0) / 3)


def test_all_wrong_is_zero_with_an_interval() -> None:
    pairs = {("a", "b"): 6, ("b", ""): 4}
    assert macro_f1(pairs, LABELS, seed=7) == Score(estimate=0, ci_low=0, ci_high=0, n=10)
    score = accuracy(pairs)
    assert (score.estimate, score.ci_low) == (0.0, 0.0)
    assert score.ci_high == pytest.approx(0.2775, abs=5e-5)


def test_macro_f1_counts_a_label_never_seen_as_zero() -> None:
    score = macro_f1({("a", "a"): 1, ("b", "b"): 1}, LABELS, seed=7)
    assert score.estimate == pytest.approx(2 / 3)


def test_differences_are_second_minus_first() -> None:
    worse = Counter([("a", "a", "a"), ("a", "a", "b"), ("b", "b", "b"), ("b", "b", "")])
    score = accuracy_difference(worse, seed=7)
    assert (score.estimate, score.n) == (-0.5, 4)
    # first: both labels 1; second: a 1 hit of 2+1, b 1 hit of 2+2
    f1 = macro_f1_difference(worse, ("a", "b"), seed=7)
    assert f1.estimate == pytest.approx((2 / 3 + 1 / 2) / 2 - 1)


def test_pairing_narrows_the_difference() -> None:
    """Ten of 100 samples are lost; unpaired intervals of 0.8 and 0.7 would overlap widely."""
    triples = {("a", "a", "a"): 70, ("a", "a", "b"): 10, ("a", "b", "b"): 20}
    score = accuracy_difference(triples, seed=7)
    assert score.estimate == pytest.approx(-0.1)
    # the exact spread of a sum of 100 rows of which a tenth is -1: sqrt(.1*.9/100) = .03
    assert score.ci_low == pytest.approx(-0.1 - 1.96 * 0.03, abs=0.011)
    assert score.ci_high == pytest.approx(-0.1 + 1.96 * 0.03, abs=0.011)


def test_the_bootstrap_agrees_with_resampling_the_samples() -> None:
    rng = np.random.default_rng(3)
    gold = rng.choice(LABELS, size=150)
    first = np.where(rng.random(150) < 0.8, gold, rng.choice(LABELS, size=150))
    second = np.where(rng.random(150) < 0.6, gold, rng.choice(LABELS, size=150))
    triples = [(str(g), str(a), str(b)) for g, a, b in zip(gold, first, second, strict=True)]
    values = [_sklearn_gain([triples[i] for i in rng.integers(150, size=150)]) for _ in range(250)]
    low, high = np.quantile(values, [0.025, 0.975])
    score = macro_f1_difference(Counter(triples), LABELS, seed=7)
    assert score.ci_low == pytest.approx(low, abs=0.03)
    assert score.ci_high == pytest.approx(high, abs=0.03)


def _sklearn_f1(pairs: Sequence[Pair]) -> float:
    gold, said = zip(*pairs, strict=True)
    return float(f1_score(gold, said, labels=LABELS, average="macro", zero_division=0))


def _sklearn_gain(triples: Sequence[Triple]) -> float:
    first = _sklearn_f1([(gold, answer) for gold, answer, _ in triples])
    return _sklearn_f1([(gold, answer) for gold, _, answer in triples]) - first


def _pairs(triples: Sequence[Triple]) -> Counter[Pair]:
    """Count label and first answer."""
    return Counter((gold, answer) for gold, answer, _ in triples)


@given(TRIPLES)
def test_macro_f1_is_scikit_learns(triples: list[Triple]) -> None:
    pairs = _pairs(triples)
    assert macro_f1(pairs, LABELS, seed=7, draws=5).estimate == pytest.approx(
        _sklearn_f1([*pairs.elements()])
    )
    difference = macro_f1_difference(Counter(triples), LABELS, seed=7, draws=5)
    assert difference.estimate == pytest.approx(_sklearn_gain(triples))


@given(TRIPLES, st.randoms(use_true_random=False))
def test_order_of_samples_does_not_matter(triples: list[Triple], random: Random) -> None:
    shuffled = list(triples)
    random.shuffle(shuffled)
    for seed in (1, 2):
        there, here = Counter(shuffled), Counter(triples)
        assert accuracy_difference(there, seed=seed) == accuracy_difference(here, seed=seed)


@given(TRIPLES)
def test_swapping_the_arms_turns_the_sign(triples: list[Triple]) -> None:
    swapped = [(gold, second, first) for gold, first, second in triples]
    there, back = (
        accuracy_difference(Counter(each), seed=7, draws=50) for each in (triples, swapped)
    )
    assert there.estimate is not None and back.estimate is not None
    assert there.estimate == pytest.approx(-back.estimate)
    right = [accuracy(_pairs(each)).estimate or 0.0 for each in (triples, swapped)]
    assert there.estimate == pytest.approx(right[1] - right[0])


@given(TRIPLES)
def test_intervals_are_ordered_and_bounded(triples: list[Triple]) -> None:
    pairs = _pairs(triples)
    for score in (accuracy(pairs), macro_f1(pairs, LABELS, seed=7, draws=50)):
        if score.ci_low is not None and score.ci_high is not None:
            assert 0 <= score.ci_low <= score.ci_high <= 1
