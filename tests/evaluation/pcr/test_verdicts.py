"""Each verdict by its rule, and which rule comes first."""

import math
from dataclasses import replace

import pytest

from coreeval.evaluation.pcr.verdicts import Dose, Evidence, Verdict, verdict_of
from coreeval.evaluation.statistics import Estimate

QUARTER = Dose(0.25, 12.5, 0.05, 0.9)
CLEAR = Evidence(
    splits=("train", "test"),
    scored=(200, 300),
    clusters=(200, 300),
    performance=(0.5, 0.4),
    difference=Estimate(0.2, 0.1, 0.3),
    points=Estimate(10.0, 4.0, 16.0),
    p_value=0.001,
    basis="exchangeable_splits",
    doses=(Dose(0.1, 5.0, 0.02, 0.31), QUARTER),
    alpha=0.01,
    margin=0.03,
    slope=0.8,
)


def with_interval(low: float, high: float, p_value: float = 0.001) -> Evidence:
    """Return the evidence of an interval of PCR, one of points a hundred times as wide, and a p."""
    return replace(
        CLEAR,
        difference=Estimate((low + high) / 2, low, high),
        points=Estimate(50 * (low + high), 100 * low, 100 * high),
        p_value=p_value,
    )


@pytest.mark.parametrize(
    ("seen", "verdict", "words"),
    [
        (
            CLEAR,
            "fine_tuned",
            "p is 0.0010, at most 0.05: the model was trained on the train split",
        ),
        (CLEAR, "fine_tuned", "performance changes by +10.0 (+4.0 to +16.0) points and PCR by"),
        (
            CLEAR,
            "fine_tuned",
            "this assumes that the splits are random parts of one pool",
        ),
        (
            replace(CLEAR, basis="references", references=5),
            "fine_tuned",
            "beyond what 5 references predict; p is 0.0010, at most 0.05: the model was trained "
            "on the train split (CAP, section 3.2); this assumes that the references have seen",
        ),
        (
            replace(CLEAR, basis="none"),
            "difficulty_or_memory",
            "either training on one split or a difference in",
        ),
        (
            replace(CLEAR, basis="none", covariates="texts of train are longer"),
            "difficulty_or_memory",
            "the splits are not treated as exchangeable, because",
        ),
        (with_interval(-0.3, -0.1), "contaminated", "trained on the test split"),
        (replace(with_interval(-0.3, -0.1), basis="none"), "difficulty_or_memory", "p is 0.0010"),
        (
            replace(CLEAR, points=Estimate(-10.0, -16.0, -4.0)),
            "contaminated",
            "changes by -10.0",
        ),
        (
            replace(CLEAR, points=Estimate(-1.0, -7.0, 5.0)),
            "inconclusive",
            "would detect memorization of 10% of a split (an effect of 5.0 points) in 31%",
        ),
        (
            with_interval(-0.02, 0.029, 0.9),
            "comparable",
            "excludes 12.5 points, the effect of memorizing a quarter of a split",
        ),
        (with_interval(0.01, 0.02), "comparable", "(+0.010 to +0.020) is within 0.03"),
        (
            replace(with_interval(-0.02, 0.029, 0.9), points=Estimate(1.0, -11.0, 12.6)),
            "inconclusive",
            "25% of a split (an effect of 12.5 points) in 90%",
        ),
        (
            replace(with_interval(-0.01, 0.01, 0.9), slope=0.05),
            "inconclusive",
            "at the limit of its scale",
        ),
        (replace(CLEAR, slope=0.05), "fine_tuned", "(+0.100 to +0.300)"),
        (with_interval(-0.13, 0.05, 0.4), "inconclusive", "p is 0.4000, above 0.05"),
        (with_interval(0.01, 0.2, 0.06), "inconclusive", "p is 0.0600, above 0.05"),
        (replace(CLEAR, scored=(19, 300)), "inconclusive", "train has 19 items"),
        (replace(CLEAR, scored=(0, 3)), "inconclusive", "train has 0 items with a reference and "),
        (replace(CLEAR, clusters=(19, 300)), "inconclusive", "has items from only"),
        (replace(CLEAR, performance=(0.01, 0.0)), "insufficient_signal", "(0.0100 and 0.0000)"),
        (with_interval(math.nan, math.nan), "inconclusive", "undefined"),
        (replace(CLEAR, p_value=math.nan), "inconclusive", "undefined"),
    ],
)
def test_the_rule_that_gave_it(seen: Evidence, verdict: Verdict, words: str) -> None:
    found, reason = verdict_of(seen)
    assert found == verdict and words in reason


def test_performance_in_one_split_is_signal() -> None:
    assert verdict_of(replace(CLEAR, performance=(0.5, 0.0)))[0] == "fine_tuned"


def test_twenty_items_are_enough_and_more_than_alpha_is_signal() -> None:
    least = replace(CLEAR, scored=(20, 20), performance=(0.0101, 0.0))
    assert verdict_of(least)[0] == "fine_tuned"


def test_undefined_performance_is_not_taken_for_a_low_one() -> None:
    seen = replace(with_interval(math.nan, math.nan), performance=(math.nan, 0.2))
    assert verdict_of(seen)[0] == "inconclusive"
