from collections import Counter

import pytest

from coreeval.evaluation.scoring.classification import NOTHING, Pair, accuracy, proportion


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
    assert proportion(0, 0) == NOTHING


def test_all_wrong_is_zero_with_an_interval() -> None:
    score = accuracy({("a", "b"): 6, ("b", ""): 4})
    assert (score.estimate, score.ci_low) == (0.0, 0.0)
    assert score.ci_high == pytest.approx(0.2775, abs=5e-5)
