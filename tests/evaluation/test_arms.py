"""The order of targets on two arms, beside scipy's own correlations."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from coreeval.errors import RunCorrupt
from coreeval.evaluation import arms
from coreeval.evaluation.arms import (
    TwoArmScores,
    compare_arms,
    kendall_tau_b,
    rank_targets,
    spearman_rho,
)
from coreeval.evaluation.label_scores import AnswerTable, AnswerView, ViewScores, resample
from coreeval.evaluation.scores import NO_SCORE, ArmComparison, ArmTable
from coreeval.schema import AnswerKind, Arm, Prediction
from coreeval.tools.stores.run_tables import TargetAnswer

GOLD = {"1": "a", "2": "a", "3": "b", "4": "b"}


FAULTS: tuple[AnswerKind, ...] = ("refused", "unparsed", "truncated")


def _said(by_arm: Mapping[Arm, Mapping[str, str]], template: int = 1) -> list[TargetAnswer]:
    """Return answers as the store gives them; a kind without a label stands for itself."""
    return [
        _answer(arm, template, key, said)
        for arm, answers in by_arm.items()
        for key, said in answers.items()
    ]


def _answer(arm: Arm, template: int, key: str, said: str) -> TargetAnswer:
    for fault in FAULTS:
        if said == fault:
            return arm, template, key, "", fault, None, None
    return arm, template, key, said, "answered", None, None


def _table(unrecoverable: Sequence[str] = ()) -> ArmTable:
    said = _said(
        {
            "updated": {"1": "unparsed", "3": "b"},
            "original": {"1": "a", "2": "a", "3": "b", "4": "a"},
            "semantic": {"1": "a", "2": "b", "3": "b"},
        }
    )
    return compare_arms([("t", said)], gold=GOLD, labels=("a", "b"), unrecoverable=unrecoverable)


def _comparison(table: ArmTable, first: Arm, second: Arm) -> ArmComparison:
    (target,) = table.targets
    (found,) = [
        each
        for each in target.all_samples.comparisons
        if (each.first.arm, each.second.arm) == (first, second)
    ]
    return found


def test_arms_are_compared_on_shared_samples_only() -> None:
    total = _comparison(_table(), "original", "updated")
    # the original's mistake on 4 is not held against it: 4 was never updated
    assert (total.first.accuracy.estimate, total.first.accuracy.n) == (1.0, 2)
    assert (total.second.accuracy.estimate, total.second.accuracy.n) == (0.5, 2)
    assert (total.accuracy_difference.estimate, total.accuracy_difference.n) == (-0.5, 2)
    reworded = _comparison(_table(), "original", "semantic")
    assert reworded.accuracy_difference.estimate == pytest.approx(-1 / 3)


def test_coverage_says_which_labels_the_shared_samples_have() -> None:
    coverage = _comparison(_table(), "original", "semantic").coverage
    assert [(each.label, each.shared, each.total) for each in coverage] == [
        ("a", 2, 2),
        ("b", 1, 2),
    ]


def test_unparsed_answers_are_wrong_and_counted() -> None:
    total = _comparison(_table(), "semantic", "updated")
    assert total.first.answers == {"answered": 2, "unparsed": 0, "truncated": 0, "refused": 0}
    assert total.second.answers == {"answered": 1, "unparsed": 1, "truncated": 0, "refused": 0}
    assert total.second.accuracy.estimate == 0.5


def test_refusals_are_in_no_score_and_counted() -> None:
    said = _said(
        {
            "original": {"1": "a", "2": "refused", "3": "b", "4": "truncated"},
            "updated": {"1": "refused", "2": "a", "3": "b", "4": "b"},
        }
    )
    (target,) = compare_arms([("t", said)], gold=GOLD, labels=("a", "b")).targets
    original, updated = target.all_samples.arms
    assert original.accuracy.estimate == pytest.approx(2 / 3)
    assert original.accuracy.n == 3
    assert (updated.accuracy.estimate, updated.accuracy.n) == (1.0, 3)
    assert original.answers == {"answered": 2, "unparsed": 0, "truncated": 1, "refused": 1}
    (pair,) = target.all_samples.comparisons
    # 1 and 2 were refused in one arm each: 3 and 4 are left
    assert (pair.first.accuracy.estimate, pair.second.accuracy.estimate) == (0.5, 1.0)
    assert (pair.accuracy_difference.estimate, pair.accuracy_difference.n) == (0.5, 2)
    assert pair.coverage[0].shared == 2


def test_a_target_that_refuses_everything_is_scored_nothing() -> None:
    every = dict.fromkeys(GOLD, "refused")
    said = _said({"original": every, "semantic": every})
    (target,) = compare_arms([("t", said)], gold=GOLD, labels=("a", "b")).targets
    for arm in target.all_samples.arms:
        assert arm.macro_f1 == arm.accuracy == NO_SCORE
        assert arm.answers["refused"] == 4
        assert arm.templates[0].macro_f1 == NO_SCORE
    (pair,) = target.all_samples.comparisons
    assert pair.macro_f1_difference == NO_SCORE


def test_arms_are_averaged_over_templates_that_stand_apart_beside_them() -> None:
    said = [
        *_said({"original": {"1": "a", "3": "b"}, "semantic": {"1": "a", "3": "a"}}, template=1),
        *_said({"original": {"1": "b", "3": "b"}, "semantic": {"1": "b", "3": "a"}}, template=2),
    ]
    (target,) = compare_arms([("t", said)], gold=GOLD, labels=("a", "b")).targets
    original, semantic = target.all_samples.arms
    assert [one.template for one in original.templates] == [1, 2]
    assert [one.accuracy.estimate for one in original.templates] == [1.0, 0.5]
    assert [one.macro_f1.estimate for one in original.templates] == [1.0, pytest.approx(1 / 3)]
    assert original.macro_f1.estimate == pytest.approx((1 + 1 / 3) / 2)
    assert (original.accuracy.estimate, original.accuracy.n) == (0.75, 2)
    (pair,) = target.all_samples.comparisons
    assert pair.accuracy_difference.estimate == pytest.approx(0.25 - 0.75)
    assert semantic.answers["answered"] == 4


def test_arms_asked_with_different_templates_are_not_compared() -> None:
    said = [*_said({"original": {"1": "a"}}, 1), *_said({"semantic": {"1": "a"}}, 2)]
    (target,) = compare_arms([("t", said)], gold=GOLD, labels=("a", "b")).targets
    assert len(target.all_samples.arms) == 2
    assert target.all_samples.comparisons == ()


def test_each_arm_is_also_scored_on_all_its_samples() -> None:
    (target,) = _table().targets
    assert [(each.arm, each.accuracy.n) for each in target.all_samples.arms] == [
        ("original", 4),
        ("semantic", 3),
        ("updated", 2),
    ]


def test_scores_without_unrecoverable_samples_stand_beside_those_with() -> None:
    table = _table(unrecoverable=("4", "not in the benchmark"))
    (target,) = table.targets
    assert table.unrecoverable == 1
    assert target.all_samples.arms[0].accuracy.estimate == 0.75
    found = target.recoverable.arms[0].accuracy
    assert (found.estimate, found.n) == (1.0, 3)
    assert target.recoverable.comparisons[0].coverage[1].total == 1


def test_targets_are_scored_apart_and_what_was_not_asked_is_left_out() -> None:
    answers = [
        ("one", _said({"original": {"1": "a"}})),
        ("silent", []),
        ("two", _said({"updated": {"2": "b"}})),
    ]
    table = compare_arms(answers, gold=GOLD, labels=("a", "b"))
    assert [each.target for each in table.targets] == ["one", "two"]
    assert [len(each.all_samples.arms) for each in table.targets] == [1, 1]
    assert all(each.all_samples.comparisons == () for each in table.targets)


def test_arms_without_a_shared_sample_are_compared_on_nothing() -> None:
    said = _said({"original": {"1": "a"}, "updated": {"2": "a"}})
    (target,) = compare_arms([("t", said)], gold=GOLD, labels=("a", "b")).targets
    (comparison,) = target.all_samples.comparisons
    assert comparison.accuracy_difference == comparison.macro_f1_difference == NO_SCORE


def test_no_predictions_make_an_empty_table() -> None:
    assert compare_arms([], gold=GOLD, labels=("a", "b")).targets == ()


@pytest.mark.parametrize("extra", [{"1": "a"}, {"9": "a"}, {"2": "c"}])
def test_a_doubled_or_foreign_prediction_or_label_is_told(extra: Mapping[str, str]) -> None:
    said = [*_said({"original": {"1": "a"}}), *_said({"original": extra})]
    with pytest.raises(RunCorrupt, match="duplicate prediction"):
        compare_arms([("t", said)], gold=GOLD, labels=("a", "b"))


def test_the_table_survives_json_and_is_repeatable() -> None:
    table = _table()
    assert ArmTable.model_validate_json(table.model_dump_json()) == table == _table()
    assert {"accuracy", "macro_f1", "difference", "refused", "n"} <= set(table.definitions)


def test_one_target_is_scored_before_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    def scored(
        table: AnswerTable, views: Sequence[AnswerView], *, seed: int, draws: int
    ) -> list[ViewScores]:
        events.append("scored")
        return resample(table, views, seed=seed, draws=2)

    def said(target: str) -> Iterator[TargetAnswer]:
        events.append(target)
        yield ("original", 1, "1", "a", "answered", None, None)

    monkeypatch.setattr(arms, "resample", scored)
    compare_arms(((name, said(name)) for name in ("one", "two")), gold=GOLD, labels=("a", "b"))
    assert events == ["one", "scored", "two", "scored"]


def test_unasked_samples_count_for_coverage_and_for_no_score() -> None:
    said = _said({"original": {"1": "a"}, "semantic": {"1": "a"}})
    (target,) = compare_arms([("t", said)], gold=GOLD, labels=("a", "b")).targets
    assert target.all_samples.arms[0].accuracy.n == 1
    (comparison,) = target.all_samples.comparisons
    assert [(each.label, each.shared, each.total) for each in comparison.coverage] == [
        ("a", 1, 2),
        ("b", 0, 2),
    ]


@pytest.mark.parametrize(("answer", "kind"), [("", "answered"), ("a", "refused")])
def test_a_label_and_its_kind_go_together(answer: str, kind: AnswerKind) -> None:
    with pytest.raises(ValueError, match="has an answer"):
        Prediction(
            target="t", sample_id="1", source="original", template=1, answer=answer, kind=kind
        )


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


def standing(name: str, first: list[float], second: list[float]) -> TwoArmScores:
    return TwoArmScores(name, np.array(first), np.array(second))


def test_two_targets_are_no_order() -> None:
    assert rank_targets([standing("a", [1.0, 1.0], [1.0, 1.0])] * 2) is None


def test_the_interval_is_that_of_the_draws() -> None:
    found = rank_targets(
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
    found = rank_targets([standing(name, [0.5, 0.5], [0.1, 0.2]) for name in "abc"])
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
            answers.append(("original", 1, key, one, "answered", None, None))
            answers.append(("updated", 1, key, two, "answered", None, None))
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


def test_the_rows_of_templates_take_clusters_into_account() -> None:
    gold = {str(place): "ab"[place % 2] for place in range(60)}
    answers = {key: label if int(key) // 10 else "refused" for key, label in gold.items()}
    answers |= {str(place): "b" for place in range(10, 20)}
    said = _said({"original": answers}) + _said({"original": answers}, template=2)
    clusters = {key: str(int(key) // 10) for key in gold}
    rows = []
    for each in (clusters, None):
        found = compare_arms([("t", said)], gold=gold, labels=("a", "b"), clusters=each, seed=7)
        (arm,) = found.targets[0].all_samples.arms
        rows.append([one.accuracy for one in arm.templates])
        assert each is None or rows[0][0] == rows[0][1] == arm.accuracy
    wide, narrow = rows[0][0], rows[1][0]
    assert wide.estimate == narrow.estimate == 0.9
    assert wide.ci_low is not None and narrow.ci_low is not None
    assert wide.ci_low < narrow.ci_low
