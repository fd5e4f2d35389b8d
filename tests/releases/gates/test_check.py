"""Each gate beside numbers that can be reckoned by hand, and what happens where there are none."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from coreeval.errors import GateNotMet, RunCorrupt, RunError, RunStateError
from coreeval.evaluation.detectors import GATED
from coreeval.evaluation.scores import Score, score_proportion
from coreeval.releases.gates.check import (
    GateFinding,
    GateResult,
    check_gates,
    check_release,
    format_summary,
    require_gates_of_release,
    write_junit,
)
from coreeval.releases.gates.limits import Gates, GatesFile, load_default_gates
from coreeval.releases.gates.values import NUMBERS, GateSubject
from coreeval.releases.release import Release
from coreeval.releases.release_manifest import ReviewState
from coreeval.runs.manifest import Cost
from coreeval.runs.quality import Findings, LabelNoise, Overlap, TargetFindings, read_findings
from coreeval.tools.cutoffs import TargetFreshness
from coreeval.tools.local_paths import shorten_name
from tests.releases.gates.kit import COMPARABILITY, FINDINGS, QUALITY, TARGETS, found, manifest
from tests.releases.kit import NOW, Made, make_run

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
    "length_ratio": ("min", 0.45, ""),
    "structure_share": ("max", 0.4, ""),
    "event_reuse": ("max", 4.0, ""),
}
"""What the manifest's values are: 5 dollars for 50 samples that were made, 54 of 60 after, 12 of
60 stale."""


def test_every_gate_has_its_value() -> None:
    assert {*NUMBERS, "comparability", *GATED} == set(Gates.model_fields)
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


def test_the_verdict_on_both_arms_is_a_gate_with_its_sentences() -> None:
    off = found("comparability", {"forbid": ["not_comparable"]})
    assert (off.status, off.of, off.verdict) == ("not_met", "the updated arm", "not_comparable")
    assert off.reason == "the updated arm is not_comparable (They are shorter.)"
    on = found("comparability", {"forbid": ["cannot_tell"]})
    assert (on.status, on.verdict) == ("met", "not_comparable")


@pytest.mark.parametrize("gate", ["length_ratio", "structure_share", "event_reuse"])
def test_arms_that_were_never_compared_were_not_measured(gate: str) -> None:
    before = FINDINGS.model_copy(update={"comparability": None})
    for findings in (None, before):
        only = found(gate, {"max": 1}, findings=findings)
        assert (only.status, only.hint[:16]) == ("not_measured", "write the report")
    said = found("comparability", {"forbid": ["not_comparable"]}, findings=before)
    assert said.status == "not_measured"
    nothing = COMPARABILITY.model_copy(
        update={"measures": (), "most_reused": None, "absent": {"structure": "no news"}}
    )
    none = FINDINGS.model_copy(update={"comparability": nothing})
    assert found(gate, {"max": 1, "missing": "skip"}, findings=none).status == "skipped"


def test_without_a_release_before_it_nothing_can_be_stale() -> None:
    only = found("still_stale", {"max": 0.1}, still_stale=None)
    assert (only.status, only.score) == ("not_measured", None)
    assert "is not based on a release" in only.reason


def test_rejected_samples_that_were_never_accepted_make_no_share_of_stale_ones_larger() -> None:
    for rejected in (50, 60):
        only = found("still_stale", {"max": 0.2}, review=ReviewState(rejected=rejected))
        assert only.score and only.score.n == 60
        assert only.score.estimate == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("share", "stale", "message"),
    [(0.1, 11, "still_stale: more samples"), (1e400, 1, "it is no share")],
)
def test_a_manifest_with_more_stale_samples_than_published_ones_is_refused(
    share: float, stale: int, message: str
) -> None:
    acceptance = QUALITY.acceptance.model_copy(update={"estimate": share})
    quality = QUALITY.model_copy(update={"acceptance": acceptance})
    with pytest.raises(ValueError, match=message):
        manifest(quality=quality, still_stale=stale)


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
    ("acceptance", without(acceptance=NOTHING) | {"still_stale": 0}, "no samples"),
    ("label_acceptance", without(by_label=()), "no sample has a label"),
    ("balance_shift", without(balance_shift=None), "updated arm is empty"),
    ("overlap", without(overlap=None), "before overlap was measured"),
    (
        "overlap",
        without(overlap=Overlap(size=5, share=None, grams=0, texts=2)),
        "shorter than 5 words",
    ),
    ("overlap", without(overlap=Overlap(size=5, share=None, grams=0, texts=0)), "arm is empty"),
    ("evidence", without(evidence=NOTHING), "no samples"),
    ("still_stale", without(acceptance=NOTHING) | {"still_stale": 0}, "arm is empty"),
    ("after_cutoff", without(acceptance=NOTHING) | {"still_stale": 0}, "arm is empty"),
    ("after_cutoff", {"after_cutoff": ()}, "no target has a known cutoff"),
    ("after_cutoff", {"after_cutoff": (TargetFreshness(target="a", unknown=9),)}, "no target has"),
    ("cost_usd", {"cost": Cost(billed_usd=None)}, "no known price"),
    ("cost_per_accepted_usd", {"cost": Cost(billed_usd=None)}, "no known price"),
    ("cost_per_accepted_usd", {"kept": 60}, "no new samples"),
    ("rank_correlation", {"findings": Findings(targets=TARGETS)}, "3 targets with scores on both"),
    ("rank_correlation", {"findings": None}, "only 0 have them"),
    ("pcr", {"findings": None}, "PCR was not measured"),
    ("drop", {"findings": Findings()}, "no target labelled"),
    ("numleak", {"findings": Findings()}, "any series"),
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


def with_targets(*names: str) -> dict[str, Any]:
    """Return what a release says of its models, with these targets."""
    return {"default": {"model": "offline"}, "targets": [{"model": name} for name in names]}


LACKING: list[tuple[str, dict[str, Any], str]] = [
    ("after_cutoff", of_targets(*ALIKE, after_cutoff=UNDATED), "no cutoff is known for b:2"),
    ("after_cutoff", of_targets(*ALIKE, after_cutoff=FRESH), "no cutoff is known for b:2"),
    ("pcr", of_targets(ALIKE[0]), "PCR was not measured for b:2"),
    ("pcr", of_targets(ALIKE[0], TargetFindings(target="b:2")), "PCR was not measured for b:2"),
    ("drop", of_targets(ALIKE[0]), "these targets did not label the arms: b:2"),
    (
        "numleak",
        of_targets(ALIKE[0]),
        "no questions were asked for these targets and series: b:2, cpi",
    ),
    (
        "numleak",
        of_targets(ALIKE[0], TargetFindings(target="b:2", numleak={"co2": "no_recall"})),
        "no questions were asked for these targets and series: a:1, co2; b:2, cpi",
    ),
    (
        "pcr",
        of_targets(*ALIKE, models=with_targets("openai:c", "openai:d")),
        "PCR was not measured for openai:c; openai:d",
    ),
]


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("length_ratio", {"max": 2}),
        ("event_reuse", {"max": 9}),
        ("rank_correlation", {"min": -1}),
        ("comparability", {"forbid": ["comparable"]}),
    ],
)
def test_a_report_with_samples_that_a_release_leaves_out_is_not_about_it(
    gate: str, said: dict[str, Any]
) -> None:
    assert found(gate, said).status == "met"
    of = found(gate, said, **without(acceptance=score_proportion(58, 100)))
    assert of.status == "not_measured"
    assert of.reason == "the report includes 2 samples that this release leaves out"


@pytest.mark.parametrize("gate", PASSED)
def test_a_gate_is_met_where_every_target_has_a_value(gate: str) -> None:
    assert found(gate, PASSED[gate], **of_targets(*ALIKE)).status == "met"


SCORED = TargetFindings(target="hf:weights", others={"membership": {"": "member"}})
"""Weights that scored texts and are no target."""


@pytest.mark.parametrize("gate", PASSED)
def test_nothing_else_is_expected_of_weights_that_only_scored_texts(gate: str) -> None:
    assert found(gate, PASSED[gate], **of_targets(*ALIKE, SCORED)).status == "met"
    both = SCORED.model_copy(update={"drop": "not_shown"})
    if gate == "pcr":
        assert found(gate, PASSED[gate], **of_targets(*ALIKE, both)).status == "not_measured"


def test_a_gate_forbids_what_weights_show() -> None:
    limit = {"forbid": ["member"], "missing": "skip"}
    assert found("membership", limit, **of_targets(*ALIKE, SCORED)).status == "not_met"


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
    named = {"models": with_targets("replay:answers.jsonl"), "after_cutoff": ()}
    for gate in ("pcr", "drop", "numleak"):
        assert found(gate, PASSED[gate], **of_targets(found_of, **named)).status == "met"


ELSEWHERE = (shorten_name("replay:/y/f.jsonl"), shorten_name("replay:/z/f.jsonl"))


@pytest.mark.parametrize(
    ("names", "places"),
    [
        (("replay:a/f.jsonl", "replay:b/f.jsonl"), ("/x/a/f.jsonl", "/x/b/f.jsonl")),
        (("replay:~/a/f.jsonl", "replay:f.jsonl"), ("/home/me/a/f.jsonl", "/x/f.jsonl")),
        (ELSEWHERE, ("/y/f.jsonl", "/z/f.jsonl")),
    ],
)
def test_files_with_the_same_last_name_are_several_targets(
    names: tuple[str, str], places: tuple[str, str]
) -> None:
    told = [ALIKE[0].model_copy(update={"target": f"replay:{place}"}) for place in places]
    fresh = [TargetFreshness(target=name, after=60) for name in names]
    models = with_targets(*names)
    for known, status in ((2, "met"), (1, "not_measured")):
        said = {"models": models, "after_cutoff": tuple(fresh[:known])}
        for gate, limit in PASSED.items():
            one = found(gate, limit, **of_targets(*told[:known], **said))
            assert one.status == status
            assert known == 2 or names[1] in one.reason


def test_a_reference_with_the_same_last_name_hides_no_target() -> None:
    models = with_targets("hf:base/model", "hf:tuned/model")
    models["targets"][0]["role"] = "reference"
    other = TargetFindings(target="a:1", pcr="comparable")
    lacking = found("pcr", PASSED["pcr"], **of_targets(other, models=models, after_cutoff=()))
    assert lacking.reason == "PCR was not measured for hf:tuned/model"


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
        for each in check_gates(GateSubject(manifest=empty, findings=None), load_default_gates())
    }
    skipped = {name for name, status in statuses.items() if status == "skipped"}
    assert skipped == {
        "label_noise", "overlap", "after_cutoff", "rank_correlation", "pcr", "drop",
        "comparability", "length_ratio", "structure_share", "event_reuse",
    }  # fmt: skip
    assert statuses["balance_shift"] == "not_met"
    assert statuses["acceptance"] == "met"


HOSTILE = 'a|b]]><x y="&\x00\x1b[2J`*_#\n::error::'


def gates(**said: Any) -> Gates:  # noqa: ANN401 - limits as a file has them
    return GatesFile.model_validate({"gates": said}).gates


HALF = gates(acceptance={"min": 0.5})


def report(verdict: str = "contaminated", run: str = "weekly/20261120T030000Z") -> dict[str, Any]:
    """Return the parts of a report.json that gates look at."""
    return {
        "run": run,
        "now": NOW.isoformat(),
        "arms": {"targets": [], "ranking": None},
        "pcr": {
            "targets": [
                {"name": "a:1", "verdict": verdict, "reason": "", "test": {"basis": "references"}}
            ]
        },
        "numleak": {
            "series": [
                {"model": "a:1", "series": "cpi", "name": "CPI", "verdict": "fluent", "reasons": []}
            ]
        },
        "targets": [{"target": "a:1", "role": "target"}, {"target": "b:2", "role": "reference"}],
        "decomposition": {
            "targets": [
                {"target": "a:1", "verdict": "too_few", "reasons": []},
                {"target": "b:2", "verdict": "remembered", "reasons": []},
            ]
        },
    }


def test_no_verdict_is_about_a_reference() -> None:
    found = read_findings(report(), where=Path("report.json"))
    assert [(each.target, each.drop) for each in found.targets] == [("a:1", "too_few")]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return make_run(tmp_path)


@pytest.fixture
def released(made: Made) -> Release:
    return made.release()


def test_a_release_that_keeps_its_gates(released: Release) -> None:
    found = check_release(released.path, HALF)
    assert (found.passed, found.version, found.digest) == (True, "2026.47", released.digest)
    assert not check_release(released.path, gates(acceptance={"min": 0.51})).passed


def test_what_was_altered_is_not_gated(released: Release) -> None:
    (released.path / "more.txt").write_text("x")
    with pytest.raises(RunError, match=r"has changed since it was made: extra more\.txt") as told:
        check_release(released.path, HALF)
    assert told.value.exit_code == 1


def test_a_release_knows_what_its_report_said_and_a_later_report_says_more(made: Made) -> None:
    asked = gates(pcr={"forbid": ["contaminated"]}, numleak={"forbid": ["memorized"]})
    before = made.release("1")
    assert before.manifest.findings is None
    [pcr, _] = check_release(before.path, asked).gates
    assert (pcr.status, pcr.reason) == ("not_measured", "PCR was not measured")
    made.files.report_json.write_text(json.dumps(report()))
    [pcr, numleak] = check_release(before.path, asked, report=made.files.report_json).gates
    assert (pcr.reason, numleak.verdict) == (
        "a:1 is contaminated (this assumes that the references have seen neither split)",
        "fluent",
    )
    after = made.release("2")
    assert [each.status for each in check_release(after.path, asked).gates] == ["not_met", "met"]
    later = made.folder / "later.json"
    later.write_text(json.dumps(report("comparable")))
    assert check_release(after.path, asked, report=later).passed


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (None, RunStateError, "report not found"),
        ("{", RunCorrupt, "is not the report of a run"),
        ("[]", RunCorrupt, "is not the report of a run"),
        (
            json.dumps(report() | {"pcr": {"targets": [{}]}}),
            RunCorrupt,
            "not in the expected format",
        ),
        (json.dumps(report() | {"pcr": 1}), RunCorrupt, "not in the expected format"),
        (json.dumps(report(run="other/1")), RunStateError, "from run other/1"),
    ],
)
def test_reports_that_are_none_of_it(
    released: Release, tmp_path: Path, text: str | None, error: type[Exception], message: str
) -> None:
    path = tmp_path / "r.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(error, match=message):
        check_release(released.path, HALF, report=path)


def test_a_release_beyond_a_limit_is_not_made_and_its_version_stays_free(made: Made) -> None:
    with pytest.raises(GateNotMet, match=r"1 of 2 gates not met: evidence: 0\.66"):
        made.release("1", gates=gates(acceptance={"min": 0.5}, evidence={"min": 0.9}))
    assert not (made.shelf / "1").exists()
    assert not list(made.shelf.glob(".*.draft"))
    assert made.release("1", gates=HALF).manifest.version == "1"


def test_a_release_that_is_there_is_held_against_gates_as_one_that_is_made(
    made: Made, released: Release
) -> None:
    tight = gates(evidence={"min": 0.9})
    with pytest.raises(GateNotMet) as there:
        require_gates_of_release(released.path, tight)
    with pytest.raises(GateNotMet) as being_made:
        made.release("2", gates=tight)
    assert there.value.message == being_made.value.message
    assert there.value.where == str(released.path)
    require_gates_of_release(released.path, HALF)
    (released.path / "more.txt").write_text("x")
    with pytest.raises(RunError, match="the release has changed since it was made"):
        require_gates_of_release(released.path, HALF)


def findings() -> GateResult:
    """Return findings of every kind, with names from outside that mean harm."""
    said = {"gate": "pcr", "limit": "not contaminated"}
    return GateResult(
        release="r",
        name=HOSTILE,
        version="1",
        digest="f00d",
        gates=(
            GateFinding(status="met", verdict="comparable", **said),
            GateFinding(status="not_met", of=HOSTILE, reason=f"{HOSTILE} is contaminated", **said),
            GateFinding(status="not_measured", reason="why", hint="what", **said),
            GateFinding(status="skipped", reason="why", hint="what", **said),
            GateFinding(status="too_few", reason="too few", hint="what", **said),
        ),
    )


def test_junit_has_a_case_for_each_gate(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "gates.xml"
    write_junit(path, findings(), NOW)
    root = ET.parse(path).getroot()
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == (
        "5", "2", "2",
    )  # fmt: skip
    kinds = [[child.tag for child in case] for case in suite]
    assert kinds == [[], ["failure"], ["failure"], ["skipped"], ["skipped"]]
    message = suite[1][0].attrib["message"]
    assert message.startswith('a|b]]><x y="&\ufffd\ufffd[2J')
    assert suite[2][0].attrib["type"] == "not_measured"
    assert (
        suite[2][0].attrib["message"] == "not measured: why; to do: what; required: not "
        "contaminated"
    )


def test_a_reader_of_junit_reads_it(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser")
    path = tmp_path / "gates.xml"
    write_junit(path, findings(), NOW)
    [suite] = junitparser.JUnitXml.fromfile(str(path))
    assert (suite.tests, suite.failures, suite.skipped, suite.errors) == (5, 2, 2, 0)
    ended = [[type(each).__name__ for each in case.result] for case in suite]
    assert ended == [[], ["Failure"], ["Failure"], ["Skipped"], ["Skipped"]]


def test_the_summary_is_a_table_in_which_names_are_text() -> None:
    lines = format_summary(findings()).splitlines()
    assert lines[0].startswith("## ❌ a\\|b\\]\\]\\>\\<x y=")
    assert lines[2:4] == ["| | gate | found | required |", "|---|---|---|---|"]
    rows = lines[4:8]
    for row in rows:
        assert row.replace("\\|", "").count("|") == 5
        assert "\x1b" not in row and "<x" not in row.replace("\\<", "")
    assert [row.split(" | ")[0] for row in rows] == ["| ✅", "| ❌", "| ❌", "| ⏭️"]
    assert lines[-1] == "Release `f00d`."


LINKS = (
    "www.evil.example/x",
    "(www.evil.example)",
    "WWW.evil.example",
    "http://evil.example",
    "https://evil.example/a?b=c&d",
    "ftp://evil.example",
    "a.b+c@evil.example",
    "mailto:a@evil.example",
    "xmpp:a@evil.example/x",
    "<https://evil.example>",
    "[text](https://evil.example)",
    "![text][1]",
    "@somebody",
    "owner/repo#1",
    r"\www.evil.example \https\://evil.example a\@evil.example",
    "https&#58;//evil.example a&#64;evil.example",
    "<!-- www.evil.example -->",
)
AUTOLINKED = re.compile(r"www\.|(?:https?|ftp)://|\w@\w|@\w|#\d", re.IGNORECASE)
"""What GitHub makes a link in a stretch of text, when escapes and entities are resolved."""


@pytest.mark.parametrize("hostile", LINKS)
def test_nothing_in_the_summary_becomes_a_link(hostile: str) -> None:
    said = {"gate": "pcr", "limit": "not contaminated", "status": "not_met", "reason": hostile}
    gated = findings().model_copy(update={"name": hostile, "gates": (GateFinding(**said),)})
    tokens = MarkdownIt("commonmark").enable("table").parse(format_summary(gated))
    inline = [each for token in tokens for each in token.children or ()]
    assert {each.type for each in inline} <= {"text", "html_inline", "code_inline"}
    assert {each.content for each in inline if each.type == "html_inline"} <= {"<!-- -->"}
    texts = [each.content for each in inline if each.type == "text"]
    assert not [text for text in texts if AUTOLINKED.search(text)]
    assert hostile in "".join(texts), "it is shown as it is"
