"""Drops with a planted cause: rewriting is explained by the control arm, memory is left."""

import csv
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from benchmarks.calibration_studies import compared, decomposed, listed, truths_of
from benchmarks.calibration_worlds import Made, Planted, scores
from coreeval.evaluation.agreement import DETECTOR_QUESTIONS, load_calibration
from coreeval.evaluation.answer_codes import code_answers
from coreeval.evaluation.decomposition import compare_arm_texts
from coreeval.evaluation.memory_evidence import MemoryEvidence, find_memory_evidence
from coreeval.evaluation.report.report_document import write_items
from coreeval.evaluation.scores import ARMS
from coreeval.schema import Arm
from coreeval.tools.stores.run_records import TargetAnswer

LABELS = ("joy", "anger")
GOLD = {f"emotion/test/{number}": LABELS[number % 2] for number in range(400)}
THROWN_OFF = "openai:thrown-off-by-rewriting"
REMEMBERS = "openai:remembers"
RIGHT: Mapping[str, Mapping[Arm, float]] = {
    THROWN_OFF: {"original": 0.9, "semantic": 0.9, "updated": 0.65, "control": 0.65},
    REMEMBERS: {"original": 0.9, "semantic": 0.9, "updated": 0.65, "control": 0.88},
}
"""How often each is right on an arm."""
OTHERS = {
    f"openai:other-{ability}": dict.fromkeys(RIGHT[REMEMBERS], ability / 10)
    for ability in (5, 6, 7, 8, 9)
}
TEXTS = compare_arm_texts(
    {
        arm: {key: f"Some word {(place + shift) % 7}." for place, key in enumerate(GOLD)}
        for shift, arm in enumerate(RIGHT[REMEMBERS])
    }
)
"""Texts that are alike in all arms."""


def said_of(target: str, arms: Mapping[Arm, float], samples: int) -> Iterator[TargetAnswer]:
    chance = random.Random(target)
    for arm, share in arms.items():
        for key, label in list(GOLD.items())[:samples]:
            right = chance.random() < share
            yield arm, 1, key, label if right else LABELS[label == LABELS[0]], "answered"


def levels(*without: Arm, samples: int = len(GOLD)) -> MemoryEvidence:
    answers = (
        (target, said_of(target, {arm: share for arm, share in arms.items() if arm not in without},
                         samples))
        for target, arms in {**RIGHT, **OTHERS}.items()
    )  # fmt: skip
    coded = code_answers(answers, gold=GOLD, labels=LABELS)
    return find_memory_evidence(
        list(RIGHT), coded, texts=TEXTS, references=list(OTHERS), noise=0.02, seed=7, pcr=None,
        numleak=None, draws=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def controlled() -> MemoryEvidence:
    return levels()


def verdicts(found: MemoryEvidence) -> dict[str, str]:
    return {
        each["target"]: each["verdict"]
        for each in found.document["targets"]
        if each["target"] in RIGHT
    }


def test_the_control_arm_explains_rewriting_and_leaves_memory(controlled: MemoryEvidence) -> None:
    assert verdicts(controlled) == {THROWN_OFF: "not_shown", REMEMBERS: "remembered"}
    thrown, remembers = (each["accuracy"]["terms"] for each in controlled.document["targets"][:2])
    assert thrown["knowledge"]["lost"]["ci_low"] > 0.1 and thrown["rewriting"]["lost"]["ci_low"] > 0
    assert thrown["unexplained"]["beyond_noise"]["ci_low"] < 0
    assert remembers["unexplained"]["beyond_noise"]["ci_low"] > 0


def test_without_a_control_arm_neither_can_be_told(controlled: MemoryEvidence) -> None:
    found = levels("control")
    assert set(verdicts(found).values()) == {"no_control"}
    for target in found.document["targets"][:2]:
        assert "rewriting cannot be told from memory" in target["reasons"][0]
    assert all("control" not in column for column in found.columns)
    assert any("control" in column for column in controlled.columns)


def test_too_few_samples_get_no_verdict() -> None:
    found = levels(samples=19)
    assert set(verdicts(found).values()) == {"too_few"}


def test_detectors_that_did_not_run_say_nothing(
    controlled: MemoryEvidence,
) -> None:
    rows = {row["target"]: row["cells"] for row in controlled.document["agreement"]["rows"]}
    assert rows[REMEMBERS]["decomposition"]["said"] == "remembered"
    assert rows[THROWN_OFF]["decomposition"]["said"] == "not_shown"
    assert {rows[REMEMBERS][name]["said"] for name in ("pcr", "numleak")} == {"not_measured"}


def test_the_table_has_every_sample_of_every_target_by_arm(
    controlled: MemoryEvidence, tmp_path: Path
) -> None:
    write_items(tmp_path / "items.csv", controlled.columns, controlled.rows())
    with (tmp_path / "items.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(RIGHT) * len(GOLD)
    assert {row["target"] for row in rows} == {*RIGHT}  # no reference is a finding
    right = [int(row["control_1"]) for row in rows if row["target"] == THROWN_OFF]
    assert sum(right) / len(right) == pytest.approx(0.65, abs=0.07)


WORLD = Planted("all of it", words=0.3, strength=0.8, rewording=0.1, rewriting=0.1, mislabelled=0.1)


@pytest.mark.parametrize("planted", [WORLD, WORLD._replace(words=0.0, facts=0.3)])
def test_a_population_scores_what_many_of_its_samples_score(planted: Planted) -> None:
    made = Made(planted)
    coded = made.study(60_000, np.random.default_rng(3)).coded
    for arm, joint in made.joints.items():
        seen = np.zeros_like(joint)
        np.add.at(seen, (coded.table.due, coded.table.said[:, ARMS.index(arm)]), 1 / 60_000)
        assert seen == pytest.approx(joint, abs=0.006)
        assert scores(seen) == pytest.approx(scores(joint), abs=0.01)


def test_words_are_remembered_in_the_original_and_facts_before_the_cutoff() -> None:
    words, facts = (
        truths_of(Made(each))["accuracy"]
        for each in (Planted("words", words=0.5), Planted("facts", facts=0.5))
    )
    assert words["surface"] == words["surface_unexplained"] > 0.1
    assert words["unexplained"] == facts["surface"] == pytest.approx(0, abs=1e-12)
    assert facts["unexplained"] == facts["knowledge"] > 0.1


def test_what_is_planted_is_found_and_where_nothing_is_nothing() -> None:
    clean, known = Made(Planted("clean"), templates=3), Made(Planted("it", facts=1.0), templates=3)
    assert decomposed(known, 300, 2, 1)["remembered"].share == 1
    assert decomposed(clean, 300, 2, 1)["remembered"].share == 0
    assert listed(known, "facts", 300, 2, 1).false == 0
    assert listed(known, "facts", 300, 2, 1).found > 0.1
    assert listed(clean, "facts", 300, 2, 1).some.times == 0


def test_in_a_panel_the_one_that_remembers_stands_out() -> None:
    rates = compared(12, Planted("all", words=1.0, rewriting=0.1), 500, 4, 4)
    assert rates["found"].times >= 3
    assert rates["any"].times <= 1


def test_every_detector_of_the_matrix_has_a_calibration() -> None:
    found = load_calibration()
    assert found.keys() == DETECTOR_QUESTIONS.keys()
    assert all(each.false_positives and each.found for each in found.values())
