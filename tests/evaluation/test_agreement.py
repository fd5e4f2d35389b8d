"""Return targets near a line; the first is so far above it."""

import csv
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import linear_regression
from typing import get_args

import numpy as np
import pytest

from benchmarks.calibration_studies import compared, decomposed, listed, truths_of
from benchmarks.calibration_worlds import Made, Planted, scores
from coreeval.evaluation import decomposition, pcr
from coreeval.evaluation.agreement import (
    MIN_TARGETS,
    DetectorAgreement,
    MemoryEvidence,
    compare_detectors,
    compare_targets,
    find_memory_evidence,
    list_scored_models,
    load_calibration,
    measure_standing,
)
from coreeval.evaluation.answer_codes import code_answers
from coreeval.evaluation.decomposition import (
    Decomposition,
    ItemEvidence,
    SampleFlags,
    compare_arm_texts,
    decompose,
)
from coreeval.evaluation.detectors import DETECTORS, TARGET_DETECTORS
from coreeval.evaluation.detectors.base import MemoryFinding
from coreeval.evaluation.excess import TargetStanding
from coreeval.evaluation.numleak.memory_verdicts import VERDICTS
from coreeval.evaluation.recitation import RecitationVerdict
from coreeval.evaluation.report.report_document import write_items
from coreeval.evaluation.scores import ARMS
from coreeval.evaluation.statistics import adjust_holm
from coreeval.evaluation.whitebox import contamination
from coreeval.evaluation.whitebox.exchangeability import ExchangeabilityVerdict
from coreeval.evaluation.whitebox.membership import MembershipVerdict
from coreeval.schema import Arm
from coreeval.tools.stores.run_tables import TargetAnswer
from tests.support.planted import Marks, coded, first, some


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
    arms: dict[Arm, Marks] = {arm: first(30) for arm in get_args(Arm)}
    standings = [
        TargetStanding(str(i), 50, np.full(3, 0.6 + 0.01 * i), np.full(3, 0.6)) for i in range(5)
    ]
    series = [("fluent", "close but no"), ("memorized", "to the digit")]
    return compare_detectors(
        ["a", "b"],
        {
            "pcr": {"targets": [pcr_target("a", "contaminated", "the interval is below 0")]},
            "decomposition": {
                "targets": [drop_target(_items(("s1", "s2")), decompose(coded(arms)))],
                "panel": compare_targets(standings[:4]).model_dump(mode="json"),
            },
            "numleak": {
                "series": [
                    {"model": "a", "series": verdict, "name": f"the {verdict} one",
                     "verdict": verdict, "reasons": [reason]}
                    for verdict, reason in series
                ]
            },
        },
    )  # fmt: skip


def pcr_target(name: str, verdict: str, reason: str) -> dict[str, object]:
    return {"name": name, "verdict": verdict, "reason": reason, "test": {"basis": "none"}}


def drop_target(items: ItemEvidence, drop: Decomposition | None = None) -> dict[str, object]:
    found = drop.model_dump(mode="json") if drop else {"verdict": "too_few", "reasons": []}
    return found | {"target": items.target, "items": items.model_dump(mode="json")}


def test_each_detector_speaks_for_itself() -> None:
    row = _matrix().rows[0]
    assert {name: (cell.said, cell.verdict) for name, cell in row.cells.items()} == {
        "pcr": ("remembered", "contaminated"),
        "decomposition": ("not_shown", "not_shown"),
        "items": ("remembered", "2 of 50 flagged"),
        "panel": ("not_measured", ""),
        "numleak": ("remembered", "memorized"),
        "recitation": ("not_measured", ""),
        "membership": ("not_measured", ""),
        "exchangeability": ("not_measured", ""),
    }
    assert row.cells["panel"].reason == "panel too small: 4 targets, but 5 are needed"
    assert row.cells["numleak"].reason == "1 of 2 series; the memorized one: to the digit"
    assert (
        row.cells["items"].reason
        == "of the flagged samples, at most 0.4 are false positives on average"
    )


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
    report = {"decomposition": {"targets": [drop_target(found)], "panel": None}}
    (row,) = compare_detectors(["a"], report).rows
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
    panel = compare_targets(standings).model_dump(mode="json")
    report = {"decomposition": {"targets": [], "panel": panel}}
    rows = compare_detectors(["2", "3"], report).rows
    assert [row.cells["panel"].said for row in rows] == ["remembered", "not_shown"]


def test_models_that_scored_texts_are_listed_once() -> None:
    entry = {"target": "hf:weights", "verdict": "too_few", "reason": "few"}
    documents = {name: {"targets": [entry]} for name in ("membership", "exchangeability")}
    assert list_scored_models({"detectors": documents}) == ["hf:weights"]
    recited = {"recitation": {"targets": [entry]}}
    assert list_scored_models({"detectors": recited}) == list_scored_models({}) == []


def test_every_verdict_has_a_meaning() -> None:
    known = {name: set(each.verdicts) for name, each in DETECTORS.items() if each.verdicts}
    assert known == {
        "pcr": set(get_args(pcr.Verdict)),
        "arms": set(get_args(decomposition.Verdict)),
        "numleak": set(VERDICTS),
        "recitation": set(get_args(RecitationVerdict)),
        "membership": set(get_args(MembershipVerdict)),
        "exchangeability": set(get_args(ExchangeabilityVerdict)),
        "finetune": set(get_args(contamination.Verdict)),
    }


def test_the_packaged_calibration_can_be_read() -> None:
    found = load_calibration()
    assert found.keys() <= _matrix().asks.keys()
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
    assert found.note == f"panel too small: {n} targets, but 5 are needed"


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
            said = label if right else LABELS[label == LABELS[0]]
            yield arm, 1, key, said, "answered", None, None


def levels(*without: Arm, samples: int = len(GOLD)) -> MemoryEvidence:
    answers = (
        (target, said_of(target, {arm: share for arm, share in arms.items() if arm not in without},
                         samples))
        for target, arms in {**RIGHT, **OTHERS}.items()
    )  # fmt: skip
    coded = code_answers(answers, gold=GOLD, labels=LABELS)
    return find_memory_evidence(
        list(RIGHT), coded, texts=TEXTS, references=list(OTHERS), noise=0.02, seed=7, others={},
        draws=300,
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
        assert "without a control arm" in target["reasons"][0]
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
    assert found.keys() == {each.key for each in TARGET_DETECTORS}
    assert all(each.false_positives and each.found for each in found.values())
