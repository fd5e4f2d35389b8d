import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from coreeval.evaluation.decomposition.intervals import expanded, two_sided
from coreeval.evaluation.resampling import bootstrap_sums


def test_few_samples_have_the_interval_and_the_p_value_of_student() -> None:
    values = 0.5 + stats.norm.ppf((np.arange(15) + 0.5) / 15)
    sums = bootstrap_sums(values[:, None], 20000, np.random.default_rng(3))
    replicates = np.concatenate([[values.mean()], sums[:, 0] / 15])
    found = expanded(replicates, 15)
    low, high = stats.t.interval(0.95, 14, loc=values.mean(), scale=stats.sem(values))
    assert found.ci_low == pytest.approx(low, abs=0.03)
    assert found.ci_high == pytest.approx(high, abs=0.03)
    assert two_sided(replicates, 15) == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.01)


def test_one_sample_has_no_interval_and_none_no_number() -> None:
    one = np.array([1.0, 1.0])
    assert expanded(one, 1).estimate == 1
    assert expanded(one, 1).ci_low is None
    assert two_sided(one, 1) is None
    assert expanded(one * np.nan, 0).estimate is None


def test_a_difference_knows_of_the_answer_that_was_not_drawn() -> None:
    same = np.zeros(1001)
    one = expanded(same, 100)
    assert (one.ci_low, one.ci_high) == pytest.approx((0, 0.037), abs=0.001)  # Wilson: 0 of 100
    found = expanded(same, 100, answers=1)
    assert (found.ci_low, found.ci_high) == pytest.approx((-0.01, 0.01))
    assert two_sided(same, 100, answers=1) == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_the_p_value_is_that_of_the_interval_that_just_holds_0(sign: int) -> None:
    draws = np.random.default_rng(5).normal(0.02, 0.01, 20_000)
    values = sign * np.concatenate([[0.02], draws])
    p_value = two_sided(values, 10_000, answers=100)
    assert p_value is not None
    tail = np.quantile(draws, p_value / 2)
    assert 0.02 - np.hypot(0.02 - tail, 0.01) == pytest.approx(0, abs=1e-4)
    assert two_sided(values, 10_000) == pytest.approx(p_value * 0.53, rel=0.2)
