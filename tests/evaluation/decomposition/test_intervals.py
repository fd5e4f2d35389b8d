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
