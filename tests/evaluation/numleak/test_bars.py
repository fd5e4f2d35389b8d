"""Bars of a series, beside NumLeak's printed ones."""

import math
from dataclasses import replace
from typing import get_args

import pytest

from coreeval.evaluation.numleak.bars import bars_of, within
from coreeval.evaluation.numleak.statistics.measured import Baseline, BaselineName, Measured
from tests.support.numleak_measured import REMEMBERED, baseline, metric


def beside(**baselines: Baseline) -> Measured:
    """Return a study with these baselines alone."""
    known: dict[BaselineName, Baseline] = {
        name: baselines[name] for name in get_args(BaselineName) if name in baselines
    }
    return replace(REMEMBERED, baselines=known)


def test_the_bars_of_mkt_rf_are_where_numleak_draws_the_line() -> None:
    bars = bars_of(REMEMBERED)

    assert bars.baseline == "constant" and bars.tolerance == 0.25 and bars.telling
    assert bars.words == pytest.approx(0.231, abs=0.001)  # siblings: at most 0.15
    assert bars.memory == pytest.approx(0.37, abs=0.005)  # Sonnet 4.6: 0.35


def test_shares_within_a_tolerance_are_those_of_the_normal_distribution() -> None:
    assert within(1.96, 1.0) == pytest.approx(0.95, abs=1e-4)
    assert within(0.25, 0.0) == 1.0


def test_the_value_before_raises_the_bar_of_a_level() -> None:
    constant, previous = baseline(2.5, metric(0.9, 0.1)), baseline(0.4, metric(0.5, 0.1))
    level, before = (
        bars_of(each)
        for each in (beside(constant=constant), beside(constant=constant, previous=previous))
    )
    assert level.words < before.words == within(0.25, 0.4 * math.sqrt(math.pi / 2))


def test_where_the_tolerance_is_too_wide_the_next_narrower_is_taken() -> None:
    slow, still = (bars_of(beside(year=baseline(mae, metric(0.9, 0.05)))) for mae in (0.4, 0.01))
    assert (slow.tolerance, slow.telling) == (0.1, True)
    assert (still.tolerance, still.telling) == (0.1, False)


def test_without_a_baseline_nothing_tells() -> None:
    bars = bars_of(beside())
    assert not bars.telling and math.isnan(bars.gain.estimate)
