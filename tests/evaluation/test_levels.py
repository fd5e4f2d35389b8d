"""Drops with a planted cause: rewriting is explained by the control arm, memory is left."""

import csv
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from coreeval.evaluation.coded import code_answers
from coreeval.evaluation.decomposition import compare_arm_texts
from coreeval.evaluation.levels import Levels, find_levels
from coreeval.evaluation.report.items import write_items
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


def levels(*without: Arm, samples: int = len(GOLD)) -> Levels:
    answers = (
        (target, said_of(target, {arm: share for arm, share in arms.items() if arm not in without},
                         samples))
        for target, arms in {**RIGHT, **OTHERS}.items()
    )  # fmt: skip
    coded = code_answers(answers, gold=GOLD, labels=LABELS)
    return find_levels(
        list(RIGHT), coded, texts=TEXTS, references=list(OTHERS), noise=0.02, seed=7, pcr=None,
        numleak=None, draws=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def controlled() -> Levels:
    return levels()


def verdicts(found: Levels) -> dict[str, str]:
    return {
        each["target"]: each["verdict"]
        for each in found.document["targets"]
        if each["target"] in RIGHT
    }


def test_the_control_arm_explains_rewriting_and_leaves_memory(controlled: Levels) -> None:
    assert verdicts(controlled) == {THROWN_OFF: "not_shown", REMEMBERS: "remembered"}
    thrown, remembers = (each["accuracy"]["terms"] for each in controlled.document["targets"][:2])
    assert thrown["knowledge"]["lost"]["ci_low"] > 0.1 and thrown["rewriting"]["lost"]["ci_low"] > 0
    assert thrown["unexplained"]["beyond_noise"]["ci_low"] < 0
    assert remembers["unexplained"]["beyond_noise"]["ci_low"] > 0


def test_without_a_control_arm_neither_can_be_told(controlled: Levels) -> None:
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
    controlled: Levels,
) -> None:
    rows = {row["target"]: row["cells"] for row in controlled.document["agreement"]["rows"]}
    assert rows[REMEMBERS]["decomposition"]["said"] == "remembered"
    assert rows[THROWN_OFF]["decomposition"]["said"] == "not_shown"
    assert {rows[REMEMBERS][name]["said"] for name in ("pcr", "numleak")} == {"not_measured"}


def test_the_table_has_every_sample_of_every_target_by_arm(
    controlled: Levels, tmp_path: Path
) -> None:
    write_items(tmp_path / "items.csv", controlled.columns, controlled.rows())
    with (tmp_path / "items.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(RIGHT) * len(GOLD)
    assert {row["target"] for row in rows} == {*RIGHT}  # no reference is a finding
    right = [int(row["control_1"]) for row in rows if row["target"] == THROWN_OFF]
    assert sum(right) / len(right) == pytest.approx(0.65, abs=0.07)
