"""A target's stored answers as pairs, averaged over templates, with whole items resampled."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from coreeval.evaluation.pcr import PcrSettings, study
from coreeval.evaluation.pcr.comparison import Comparison, compare
from coreeval.evaluation.pcr.comparison_document import comparison_document
from coreeval.evaluation.pcr.pairs_from_run import (
    SOURCES,
    RunPairs,
    collect_pairs,
    resample_run_pairs,
)
from coreeval.schema import AnswerKind
from coreeval.tools.stores.run_tables import TargetAnswer
from tests.evaluation.pcr.kit import two_splits

SETTINGS = PcrSettings(metric="accuracy", consistency="exact", draws=400, seed=7, exchangeable=True)
N = 100
LABELS = {
    "train": {f"train:{i}": "ab"[i % 2] for i in range(N)},
    "test": {f"{i}": "ab"[i % 2] for i in range(N)},
}
FAULTY: tuple[AnswerKind, ...] = ("refused", "unparsed", "truncated")


def answers(
    *, right: Mapping[str, float], templates: int = 1, seed: int = 1
) -> Iterator[TargetAnswer]:
    """Yield answers that are right so often for texts of a source, and wrong else."""
    luck = np.random.default_rng(seed)
    for split, sources in SOURCES.items():
        for source in sources:
            for template in range(1, templates + 1):
                for item, label in LABELS[split].items():
                    good = luck.random() < right[source]
                    said = label if good else "b" if label == "a" else "a"
                    yield source, template, item, said, "answered", None, None


KNOWN = {"train": 1.0, "train_semantic": 0.6, "original": 0.6, "semantic": 0.6}


def compared(asked: RunPairs, settings: PcrSettings = SETTINGS) -> Comparison:
    return compare_all({"t": asked}, settings)["t"]


def compare_all(
    targets: Mapping[str, RunPairs], settings: PcrSettings = SETTINGS
) -> dict[str, Comparison]:
    found = {name: resample_run_pairs(each, settings) for name, each in targets.items()}
    return compare(found, settings.split_pair, settings.form, exchangeable=settings.exchangeable)


def test_one_template_is_the_comparison_of_recorded_pairs() -> None:
    asked = collect_pairs(answers(right=KNOWN), LABELS, [1])
    recorded = study({"t": asked.by_template[1]}, SETTINGS)["t"]
    assert compared(asked) == recorded
    assert recorded.verdict == "fine_tuned"


def test_templates_are_averaged_and_stay_with_their_item() -> None:
    single = collect_pairs(answers(right=KNOWN), LABELS, [1])
    thrice = collect_pairs(
        [(source, n, item, said, kind, None, None) for n in (1, 2, 3)
         for source, _, item, said, kind, *_ in answers(right=KNOWN)],
        LABELS,
        [1, 2, 3],
    )  # fmt: skip
    one, three = compared(single), compared(thrice)
    assert three.splits["train"].n == one.splits["train"].n == N
    assert three.difference.pcr == pytest.approx(one.difference.pcr), "not thrice the items"

    mixed = collect_pairs(answers(right=KNOWN, templates=3), LABELS, [1, 2, 3])
    each = [
        compared(replace(mixed, by_template={n: pairs})) for n, pairs in mixed.by_template.items()
    ]
    for split in LABELS:
        for score in ("performance", "consistency"):
            values = [getattr(found.splits[split], score) for found in each]
            assert getattr(compared(mixed).splits[split], score) == pytest.approx(np.mean(values))


def test_macro_f1_is_averaged_too() -> None:
    asked = collect_pairs(answers(right=KNOWN, templates=2), LABELS, [1, 2])
    found = compared(asked, replace(SETTINGS, metric="macro_f1"))
    assert found.splits["train"].performance == 1.0
    assert 0.4 < found.splits["test"].performance < 0.8


def test_only_items_with_all_answers_count_and_that_is_told() -> None:
    said = [
        answer
        for answer in answers(right=KNOWN, templates=2)
        if answer[:3] not in {("train", 2, "train:3"), ("semantic", 1, "5"), ("semantic", 2, "5")}
    ]
    asked = collect_pairs(said, LABELS, [1, 2])
    assert asked.notes == (
        "1 of 100 reworded train items are excluded because they lack complete answers",
        "1 of 100 reworded test items are excluded because they lack complete answers",
    )
    ids = [{pair.id for pair in pairs} for pairs in asked.by_template.values()]
    assert ids[0] == ids[1] and not ids[0] & {"train:3", "5"}
    found = compared(asked)
    assert {name: split.n for name, split in found.splits.items()} == {"train": 99, "test": 99}
    assert found.notes[:2] == asked.notes


def test_other_items_of_the_run_are_passed_over() -> None:
    more: list[TargetAnswer] = [("original", 1, "not reworded", "a", "answered", None, None)]
    there = collect_pairs([*answers(right=KNOWN), *more], LABELS, [1])
    assert there == collect_pairs(answers(right=KNOWN), LABELS, [1])


@pytest.mark.parametrize("kind", FAULTY)
def test_what_is_no_label_is_wrong_and_two_of_them_are_consistent(kind: AnswerKind) -> None:
    silent: list[TargetAnswer] = [
        (source, template, item, "", kind, None, None)
        for split, sources in SOURCES.items()
        for source in sources
        for template in (1, 2)
        for item in LABELS[split]
    ]
    found = compared(collect_pairs(silent, LABELS, [1, 2]))
    assert {(one.performance, one.consistency) for one in found.splits.values()} == {(0.0, 1.0)}
    assert found.verdict == "insufficient_signal"
    counted = "200 of 200 pairs are two empty answers, counted as consistent"
    assert found.notes == tuple(f"consistency: template {n}: {counted}" for n in (1, 2))


@pytest.mark.parametrize("empty", [["train"], ["test"], ["train", "test"]])
def test_a_split_without_items_is_inconclusive_and_has_no_number(empty: list[str]) -> None:
    labels = {split: {} if split in empty else items for split, items in LABELS.items()}
    found = compared(collect_pairs(answers(right=KNOWN), labels, [1]))
    assert found.verdict == "inconclusive"
    assert all(f"{split} has 0" in found.reason for split in empty)
    assert math.isnan(found.difference.pcr.estimate)
    document = comparison_document(found)
    assert document["splits"][empty[0]]["performance"] is None
    assert document["splits"][empty[0]]["n"] == 0
    assert document["difference"]["p_adjusted"] is None


def test_p_values_are_adjusted_over_all_targets() -> None:
    weak = {"train": 0.85, "train_semantic": 0.7, "original": 0.6, "semantic": 0.6}
    targets = {
        name: collect_pairs(answers(right=right, seed=seed), LABELS, [1])
        for seed, (name, right) in enumerate({"weak": weak, "same": weak, "strong": KNOWN}.items())
    }
    found = [one.difference for one in compare_all(targets).values()]
    alone = [compared(asked).difference for asked in targets.values()]
    assert [one.p_value for one in found] == [one.p_value for one in alone]
    assert [one.p_adjusted for one in alone] == [one.p_value for one in alone]
    assert sum(one.p_adjusted for one in found) > sum(one.p_value for one in found)


def test_the_document_is_that_of_recorded_pairs() -> None:
    (one,) = study({"t": two_splits((40, 36, 30), (40, 20, 30))}, SETTINGS).values()
    document = comparison_document(one)
    assert set(document) == {
        "splits", "difference", "adjusted", "exchangeable_splits", "test", "doses",
        "verdict", "reason", "baselines", "notes",
    }  # fmt: skip
    assert document["difference"]["estimate"] == one.difference.pcr.estimate
