"""Equations 3 and 4 on the paper's correlations, and the others on what they are defined by."""

import numpy as np
import pytest

from coreeval.evaluation.numleak.leak.formulas import (
    leak_share,
    per_date,
    spread_of,
    worst_case,
)
from tests.evaluation.numleak.leak.planted import planted, triples


@pytest.mark.parametrize(("residual", "signal"), [(0.02, 0.74), (0.02, 0.64)])
def test_the_papers_leak_share_comes_of_its_correlations(residual: float, signal: float) -> None:
    assert f"{float(leak_share(residual, signal)):.1%}" == "99.9%"


def test_the_ceiling_saturates_wherever_recall_is_above_the_signal() -> None:
    for recall in (0.32, 0.65, 0.99):
        assert worst_case(recall, -0.07) == 1
    assert worst_case(0.31, 0.62) == pytest.approx(0.5)


def test_shares_stay_between_nothing_and_all_and_need_a_tie() -> None:
    assert leak_share(0.5, 0.3) == 0 and leak_share(0.0, 0.3) == 1
    assert np.isnan(leak_share(0.1, 0.0)) and np.isnan(worst_case(0.3, 0.0))


def test_every_number_is_what_regressions_give() -> None:
    dates = planted("recall", 0.8, 60, 1)
    s, h, t = (np.array([each[at] for each in dates]) for at in (1, 2, 3))
    rows, (of_s, of_h, of_t) = per_date(dates)
    found = spread_of(rows.sum(axis=0))
    beside = np.linalg.lstsq(np.stack([np.ones(60), h, t], axis=1), s, rcond=None)[0]
    left = s - np.polyval(np.polyfit(h, s, 1), h)
    assert found.slope_on_truth * of_s / of_t == pytest.approx(np.polyfit(t, s, 1)[0])
    assert found.slope_on_recall * of_s / of_h == pytest.approx(np.polyfit(h, s, 1)[0])
    assert found.recall_beside * of_s / of_h == pytest.approx(beside[1])
    assert found.truth_beside * of_s / of_t == pytest.approx(beside[2])
    assert found.residual_r == pytest.approx(np.corrcoef(left, t)[0, 1])
    direct = beside[2] / np.polyfit(t, s, 1)[0]
    assert found.through == pytest.approx(1 - direct), "indirect and direct effect are the total"
    errors, own = (each - np.polyval(np.polyfit(t, each, 1), t) for each in (h, s))
    assert found.follows_errors == pytest.approx(np.corrcoef(errors, own)[0, 1])


def test_recall_without_a_mistake_leaves_nothing_to_tell_apart() -> None:
    truth, noise = np.random.default_rng(1).normal(size=(2, 30))
    rows, _ = per_date(triples(truth + noise, truth, truth))
    found = spread_of(rows.sum(axis=0))
    assert found.leak_share == pytest.approx(1) and found.residual_r == pytest.approx(0)
    assert np.isnan([found.follows_errors, found.truth_beyond, found.through]).all()


def test_a_signal_of_which_recall_leaves_nothing_is_all_recall() -> None:
    truth, recall = np.random.default_rng(1).normal(size=(2, 30)) + 2.0
    rows, _ = per_date(triples(recall + 1.0, recall, truth))
    found = spread_of(rows.sum(axis=0))
    assert found.leak_share == 1 and found.through == pytest.approx(1)
    assert np.isnan([found.residual_r, found.truth_beyond]).all()
    assert found.follows_errors == pytest.approx(1)
