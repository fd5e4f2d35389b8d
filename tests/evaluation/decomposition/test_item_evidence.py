import numpy as np
import pytest

from coreeval.evaluation.decomposition import LossCheck, MemoryKind, find_items
from coreeval.evaluation.decomposition.item_evidence import shrinkage
from coreeval.evaluation.scores import Score
from coreeval.schema import Arm
from tests.support.planted import REFUSED, UNASKED, Marks, coded, first

N = 1200
ARMS: tuple[Arm, ...] = ("original", "semantic", "control", "updated")


ALIKE = LossCheck(
    no_label=None,
    others=("a", "b", "c", "d"),
    excess=Score(estimate=0.2, ci_low=0.1, ci_high=0.3, n=N),
    p_value=0.001,
    p_adjusted=0.002,
    exceeds=True,
    unlike=(),
)
CHECKS: dict[MemoryKind, LossCheck] = {"wording": ALIKE, "facts": ALIKE}


def _texts(
    remembered: tuple[Arm, ...], *, templates: int = 3, share: float = 0.3, cost: float = 0.0
) -> dict[Arm, Marks]:
    """Return a target that is right on the first samples in some arms, as if it knew them.

    Each text is as hard by itself; every rewriting makes it harder by `cost`.
    """
    rng = np.random.default_rng(4)
    ability = rng.beta(2, 2, size=N)
    found: dict[Arm, Marks] = {}
    for step, arm in enumerate(ARMS):
        text = np.clip(ability + rng.normal(0, 0.1, N) - cost * min(step, 2), 0.02, 0.98)
        right = rng.random((N, templates)) < text[:, None]
        if arm in remembered:
            right[: int(share * N)] = True
        found[arm] = right.astype(np.int64)
    return found


@pytest.mark.parametrize(
    ("remembered", "kind", "other"),
    [
        (("original",), "wording", "facts"),
        (("original", "semantic", "control"), "facts", "wording"),
    ],
)
def test_samples_that_are_remembered_are_flagged_few_others_are(
    remembered: tuple[Arm, ...], kind: MemoryKind, other: MemoryKind
) -> None:
    found = find_items(coded(_texts(remembered)), CHECKS).found
    places = [int(key[1:]) for key in found.kinds[kind].ids]
    assert len(places) >= 10
    assert np.mean([place >= 0.3 * N for place in places]) <= 0.2
    assert not found.kinds[other].ids
    assert 0 < found.kinds[kind].expected_false <= 0.1 * len(places)


@pytest.mark.parametrize("cost", [0.0, 0.15])
def test_nothing_is_flagged_of_a_target_that_remembers_nothing(cost: float) -> None:
    found = find_items(coded(_texts((), cost=cost)), CHECKS).found
    assert found.base == "control"
    assert not any(each.ids for each in found.kinds.values())
    assert not any(each.expected_false for each in found.kinds.values())


def test_one_template_cannot_single_out_samples() -> None:
    found = find_items(coded(_texts(("original",), templates=1)), CHECKS).found
    assert not any(each.ids for each in found.kinds.values())
    wording = found.kinds["wording"]
    assert wording.least > wording.highest
    assert "with one template and one draw" in found.note


def test_without_a_control_arm_nothing_is_flagged() -> None:
    marks = _texts(("original",))
    del marks["control"]
    found = find_items(coded(marks), CHECKS).found
    assert found.base is None and not found.kinds
    assert "samples have an answer in all four arms" in found.note


def test_no_sample_is_flagged_if_a_harder_arm_may_explain_it() -> None:
    """The updated arm is 20 points harder, and nothing is remembered."""
    marks = _texts((), templates=5)
    rng = np.random.default_rng(5)
    marks["updated"] &= (rng.random(N) < 0.6)[:, None]
    said = coded(marks)
    assert find_items(said, CHECKS).found.kinds["facts"].ids, "the checks are needed"
    harder = ALIKE.model_copy(update={"unlike": ("the arms differ in words",)})
    found = find_items(said, {"wording": ALIKE, "facts": harder}).found
    assert "facts" not in found.kinds and "the arms differ in words" in found.note
    as_others = ALIKE.model_copy(update={"exceeds": False})
    found = find_items(said, {"wording": ALIKE, "facts": as_others}).found
    assert not found.kinds["facts"].ids and "other targets may lose as much" in found.note
    assert find_items(said).found.base is None


def test_identical_arms_stand_out_nowhere() -> None:
    items = find_items(coded({arm: first(30) for arm in ARMS}), CHECKS)
    assert not any(each.ids for each in items.found.kinds.values())
    assert {row["score_wording"] for row in items.rows} == {0.0}
    assert {row["p_facts"] for row in items.rows} == {1.0}


def test_the_table_has_every_answer_and_no_evidence_where_an_arm_is_missing() -> None:
    marks = {arm: first(30).reshape(-1, 1) for arm in ARMS}
    marks["updated"][0] = UNASKED
    marks["semantic"][1] = REFUSED
    for arm in ARMS:
        marks[arm][2] = UNASKED
    items = find_items(coded(marks), CHECKS)
    rows = {row["id"]: row for row in items.rows}
    assert all(tuple(row) == items.columns for row in items.rows)
    assert (rows["s0"]["original_1"], rows["s0"]["updated_1"]) == (1, None)
    assert rows["s0"]["score_wording"] is None
    assert rows["s1"]["semantic_1"] is None
    assert (rows["s39"]["label"], rows["s39"]["original_1"]) == ("b", 0)
    assert "s2" not in rows
    assert items.found.n == 37


def test_fewer_than_twenty_samples_or_no_second_arm_give_no_evidence() -> None:
    for marks in ({arm: first(9, 19) for arm in ARMS}, {"original": first(30)}):
        items = find_items(coded(marks), CHECKS)  # type: ignore[arg-type]
        assert items.found.base is None
        assert not items.found.kinds
        assert "fewer than 20 samples" in items.found.note
        assert items.columns[:3] == ("id", "label", "original_1")
        assert len(items.rows) == len(next(iter(marks.values())))


def test_scores_shrink_as_far_as_templates_disagree() -> None:
    rng = np.random.default_rng(1)
    asked = np.full(5000, 3)
    alike = 3 * rng.integers(2, size=(2, 5000))
    assert shrinkage(alike, asked) == pytest.approx(1)
    by_chance = rng.binomial(3, 0.6, size=(2, 5000))
    assert shrinkage(by_chance, asked) == pytest.approx(0, abs=0.1)
    rates = rng.beta(2, 2, size=(2, 5000))  # a prior as strong as four templates
    assert shrinkage(rng.binomial(3, rates), asked) == pytest.approx(3 / 7, abs=0.03)
    assert shrinkage(rng.integers(2, size=(2, 9)), np.ones(9, np.int64)) == pytest.approx(1)
