from collections.abc import Iterator, Mapping, Sequence

import pytest

from coreeval.evaluation import arms
from coreeval.evaluation.arms import Answer, ArmTable, Comparison, compare_arms
from coreeval.evaluation.scoring.classification import NOTHING, Pair, Score, accuracy
from coreeval.schema import Arm, Prediction

GOLD = {"1": "a", "2": "a", "3": "b", "4": "b"}


def _said(by_arm: Mapping[Arm, Mapping[str, str]]) -> list[Answer]:
    return [(arm, key, said) for arm, answers in by_arm.items() for key, said in answers.items()]


def _table(unrecoverable: Sequence[str] = ()) -> ArmTable:
    said = _said(
        {
            "updated": {"1": "", "3": "b"},
            "original": {"1": "a", "2": "a", "3": "b", "4": "a"},
            "semantic": {"1": "a", "2": "b", "3": "b"},
        }
    )
    return compare_arms([("t", said)], gold=GOLD, labels=("a", "b"), unrecoverable=unrecoverable)


def _comparison(table: ArmTable, first: Arm, second: Arm) -> Comparison:
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


def test_invalid_answers_are_wrong_and_counted() -> None:
    total = _comparison(_table(), "semantic", "updated")
    assert (total.first.invalid, total.second.invalid) == (0, 1)
    assert total.second.accuracy.estimate == 0.5


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
    assert target.recoverable.arms[0].accuracy == accuracy({("a", "a"): 3})
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
    assert comparison.accuracy_difference == comparison.macro_f1_difference == NOTHING


def test_no_predictions_make_an_empty_table() -> None:
    assert compare_arms([], gold=GOLD, labels=("a", "b")).targets == ()


@pytest.mark.parametrize("extra", [{"1": "a"}, {"9": "a"}])
def test_a_doubled_or_foreign_prediction_is_a_bug(extra: Mapping[str, str]) -> None:
    said = [*_said({"original": {"1": "a"}}), *_said({"original": extra})]
    with pytest.raises(ValueError, match="prediction"):
        compare_arms([("t", said)], gold=GOLD, labels=("a", "b"))


def test_the_table_survives_json_and_is_repeatable() -> None:
    table = _table()
    assert ArmTable.model_validate_json(table.model_dump_json()) == table == _table()
    assert {"accuracy", "macro_f1", "difference", "invalid"} == set(table.definitions)


def test_one_target_is_scored_before_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    def scored(pairs: Mapping[Pair, int]) -> Score:
        events.append("scored")
        return NOTHING

    def said(target: str) -> Iterator[Answer]:
        events.append(target)
        yield ("original", "1", "a")

    monkeypatch.setattr(arms, "accuracy", scored)
    compare_arms(((name, said(name)) for name in ("one", "two")), gold=GOLD, labels=("a", "b"))
    assert events == ["one", "scored", "scored", "two", "scored", "scored"]


def test_unasked_samples_count_for_coverage_and_for_no_score() -> None:
    said = _said({"original": {"1": "a"}, "semantic": {"1": "a"}})
    (target,) = compare_arms([("t", said)], gold=GOLD, labels=("a", "b")).targets
    assert target.all_samples.arms[0].accuracy.n == 1
    (comparison,) = target.all_samples.comparisons
    assert [(each.label, each.shared, each.total) for each in comparison.coverage] == [
        ("a", 1, 2),
        ("b", 0, 2),
    ]


def test_valid_and_answer_go_together() -> None:
    with pytest.raises(ValueError, match="a valid prediction has an answer"):
        Prediction(target="t", sample_id="1", arm="original", answer="", valid=True)
