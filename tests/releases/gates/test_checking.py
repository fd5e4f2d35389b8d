"""Each gate beside numbers that can be reckoned by hand, and what happens where there are none."""

from typing import Any

import pytest

from coreeval.evaluation.scores import Score, score_proportion
from coreeval.releases.gates.checking import check
from coreeval.releases.gates.limits import Gates
from coreeval.releases.gates.reading import default_gates
from coreeval.releases.gates.values import NUMBERS, VERDICTS, Subject
from coreeval.releases.manifest import Cost
from coreeval.releases.release_manifest import Findings, LabelNoise, Overlap, TargetFindings
from coreeval.tools.cutoffs import TargetFreshness
from tests.releases.gates.kit import FINDINGS, QUALITY, TARGETS, found, manifest

VALUES = {
    "label_noise": ("max", 0.04, ""),
    "acceptance": ("min", 0.6, ""),
    "label_acceptance": ("min", 0.3, "anger"),
    "balance_shift": ("max", 0.25, ""),
    "overlap": ("max", 0.125, ""),
    "evidence": ("min", 0.8, ""),
    "after_cutoff": ("min", 0.9, "a:1"),
    "still_stale": ("max", 0.2, ""),
    "cost_usd": ("max", 5.0, ""),
    "cost_per_accepted_usd": ("max", 0.1, ""),
}
"""What the manifest's values are: 5 dollars for 50 samples that were made, 54 of 60 after, 12 of
60 stale."""


def test_every_gate_has_its_value() -> None:
    assert {*NUMBERS, *VERDICTS} == set(Gates.model_fields)
    assert VALUES.keys() | {"rank_correlation"} == NUMBERS.keys()


@pytest.mark.parametrize("gate", VALUES)
def test_a_value_on_the_limit_is_met_and_beyond_it_is_not(gate: str) -> None:
    bound, value, of = VALUES[gate]
    on = found(gate, {bound: value})
    assert on.score
    assert (on.status, on.of) == ("met", of)
    assert on.score.estimate == pytest.approx(value)
    beyond = value - 0.01 if bound == "max" else value + 0.01
    off = found(gate, {bound: beyond})
    assert (off.status, off.stops, off.of) == ("not_met", True, of)
    assert off.reason.endswith(f"than {beyond:g}")


def test_without_a_release_before_it_nothing_can_be_stale() -> None:
    only = found("still_stale", {"max": 0.1}, still_stale=None)
    assert (only.status, only.score) == ("not_measured", None)
    assert "followed no release" in only.reason


def test_between_two_limits() -> None:
    assert found("acceptance", {"min": 0.5, "max": 0.7}).status == "met"
    above = found("acceptance", {"min": 0.1, "max": 0.5})
    assert (above.status, above.limit) == ("not_met", "at least 0.1 and at most 0.5")
    assert above.reason == "0.6 is more than 0.5"


def test_the_side_of_the_interval_that_counts() -> None:
    ends = score_proportion(60, 100)
    assert ends.ci_low and ends.ci_high
    assert found("acceptance", {"min": 0.55}).status == "met"
    low = found("acceptance", {"min": 0.55, "by": "ci_low"})
    assert (low.status, low.limit) == ("not_met", "lower end at least 0.55")
    assert low.reason == f"lower end {ends.ci_low:.4g} is less than 0.55"
    assert found("acceptance", {"min": 0.65, "by": "ci_high"}).status == "met"


def test_all_labels_beyond_the_limit_are_named_and_the_furthest_is_shown() -> None:
    both = found("label_acceptance", {"min": 0.95})
    assert both.of == "anger"
    assert both.reason == "joy: 0.9 is less than 0.95; anger: 0.3 is less than 0.95"
    assert found("label_acceptance", {"max": 0.5}).of == "joy"


def test_ranks_stop_a_release_only_where_the_whole_interval_does() -> None:
    assert found("rank_correlation", {"min": 0.6}).status == "met"
    assert found("rank_correlation", {"min": 0.7}).reason == "upper end 0.67 is less than 0.7"
    assert found("rank_correlation", {"min": 0.3, "by": "ci_low"}).status == "not_met"
    assert found("rank_correlation", {"min": 0.3, "by": "estimate"}).status == "met"
    assert found("rank_correlation", {"max": -0.4}).reason == "lower end -0.33 is more than -0.4"
    assert found("rank_correlation", {"min": 0.7, "method": "spearman"}).status == "met"


def test_verdicts_that_are_not_allowed() -> None:
    pcr = found("pcr", {"forbid": ["contaminated", "fine_tuned"]})
    assert (pcr.status, pcr.of, pcr.verdict) == ("not_met", "b:2", "contaminated")
    assert (pcr.reason, pcr.limit) == ("b:2 is contaminated", "not contaminated or fine_tuned")
    fine = found("pcr", {"forbid": ["fine_tuned"]})
    assert (fine.status, fine.verdict) == ("met", "comparable, contaminated")
    series = found("numleak", {"forbid": ["memorized", "fluent"]})
    assert series.reason == "a:1, cpi is fluent; b:2, cpi is memorized; b:2, co2 is fluent"


def without(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of a quality
    return {"quality": QUALITY.model_copy(update=changes)}


NOTHING = Score(estimate=None, ci_low=None, ci_high=None, n=0)
ABSENT: list[tuple[str, dict[str, Any], str]] = [
    ("label_noise", without(label_noise=LabelNoise()), "no blind judge"),
    ("acceptance", without(acceptance=NOTHING), "no samples"),
    ("label_acceptance", without(by_label=()), "no sample has a label"),
    ("balance_shift", without(balance_shift=None), "updated arm is empty"),
    ("overlap", without(overlap=None), "before overlap was measured"),
    ("overlap", without(overlap=Overlap(size=5, share=None, grams=0, texts=2)), "has 5 words"),
    ("overlap", without(overlap=Overlap(size=5, share=None, grams=0, texts=0)), "arm is empty"),
    ("evidence", without(evidence=NOTHING), "no samples"),
    ("after_cutoff", {"after_cutoff": ()}, "no target has a cutoff"),
    ("after_cutoff", {"after_cutoff": (TargetFreshness(target="a", unknown=9),)}, "no target has"),
    ("cost_usd", {"cost": Cost(billed_usd=None)}, "no known price"),
    ("cost_per_accepted_usd", {"cost": Cost(billed_usd=None)}, "no known price"),
    ("cost_per_accepted_usd", {"kept": 60}, "no sample of its own"),
    ("rank_correlation", {"findings": Findings(targets=TARGETS)}, "3 targets with scores on both"),
    ("rank_correlation", {"findings": None}, "there are 0"),
    ("pcr", {"findings": None}, "PCR was not measured"),
    ("drop", {"findings": Findings()}, "no target labelled"),
    ("numleak", {"findings": Findings()}, "no series"),
]


@pytest.mark.parametrize(("gate", "changes", "why"), ABSENT)
def test_a_value_that_is_not_there_stops_unless_the_gate_lets_it_go(
    gate: str, changes: dict[str, Any], why: str
) -> None:
    verdicts = {"pcr": "fine_tuned", "drop": "remembered", "numleak": "fluent"}
    said: dict[str, Any] = {"forbid": [verdicts[gate]]} if gate in verdicts else {"min": 0}
    stopped = found(gate, said, **changes)
    assert (stopped.status, stopped.stops) == ("not_measured", True)
    assert why in stopped.reason
    assert stopped.hint
    skipped = found(gate, {**said, "missing": "skip"}, **changes)
    assert (skipped.status, skipped.stops, skipped.reason) == ("skipped", False, stopped.reason)


FRESH = manifest().after_cutoff[:1]
UNDATED = (*FRESH, TargetFreshness(target="b:2", unknown=60))
ALIKE = (
    TargetFindings(target="a:1", pcr="comparable", drop="not_shown", numleak={"cpi": "fluent"}),
    TargetFindings(target="b:2", pcr="comparable", drop="not_shown", numleak={"cpi": "fluent"}),
)
PASSED: dict[str, dict[str, Any]] = {
    "after_cutoff": {"min": 0.9},
    "pcr": {"forbid": ["contaminated"]},
    "drop": {"forbid": ["remembered"]},
    "numleak": {"forbid": ["memorized"]},
}
BROKEN: dict[str, dict[str, Any]] = {
    "after_cutoff": {"min": 0.95},
    "pcr": {"forbid": ["comparable"]},
    "drop": {"forbid": ["not_shown"]},
    "numleak": {"forbid": ["fluent"]},
}


def of_targets(*targets: TargetFindings, **changes: object) -> dict[str, Any]:
    """Return what a release says that has two dated targets, and found something of some."""
    return {"findings": Findings(targets=targets), **changes}


LACKING: list[tuple[str, dict[str, Any], str]] = [
    ("after_cutoff", of_targets(*ALIKE, after_cutoff=UNDATED), "no cutoff is known of b:2"),
    ("after_cutoff", of_targets(*ALIKE, after_cutoff=FRESH), "no cutoff is known of b:2"),
    ("pcr", of_targets(ALIKE[0]), "PCR was not measured of b:2"),
    ("pcr", of_targets(ALIKE[0], TargetFindings(target="b:2")), "PCR was not measured of b:2"),
    ("drop", of_targets(ALIKE[0]), "the arms were not labelled by b:2"),
    ("numleak", of_targets(ALIKE[0]), "not asked: b:2, cpi"),
    (
        "numleak",
        of_targets(ALIKE[0], TargetFindings(target="b:2", numleak={"co2": "no_recall"})),
        "not asked: a:1, co2; b:2, cpi",
    ),
    (
        "pcr",
        of_targets(*ALIKE, models={"targets": [{"model": "c:3"}, {"model": "d:4"}]}),
        "PCR was not measured of c:3; d:4",
    ),
]


@pytest.mark.parametrize("gate", PASSED)
def test_a_gate_is_met_where_every_target_has_a_value(gate: str) -> None:
    assert found(gate, PASSED[gate], **of_targets(*ALIKE)).status == "met"


@pytest.mark.parametrize(("gate", "changes", "why"), LACKING)
def test_a_target_without_a_value_is_not_passed_over(
    gate: str, changes: dict[str, Any], why: str
) -> None:
    stopped = found(gate, PASSED[gate], **changes)
    assert (stopped.status, stopped.reason) == ("not_measured", why)
    assert stopped.hint
    assert found(gate, {**PASSED[gate], "missing": "skip"}, **changes).status == "skipped"


@pytest.mark.parametrize(("gate", "changes", "why"), LACKING)
def test_what_another_target_shows_fails_the_gate_though_one_has_no_value(
    gate: str, changes: dict[str, Any], why: str
) -> None:
    for said in (BROKEN[gate], {**BROKEN[gate], "missing": "skip"}):
        broken = found(gate, said, **changes)
        assert (broken.status, broken.of.partition(",")[0]) == ("not_met", "a:1")
        assert why not in broken.reason


def test_recorded_answers_are_one_target_wherever_their_file_lies() -> None:
    found_of = TargetFindings(
        target="replay:/somewhere/answers.jsonl",
        pcr="comparable",
        drop="not_shown",
        numleak={"cpi": "fluent"},
    )
    named = {"models": {"targets": [{"model": "replay:answers.jsonl"}]}, "after_cutoff": ()}
    for gate in ("pcr", "drop", "numleak"):
        assert found(gate, PASSED[gate], **of_targets(found_of, **named)).status == "met"


def test_nobody_expects_what_a_target_cannot_have() -> None:
    """Personas label no texts, classifiers know no numbers, and neither has read news."""
    persona = TargetFindings(target="offline:memorizing", numleak={"cpi": "memorized"})
    fitted = TargetFindings(target="offline:clean", pcr="comparable", drop="not_shown")
    changes = of_targets(*ALIKE, persona, fitted)
    statuses = {gate: found(gate, said, **changes).status for gate, said in PASSED.items()}
    assert statuses == {
        "after_cutoff": "met", "pcr": "met", "drop": "met", "numleak": "not_met",
    }  # fmt: skip


def test_one_sample_has_no_interval_to_hold_against_a_limit() -> None:
    tau = Score(estimate=1.0, ci_low=None, ci_high=None, n=3)
    assert FINDINGS.ranking
    alone = FINDINGS.ranking.model_copy(update={"kendall": tau})
    changed = {"findings": FINDINGS.model_copy(update={"ranking": alone})}
    assert found("rank_correlation", {"min": 0}, **changed).status == "not_measured"
    assert found("rank_correlation", {"min": 0, "by": "estimate"}, **changed).status == "met"


def test_the_default_gates_skip_what_a_release_does_not_have() -> None:
    empty = manifest(
        findings=None, after_cutoff=(), **without(label_noise=LabelNoise(), overlap=None)
    )
    statuses = {
        each.gate: each.status
        for each in check(Subject(manifest=empty, findings=None), default_gates())
    }
    skipped = {name for name, status in statuses.items() if status == "skipped"}
    assert skipped == {
        "label_noise", "overlap", "after_cutoff", "rank_correlation", "pcr", "drop",
    }  # fmt: skip
    assert statuses["balance_shift"] == "not_met"
    assert statuses["acceptance"] == "met"
