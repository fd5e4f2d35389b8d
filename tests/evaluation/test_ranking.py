"""The order of targets on two arms, beside scipy's own correlations."""

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from coreeval.evaluation.arms import compare_arms
from coreeval.evaluation.ranking import Standing, kendall_tau_b, ranking, spearman_rho
from coreeval.tools.stores.run_records import TargetAnswer


@pytest.mark.parametrize("targets", [3, 4, 9])
def test_each_line_is_what_scipy_has_of_it(targets: int) -> None:
    chance = np.random.default_rng(targets)
    first, second = chance.integers(0, 4, (2, 40, targets)) / 10.0  # with ties
    taus, rhos = kendall_tau_b(first, second), spearman_rho(first, second)
    for line in range(40):
        alike = len(set(first[line])) == 1 or len(set(second[line])) == 1
        if alike:
            assert np.isnan(taus[line]) and np.isnan(rhos[line])
            continue
        tau = stats.kendalltau(first[line], second[line], variant="b").statistic
        assert taus[line] == pytest.approx(tau, abs=1e-12)
        rho = stats.spearmanr(first[line], second[line]).statistic
        assert rhos[line] == pytest.approx(rho, abs=1e-12)


def standing(name: str, first: list[float], second: list[float]) -> Standing:
    return Standing(name, np.array(first), np.array(second))


def test_two_targets_are_no_order() -> None:
    assert ranking([standing("a", [1.0, 1.0], [1.0, 1.0])] * 2) is None


def test_the_interval_is_that_of_the_draws() -> None:
    found = ranking(
        [
            standing("a", [0.3, 0.3, 0.3], [0.3, 0.3, 0.1]),
            standing("b", [0.2, 0.2, 0.2], [0.2, 0.2, 0.2]),
            standing("c", [0.1, 0.1, 0.1], [0.1, 0.1, 0.3]),
        ]
    )
    assert found
    assert found.targets == ("a", "b", "c")
    tau = found.kendall
    assert (tau.estimate, tau.n) == (1.0, 3)
    assert [tau.ci_low, tau.ci_high] == pytest.approx([-0.95, 0.95])


def test_targets_that_all_tie_have_no_correlation() -> None:
    found = ranking([standing(name, [0.5, 0.5], [0.1, 0.2]) for name in "abc"])
    assert found
    assert (found.kendall.estimate, found.kendall.ci_low, found.kendall.n) == (None, None, 3)


def test_a_table_of_arms_has_the_order_of_the_targets_that_answered_both() -> None:
    gold = {str(n): "ab"[n % 2] for n in range(60)}

    def said(right: int, right_later: int) -> list[TargetAnswer]:
        """Return answers of which so many first ones are right on each arm."""
        other = {"a": "b", "b": "a"}
        answers = list[TargetAnswer]()
        for place, (key, label) in enumerate(gold.items()):
            one = label if place < right else other[label]
            two = label if place < right_later else other[label]
            answers.append(("original", 1, key, one, "answered"))
            answers.append(("updated", 1, key, two, "answered"))
        return answers

    targets = [("a", said(50, 20)), ("b", said(40, 40)), ("c", said(30, 30)), ("d", said(20, 50))]
    only = [row for row in said(10, 10) if row[0] == "original"]
    table = compare_arms([*targets, ("e", only)], gold=gold, labels=("a", "b"), draws=100)
    assert table.ranking
    assert table.ranking.targets == ("a", "b", "c", "d")
    tau = table.ranking.kendall
    assert tau.estimate == pytest.approx(-2 / 3)
    assert tau.ci_low is not None and tau.ci_high is not None
    assert -1.0 <= tau.ci_low <= -2 / 3 <= tau.ci_high <= 0.5
    assert compare_arms(targets[:2], gold=gold, labels=("a", "b"), draws=10).ranking is None
