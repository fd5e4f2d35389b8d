"""The ratio itself: one number, arrays, and what it refuses."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.evaluation.pcr import SCALES, Scale, performance_consistency_ratio

SHARE = st.floats(0, 1)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [("tanh", math.tanh(0.51 / 0.26)), ("linear", 0.51 / 0.26),
     ("sigmoid", 1 / (1 + math.exp(-0.51 / 0.26)))],
)  # fmt: skip
def test_each_scale(scale: Scale, expected: float) -> None:
    found = performance_consistency_ratio(0.5, 0.25, scale=scale)
    assert isinstance(found, float) and found == pytest.approx(expected)


def test_arrays_go_elementwise_and_broadcast() -> None:
    found = performance_consistency_ratio([[0.2], [0.4]], [0.5, 0.8, 1.0], alpha=0, scale="linear")
    assert found == pytest.approx(np.array([[0.4, 0.25, 0.2], [0.8, 0.5, 0.4]]))


@given(SHARE, SHARE, SHARE, st.sampled_from(sorted(SCALES)))
def test_more_performance_raises_it_and_more_consistency_lowers_it(
    first: float, second: float, consistency: float, scale: Scale
) -> None:
    low, high = sorted((first, second))
    values = performance_consistency_ratio([low, high], consistency, scale=scale)
    assert values[0] <= values[1]
    values = performance_consistency_ratio(consistency, [low, high], scale=scale)
    assert values[0] >= values[1]


def test_without_alpha_and_consistency_it_is_at_its_limit_or_undefined() -> None:
    assert performance_consistency_ratio(0.1, 0, alpha=0) == 1
    assert performance_consistency_ratio(0.1, 0, alpha=0, scale="linear") == math.inf
    assert math.isnan(performance_consistency_ratio(0, 0, alpha=0))
    assert math.isnan(performance_consistency_ratio(math.nan, 0.5))


@pytest.mark.parametrize(
    ("performance", "consistency", "alpha"),
    [(-0.1, 0.5, 0.01), (0.5, -0.1, 0.01), (0.5, 0.5, -1), (0.5, 0.5, math.nan)],
)
def test_negative_numbers_are_refused(performance: float, consistency: float, alpha: float) -> None:
    with pytest.raises(ValueError, match="must not be below 0"):
        performance_consistency_ratio(performance, consistency, alpha=alpha)


def test_an_unknown_scale_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="tanh, linear, sigmoid"):
        performance_consistency_ratio(0.5, 0.5, scale="log")  # type: ignore[call-overload]
