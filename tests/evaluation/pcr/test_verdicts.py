"""Each verdict by its rule, and which rule comes first."""

import math
from dataclasses import replace

import pytest

from coreeval.evaluation.pcr.verdicts import Evidence, Verdict, verdict_of
from coreeval.evaluation.statistics import Estimate

CLEAR = Evidence(
    splits=("train", "test"),
    scored=(200, 300),
    performance=(0.5, 0.4),
    difference=Estimate(0.2, 0.1, 0.3),
    p_value=0.001,
    detectable=0.14,
    alpha=0.01,
    margin=0.03,
    slope=0.8,
)


def with_interval(low: float, high: float, p_value: float = 0.001) -> Evidence:
    """Return the evidence of an interval and a p-value."""
    return replace(CLEAR, difference=Estimate((low + high) / 2, low, high), p_value=p_value)


@pytest.mark.parametrize(
    ("seen", "verdict", "words"),
    [
        (CLEAR, "fine_tuned", "is above 0 and p is 0.0010, at most 0.05"),
        (with_interval(-0.3, -0.1), "contaminated", "here on test"),
        (with_interval(-0.02, 0.029, 0.9), "comparable", "is within 0.03 of 0"),
        (with_interval(0.01, 0.02), "comparable", "(+0.010 to +0.020) is within 0.03"),
        (
            replace(with_interval(-0.01, 0.01, 0.9), slope=0.05),
            "inconclusive",
            "at the end of its scale",
        ),
        (replace(CLEAR, slope=0.05), "fine_tuned", "is above 0"),
        (with_interval(-0.13, 0.05, 0.4), "inconclusive", "contains 0 and reaches past 0.03"),
        (with_interval(-0.02, 0.04, 0.4), "inconclusive", "differences from about 0.140 on"),
        (with_interval(0.01, 0.2, 0.06), "inconclusive", "leaves out 0, but p is 0.0600, not at"),
        (replace(CLEAR, scored=(19, 300)), "inconclusive", "train has 19 items"),
        (replace(CLEAR, scored=(0, 3)), "inconclusive", "train has 0 and test has 3 items"),
        (replace(CLEAR, performance=(0.01, 0.0)), "insufficient_signal", "(0.0100 and 0.0000)"),
        (with_interval(math.nan, math.nan), "inconclusive", "not defined"),
        (replace(CLEAR, p_value=math.nan), "inconclusive", "not defined"),
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
