from statistics import linear_regression
from typing import get_args

import numpy as np
import pytest

from coreeval.evaluation import agreement as module
from coreeval.evaluation import decomposition, pcr
from coreeval.evaluation.agreement import (
    MIN_TARGETS,
    DetectorAgreement,
    MemoryFinding,
    compare_detectors,
    compare_targets,
    load_calibration,
    measure_standing,
)
from coreeval.evaluation.decomposition import ItemEvidence, SampleFlags, decompose
from coreeval.evaluation.excess import TargetStanding
from coreeval.evaluation.numleak.memory_verdicts import VERDICTS
from coreeval.evaluation.statistics import adjust_holm
from tests.support.planted import coded, first, some


def _items(ids: tuple[str, ...], base: str | None = "control") -> ItemEvidence:
    flagged = SampleFlags(ids=ids, expected_false=0.4, highest=9, by_chance=0, least=8)
    return ItemEvidence.model_validate(
        {
            "target": "a",
            "n": 50 if base else 0,
            "templates": 3,
            "base": base,
            "false_share": 0.1,
            "kinds": {"wording": flagged} if base else {},
            "note": "how far it reaches",
        }
    )


def _matrix() -> DetectorAgreement:
    arms = {arm: first(30) for arm in ("original", "semantic", "control", "updated")}
    standings = [
        TargetStanding(str(i), 50, np.full(3, 0.6 + 0.01 * i), np.full(3, 0.6)) for i in range(5)
    ]
    return compare_detectors(
        ["a", "b"],
        pcr={"a": ("contaminated", "the interval is below 0")},
        decompositions={"a": decompose(coded(arms))},  # type: ignore[arg-type]
        items={"a": _items(("s1", "s2"))},
        panel=compare_targets(standings[:4]),
        numleak={"a": [("fluent", "close but no"), ("memorized", "to the digit")]},
    )


def test_each_detector_speaks_for_itself() -> None:
    row = _matrix().rows[0]
    assert {name: (cell.said, cell.verdict) for name, cell in row.cells.items()} == {
        "pcr": ("remembered", "contaminated"),
        "decomposition": ("not_shown", "not_shown"),
        "items": ("remembered", "2 of 50 flagged"),
        "panel": ("not_measured", ""),
        "numleak": ("remembered", "memorized"),
    }
    assert row.cells["panel"].reason == "panel too small: 4 of 5 targets"
    assert row.cells["numleak"].reason == "1 of 2 series; to the digit"
    assert row.cells["items"].reason == "of them at most 0.4 falsely, on average"


def test_what_was_not_run_is_not_measured() -> None:
    row = _matrix().rows[1]
    assert {cell.said for cell in row.cells.values()} == {"not_measured"}
    assert row.cells["pcr"].reason == "was not run"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (_items(()), "not_shown"),
        (_items((), base=None), "cannot_tell"),
    ],
)
def test_flagged_samples_count_only_against_a_control_arm(
    found: ItemEvidence, said: MemoryFinding
) -> None:
    (row,) = compare_detectors(
        ["a"], pcr={}, decompositions={}, items={"a": found}, panel=None, numleak={}
    ).rows
    assert (row.cells["items"].said, row.cells["items"].reason) == (said, "how far it reaches")


def test_a_panel_speaks_of_its_own_targets() -> None:
    standings = [
        TargetStanding(
            str(i),
            50,
            np.full(3, 0.1 * i + (0.4 if i == 2 else 0.001 * (i % 2))),
            np.full(3, 0.1 * i),
        )
        for i in range(7)
    ]
    rows = compare_detectors(
        ["2", "3"],
        pcr={},
        decompositions={},
        items={},
        panel=compare_targets(standings),
        numleak={},
    ).rows
    assert [row.cells["panel"].said for row in rows] == ["remembered", "not_shown"]


def test_every_verdict_has_a_meaning() -> None:
    known = module._VERDICTS
    assert set(known["pcr"]) == set(get_args(pcr.Verdict))
    assert set(known["decomposition"]) == set(get_args(decomposition.Verdict))
    assert set(known["numleak"]) == set(VERDICTS)


def test_the_packaged_calibration_can_be_read() -> None:
    found = load_calibration()
    assert found.keys() <= module.DETECTOR_QUESTIONS.keys()
    assert _matrix().calibration == found


CLEAN = (0.42, 0.5, 0.55, 0.63, 0.7, 0.78, 0.84)


def _standings(excess: float, n: int = 7) -> list[TargetStanding]:
    """Return targets near a line; the first is so far above it."""
    rng = np.random.default_rng(9)
    found = []
    for place, updated in enumerate(CLEAN[:n]):
        original = 0.1 + 0.9 * updated + rng.normal(0, 0.01) + excess * (place == 0)
        found.append(TargetStanding(f"t{place}", 300, np.full(3, original), np.full(3, updated)))
    return found


def test_a_target_far_above_the_line_of_the_others_stands_out_alone() -> None:
    found = compare_targets(_standings(0.3))
    assert [each.target for each in found.targets if each.stands_out] == ["t0"]
    assert found.targets[0].excess.estimate == pytest.approx(0.3, abs=0.05)
    assert not any(each.stands_out for each in compare_targets(_standings(0)).targets)


def test_the_excess_is_over_the_line_of_the_others() -> None:
    standings = _standings(0.05)
    slope, intercept = linear_regression(
        [float(each.back[0]) for each in standings[1:]],
        [float(each.front[0]) for each in standings[1:]],
    )
    own = standings[0]
    expected = own.front[0] - intercept - slope * own.back[0]
    first_of = compare_targets(standings).targets[0]
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
        found = compare_targets(
            [
                TargetStanding(str(i), 99, np.full(3, o), np.full(3, u))
                for i, (o, u) in enumerate(pairs)
            ]
        ).targets[0]
        held.append((found.excess.ci_low or 0) <= 0 <= (found.excess.ci_high or 0))
    assert np.mean(held) > 0.92  # four others carry no line: what it may be widens the interval


@pytest.mark.parametrize("n", [0, 1, MIN_TARGETS - 1])
def test_a_small_panel_says_so(n: int) -> None:
    found = compare_targets(_standings(0.3, n))
    assert not found.targets
    assert found.note == f"panel too small: {n} of 5 targets"


def test_targets_that_are_all_alike_do_not_stand_out() -> None:
    same = [TargetStanding(str(i), 50, np.full(3, 0.6), np.full(3, 0.6)) for i in range(5)]
    assert [each.p_adjusted for each in compare_targets(same).targets] == [1.0] * 5


def test_without_scatter_draws_of_samples_say_how_sure_an_excess_is() -> None:
    rng = np.random.default_rng(1)
    marks = some(rng, 0.6, (300,))
    clean = [coded({"original": marks, "updated": marks}, target=str(i)) for i in range(5)]
    other = coded({"original": some(rng, 0.9, (300,)), "updated": marks}, target="m")
    standings = [measure_standing(each, draws=200) for each in (*clean, other)]
    found = compare_targets([each for each in standings if each is not None])
    assert found.targets[-1].stands_out
    assert 0 < found.targets[-1].p_value < 0.01


def test_a_target_is_placed_by_the_samples_that_both_arms_share() -> None:
    place = measure_standing(coded({"original": first(30), "updated": first(20)}), draws=10)
    assert place is not None
    assert (place.front[0], place.back[0], place.n) == (0.75, 0.5, 40)
    assert len(place.front) == 11
    assert measure_standing(coded({"original": first(10, 19), "updated": first(9, 19)})) is None
    assert measure_standing(coded({"original": first(30)})) is None


def test_holm() -> None:
    assert adjust_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjust_holm([0.6, 0.7]) == [1.0, 1.0]
    assert adjust_holm([]) == []
