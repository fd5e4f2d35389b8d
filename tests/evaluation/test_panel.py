from statistics import linear_regression

import numpy as np
import pytest

from coreeval.evaluation.excess import Standing
from coreeval.evaluation.panel import MIN_TARGETS, panel, standing
from coreeval.evaluation.statistics import holm
from tests.support.planted import coded, first, some

CLEAN = (0.42, 0.5, 0.55, 0.63, 0.7, 0.78, 0.84)


def _standings(excess: float, n: int = 7) -> list[Standing]:
    """Return targets near a line; the first is so far above it."""
    rng = np.random.default_rng(9)
    found = []
    for place, updated in enumerate(CLEAN[:n]):
        original = 0.1 + 0.9 * updated + rng.normal(0, 0.01) + excess * (place == 0)
        found.append(Standing(f"t{place}", 300, np.full(3, original), np.full(3, updated)))
    return found


def test_a_target_far_above_the_line_of_the_others_stands_out_alone() -> None:
    found = panel(_standings(0.3))
    assert [each.target for each in found.targets if each.stands_out] == ["t0"]
    assert found.targets[0].excess.estimate == pytest.approx(0.3, abs=0.05)
    assert not any(each.stands_out for each in panel(_standings(0)).targets)


def test_the_excess_is_over_the_line_of_the_others() -> None:
    standings = _standings(0.05)
    slope, intercept = linear_regression(
        [float(each.back[0]) for each in standings[1:]],
        [float(each.front[0]) for each in standings[1:]],
    )
    own = standings[0]
    expected = own.front[0] - intercept - slope * own.back[0]
    first_of = panel(standings).targets[0]
    assert first_of.excess.estimate == pytest.approx(expected, abs=0.01)  # drawn towards level
    assert first_of.excess.ci_low is not None
    assert first_of.excess.ci_high is not None
    middle = (first_of.excess.ci_low + first_of.excess.ci_high) / 2
    assert middle == pytest.approx(first_of.excess.estimate)


def test_intervals_hold_a_new_target_in_19_of_20_panels_or_more() -> None:
    rng = np.random.default_rng(6)
    held = []
    for _ in range(250):
        updated = rng.uniform(0.4, 0.9, MIN_TARGETS)
        original = 0.1 + 0.9 * updated + rng.normal(0, 0.02, MIN_TARGETS)
        pairs = zip(original, updated, strict=True)
        found = panel(
            [Standing(str(i), 99, np.full(3, o), np.full(3, u)) for i, (o, u) in enumerate(pairs)]
        ).targets[0]
        held.append((found.excess.ci_low or 0) <= 0 <= (found.excess.ci_high or 0))
    assert np.mean(held) > 0.92  # four others carry no line: what it may be widens the interval


@pytest.mark.parametrize("n", [0, 1, MIN_TARGETS - 1])
def test_a_small_panel_says_so(n: int) -> None:
    found = panel(_standings(0.3, n))
    assert not found.targets
    assert found.note == f"panel too small: {n} of 5 targets"


def test_targets_that_are_all_alike_do_not_stand_out() -> None:
    same = [Standing(str(i), 50, np.full(3, 0.6), np.full(3, 0.6)) for i in range(5)]
    assert [each.p_adjusted for each in panel(same).targets] == [1.0] * 5


def test_without_scatter_draws_of_samples_say_how_sure_an_excess_is() -> None:
    rng = np.random.default_rng(1)
    marks = some(rng, 0.6, (300,))
    clean = [coded({"original": marks, "updated": marks}, target=str(i)) for i in range(5)]
    other = coded({"original": some(rng, 0.9, (300,)), "updated": marks}, target="m")
    standings = [standing(each, draws=200) for each in (*clean, other)]
    found = panel([each for each in standings if each is not None])
    assert found.targets[-1].stands_out
    assert 0 < found.targets[-1].p_value < 0.01


def test_a_target_is_placed_by_the_samples_that_both_arms_share() -> None:
    place = standing(coded({"original": first(30), "updated": first(20)}), draws=10)
    assert place is not None
    assert (place.front[0], place.back[0], place.n) == (0.75, 0.5, 40)
    assert len(place.front) == 11
    assert standing(coded({"original": first(10, 19), "updated": first(9, 19)})) is None
    assert standing(coded({"original": first(30)})) is None


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []
