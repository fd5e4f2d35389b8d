from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from coreeval.evaluation.answer_codes import code_answers
from coreeval.evaluation.arms import compare_arms
from coreeval.evaluation.decomposition import Decomposition, DropParts, TermName, decompose
from coreeval.evaluation.decomposition.losses import macro_f1_cost
from coreeval.evaluation.label_scores import AnswerTable, AnswerView
from coreeval.schema import Arm
from coreeval.tools.stores.run_tables import TargetAnswer
from tests.support.planted import REFUSED, UNASKED, coded, first, some

HITS: dict[Arm, int] = {"original": 40, "semantic": 30, "control": 25, "updated": 10}


def _found(noise: float | None = None) -> Decomposition:
    return decompose(coded({arm: first(hits) for arm, hits in HITS.items()}), noise=noise)


def _lost(parts: DropParts, name: TermName) -> tuple[float, int]:
    lost = parts.terms[name].lost
    assert lost.estimate is not None
    return round(lost.estimate, 9), lost.n


def test_terms_are_differences_of_arms() -> None:
    accuracy = _found().accuracy
    assert _lost(accuracy, "surface") == (0.25, 40)
    assert _lost(accuracy, "knowledge") == (0.5, 40)
    assert _lost(accuracy, "rewriting") == (0.125, 40)
    assert _lost(accuracy, "unexplained") == (0.375, 40)
    assert _lost(accuracy, "surface_unexplained") == (0.125, 40)


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1"])
def test_steps_lead_from_the_original_to_the_updated_arm(metric: str) -> None:
    parts: DropParts = getattr(_found(), metric)
    assert [step.arm for step in parts.steps] == ["original", "semantic", "control", "updated"]
    assert parts.steps[0].lost is None
    for before, after in pairwise(parts.steps):
        assert before.score.estimate is not None
        assert after.score.estimate is not None
        assert after.lost is not None
        assert before.score.estimate - after.score.estimate == pytest.approx(after.lost.estimate)
    last = parts.steps[-1].lost
    assert last is not None
    assert last.estimate == pytest.approx(parts.terms["unexplained"].lost.estimate)


def test_what_the_control_arm_leaves_is_of_samples_that_all_four_arms_have() -> None:
    marks = {arm: first(hits) for arm, hits in HITS.items()}
    marks["control"][30:] = UNASKED
    marks["original"][:2] = REFUSED
    accuracy = decompose(coded(marks)).accuracy
    assert _lost(accuracy, "knowledge") == (0.5, 40)
    # of 28 shared samples 23 are right in the control arm, 8 in the updated one
    assert _lost(accuracy, "unexplained") == (round(15 / 28, 9), 28)
    assert accuracy.steps[-1].score.n == 28


def test_terms_without_their_arms_are_left_out() -> None:
    found = decompose(coded({"original": first(40), "updated": first(30)}))
    assert not found.accuracy.terms
    assert [step.arm for step in found.accuracy.steps] == ["original", "updated"]
    alone = decompose(coded({"original": first(40)}))
    assert not alone.accuracy.terms
    assert alone.verdict == "too_few"


def test_a_loss_is_the_drop_of_the_arm_table() -> None:
    rng = np.random.default_rng(5)
    gold = {f"s{place}": "abc"[place % 3] for place in range(60)}
    arms: tuple[Arm, ...] = ("original", "semantic", "updated")
    said: list[TargetAnswer] = [
        (arm, 1, key, "abc"[rng.integers(3)], "answered", None, None)
        for arm in arms
        for key in gold
    ]
    (target,) = compare_arms([("t", said)], gold=gold, labels="abc").targets
    (found,) = (decompose(each) for each in code_answers([("t", said)], gold=gold, labels="abc"))
    surface = found.macro_f1.terms["surface"].lost
    drop = target.all_samples.comparisons[0].macro_f1_difference
    assert surface.estimate == pytest.approx(-(drop.estimate or 0))
    assert (surface.n, drop.n) == (60, 60)


def test_the_p_value_belongs_to_the_interval() -> None:
    rng = np.random.default_rng(2)
    for share in (0.5, 0.6, 0.65, 0.7, 0.8):
        found = decompose(
            coded({"original": some(rng, share, (80,)), "semantic": some(rng, 0.5, (80,))})
        )
        term = found.accuracy.terms["surface"]
        assert term.lost.ci_low is not None
        assert term.lost.ci_high is not None
        assert term.p_value is not None
        outside = not term.lost.ci_low <= 0 <= term.lost.ci_high
        assert outside == (term.p_value < 0.05) or abs(term.p_value - 0.05) < 0.01


# -- label noise ----------------------------------------------------------------------------------


def test_wrong_labels_are_taken_off_once_for_each_arm_that_they_are_in() -> None:
    terms = _found(noise=0.05).accuracy.terms
    for name, cost in (("surface", 0.05), ("unexplained", 0.05), ("surface_unexplained", 0.1)):
        term = terms[name]  # type: ignore[index]
        assert term.lost.estimate is not None
        assert term.lost.ci_low is not None
        assert term.beyond_noise is not None
        assert term.beyond_noise.estimate == pytest.approx(term.lost.estimate - cost)
        assert term.beyond_noise.ci_low == pytest.approx(term.lost.ci_low - cost)
        assert term.beyond_noise.ci_high == term.lost.ci_high
    assert terms["rewriting"].beyond_noise is None
    assert _found().accuracy.terms["surface"].beyond_noise is None


def _macro_f1(due: list[int], said: list[int], labels: int) -> float:
    found = []
    for label in range(labels):
        hits = sum(a == b == label for a, b in zip(due, said, strict=True))
        found.append(2 * hits / max(due.count(label) + said.count(label), 1))
    return sum(found) / labels


def test_no_correction_of_labels_adds_more_to_macro_f1_than_its_bound() -> None:
    rng = np.random.default_rng(8)
    tight = []
    for _ in range(40):
        labels, wrong = int(rng.integers(2, 4)), int(rng.integers(1, 3))
        due, said = (rng.integers(labels, size=9).tolist() for _ in range(2))
        table = AnswerTable(np.array(due, np.int16), np.array(said, np.int16)[:, None], labels)
        view = AnswerView((1,), (0,), np.ones((9, 1), np.bool_))
        before = _macro_f1(due, said, labels)
        best = max(
            _macro_f1([said[i] if i in some else each for i, each in enumerate(due)], said, labels)
            for some in combinations(range(9), wrong)
        )
        bound = macro_f1_cost(table, view, wrong / 9)
        assert best - before <= bound + 1e-9
        tight.append(bound - (best - before))
    assert np.mean(tight) < 0.2  # it is a bound that says something: macro-F1 goes from 0 to 1


def test_samples_of_one_document_count_as_one() -> None:
    """Five samples a document that are lost together: the interval holds the truth all the same."""
    rng = np.random.default_rng(2)
    held = []
    for _ in range(120):
        shared = {arm: np.repeat(rng.random(40) < 0.7, 5).astype(np.int64) for arm in HITS}
        said = coded(shared)
        table = replace(said.table, clusters=np.arange(200) // 5)
        lost = decompose(replace(said, table=table), draws=200).accuracy.terms["unexplained"].lost
        assert lost.n == 200 and lost.ci_low is not None and lost.ci_high is not None
        held.append(lost.ci_low <= 0 <= lost.ci_high)
    assert np.mean(held) >= 0.9
