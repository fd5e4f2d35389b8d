"""A detector is one value: its questions, report section, gate, findings and estimate follow."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from coreeval.errors import ConfigError, ModelUnusable, RunCorrupt, RunError, UsageError
from coreeval.evaluation import detectors
from coreeval.evaluation.agreement import compare_detectors
from coreeval.evaluation.detectors.base import (
    Detector,
    DetectorInputs,
    DetectorQuestion,
    TextAnswer,
)
from coreeval.evaluation.detectors.exchangeability import make_exchangeability
from coreeval.evaluation.detectors.membership import MEMBERSHIP
from coreeval.evaluation.detectors.recitation import RECITATION
from coreeval.evaluation.detectors.recitation_probes import PROBES
from coreeval.evaluation.recitation import halve_text
from coreeval.evaluation.recitation_peakedness import DRAWS, TEMPERATURE
from coreeval.evaluation.recitation_shares import cut_ngrams
from coreeval.evaluation.report import report_page
from coreeval.evaluation.whitebox.exchangeability import ExchangeabilitySettings
from coreeval.evaluation.whitebox.membership_texts import MembershipSettings
from coreeval.graph.detect import list_questions, plan_detection, read_inputs, run_detector
from coreeval.graph.estimate.call_figures import STATED_BASIS
from coreeval.graph.estimate.evaluation_estimate import estimate_detection
from coreeval.graph.evaluate import evaluate
from coreeval.graph.execute import DEFAULT_HOOKS, build_run_context, open_store
from coreeval.graph.reference_scoring import plan_with_reference, run_with_reference
from coreeval.graph.run import open_workspace
from coreeval.graph.text_scoring import ScoringRequest
from coreeval.runs import quality
from coreeval.runs.quality import Findings, TargetFindings, read_findings
from coreeval.tools.clock import utc_now
from tests.graph.kit import CONCURRENCY, SAMPLES, Lab
from tests.support.llm_server import Reply, Request, refused
from tests.support.scoring_server import ScoringServer

NAME = "openai:target"


def _ask(inputs: DetectorInputs) -> Iterator[DetectorQuestion]:
    for sample, arms in inputs.texts():
        yield DetectorQuestion(sample.id, f"Do you know {arms['original']['text']!r}?")


def _score(inputs: DetectorInputs, answers: Mapping[str, TextAnswer]) -> dict[str, Any]:
    yes = sum(answer.text == "yes" for answer in answers.values())
    verdict = "known" if yes else "unknown"
    return {"verdict": verdict, "reason": f"{yes} of {len(answers)}", "n": len(answers)}


KNOWS = Detector(
    name="knows",
    title="the question",
    question="Does the target say that it knows the texts?",
    access="answers",
    verdicts={"known": "remembered", "unknown": "not_shown"},
    questions=_ask,
    score=_score,
)


@pytest.fixture
def asked(finished: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Return a run with a target that labelled the arms, where the list has one detector more."""
    evaluate(finished.files.root, targets=[finished.target])
    finished.forget()
    finished.server.answers = _say_yes
    for module in (detectors, detectors.documents, report_page):
        for name in ("DOCUMENTED", "TARGET_DETECTORS"):
            if hasattr(module, name):
                known = getattr(detectors, name)
                more = {**known, "knows": KNOWS} if name == "DOCUMENTED" else (*known, KNOWS)
                monkeypatch.setattr(module, name, more)
    monkeypatch.setattr(quality, "GATED", {**detectors.GATED, "knows": KNOWS})
    return finished


async def _say_yes(request: Request) -> str | Reply:
    return "yes"


def _report(lab: Lab) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.files.report_json.read_text())
    return found


def test_it_asks_every_target_once_and_its_finding_joins_the_report(asked: Lab) -> None:
    plan = plan_detection(KNOWS, asked.files.root, [], None)
    found = run_detector(plan)
    assert len(asked.server.requests) == SAMPLES
    why = f"{SAMPLES} of {SAMPLES}"
    finding = {"target": NAME, "verdict": "known", "reason": why, "n": SAMPLES}
    assert list(found.document["targets"]) == [finding]
    assert found.summary.manifest.status == "complete"
    assert _report(asked)["detectors"] == {"knows": found.document}
    html = asked.files.report_html.read_text()
    assert '<h2 id="knows">The question</h2>' in html
    assert '<a href="#knows">The question</a>' in html
    assert f"<td>{why}</td>" in html
    assert "coreeval detect knows" not in html

    paid = found.summary.manifest.cost.billed_calls
    again = run_detector(plan)
    assert len(asked.server.requests) == SAMPLES
    assert again.summary.manifest.cost.billed_calls == paid


def test_its_verdicts_are_findings_of_a_release_and_gate_it(asked: Lab) -> None:
    run_detector(plan_detection(KNOWS, asked.files.root, [], None))
    found = read_findings(_report(asked), where=asked.files.report_json)
    (target,) = found.targets
    assert target.others == {"knows": {"": "known"}}
    assert [each.verdict for each in target.verdicts("knows")] == ["known"]
    assert Findings.model_validate_json(found.model_dump_json()) == found
    assert "others" not in TargetFindings(target=NAME).model_dump()
    gate = KNOWS.verdict_gate
    assert gate and (gate.name, gate.none) == ("knows", "the question was not run")


def test_its_estimate_asks_nothing_and_counts_its_questions(asked: Lab) -> None:
    plan = plan_detection(KNOWS, asked.files.root, [NAME], None)
    made = estimate_detection(plan, budget_usd=1.0)
    (line,) = made.lines
    assert (line.model, line.calls.likely) == (NAME, SAMPLES)
    assert asked.server.requests == []
    assert not asked.files.detector_document("knows").exists()


def test_a_target_that_fails_leaves_the_run_as_it_was_and_the_same_call_goes_on(
    asked: Lab,
) -> None:
    sent = list[Request]()

    async def fail_later(request: Request) -> str | Reply:
        sent.append(request)
        return "yes" if len(sent) <= 5 else refused(400)

    asked.server.answers = fail_later
    plan = plan_detection(KNOWS, asked.files.root, [], None)
    before = _report(asked)
    assert "<code>coreeval detect knows RUN</code>" in report_page.report_page(before)
    with pytest.raises(RunError, match="questions unanswered") as caught:
        run_detector(plan)
    assert "run the same command to continue" in caught.value.hint
    assert _report(asked) == before

    asked.server.answers = _say_yes
    asked.server.requests.clear()
    found = run_detector(plan)
    assert found.document["targets"][0]["n"] == SAMPLES
    assert len(asked.server.requests) == SAMPLES - 5


def test_a_target_that_the_run_does_not_have_is_refused(asked: Lab, finished: Lab) -> None:
    with pytest.raises(ConfigError, match="no target 'openai:other'") as caught:
        plan_detection(KNOWS, asked.files.root, ["openai:other"], None)
    assert f"it has {NAME}" in caught.value.hint


def test_a_run_without_targets_says_how_to_add_one(finished: Lab) -> None:
    with pytest.raises(ConfigError, match="no target that answers in text") as caught:
        plan_detection(KNOWS, finished.files.root, [], None)
    assert "coreeval evaluate" in caught.value.hint


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"targets": [{"target": "x", "verdict": "odd", "reason": ""}]}']
)
def test_a_damaged_finding_is_one_error_that_says_what_to_do(asked: Lab, text: str) -> None:
    path = asked.files.detector_document("knows")
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(RunCorrupt, match="the finding of the question is damaged") as caught:
        run_detector(plan_detection(KNOWS, asked.files.root, [], None))
    assert "delete the file" in caught.value.hint


def test_a_damaged_document_is_told_before_anything_is_asked(asked: Lab) -> None:
    document = asked.files.detector_document("knows")
    document.parent.mkdir(exist_ok=True)
    document.write_text("{")
    with pytest.raises(RunCorrupt, match="the finding of the question is damaged"):
        plan_detection(KNOWS, asked.files.root, [], None)


def test_recitation_of_originals_alone_is_told(asked: Lab) -> None:
    rests = dict[str, str]()

    async def recite(request: Request) -> str:
        prompt = str(request["messages"][-1]["content"])  # type: ignore[index]
        return rests.get(prompt.partition("\n\nBeginning:\n")[2], "something else entirely")

    with open_store(asked.files, utc_now) as store:
        for ended in store.sample_results():
            text = ended.sample.fields["text"]
            if halves := halve_text(text):
                rests[halves.beginning] = halves.rest
    asked.server.answers = recite
    found = run_detector(plan_detection(RECITATION, asked.files.root, [], None))
    (target,) = found.document["targets"]
    assert target["verdict"] == "too_few" and target["unanswered"] == 0
    for twin in target["twins"].values():
        assert twin["original"] == twin["items"] == twin["only_original"] > 0
        assert twin["twin"] == 0 and twin["overlap"]["estimate"] == 1.0
    assert "of twins" in asked.files.report_html.read_text()


# -- texts that an endpoint scores ----------------------------------------------------------------


def test_membership_of_a_target_whose_endpoint_scores_texts_joins_the_report(asked: Lab) -> None:
    asked.server.scoring = scoring = ScoringServer("one token at least")
    plan = plan_detection(MEMBERSHIP, asked.files.root, [NAME], None)
    estimate = estimate_detection(plan)
    assert scoring.requests == []
    found = run_detector(plan)
    (target,) = found.document["targets"]
    assert (target["target"], target["verdict"], target["method"]) == (NAME, "too_few", "min_k")
    assert target["samples"] > 0 and target["left_out"] == 0
    assert {"min_k", "dc_pdd", "zlib"} <= {each["method"] for each in target["methods"]}
    assert asked.server.requests == []
    (line,) = estimate.lines
    assert line.completion_tokens.high <= 1.2 * line.calls.high
    assert 0 < len(scoring.requests) <= line.calls.likely + CONCURRENCY  # both ways, at first
    report = _report(asked)
    assert report["detectors"]["membership"] == found.document
    (row,) = report["decomposition"]["agreement"]["rows"]
    assert row["cells"]["membership"]["said"] == "cannot_tell"
    assert '<h2 id="membership">Membership</h2>' in asked.files.report_html.read_text()

    scoring.requests.clear()
    assert run_detector(plan).document == found.document
    assert scoring.requests == []


def test_a_reference_may_be_another_target_of_the_run(asked: Lab) -> None:
    asked.server.scoring = scoring = ScoringServer("one token at least")
    evaluate(asked.files.root, targets=[asked.target.replace("openai:target", "openai:old")])
    request = ScoringRequest(model=NAME)
    settings = MembershipSettings(samples=3, context=0)
    plan = plan_with_reference(asked.files.root, settings, request, "openai:old")
    assert scoring.requests == []
    found = run_with_reference(plan)
    (target,) = found.document["targets"]
    assert (target["target"], target["method"]) == (NAME, "min_k")
    assert target["reference"] == {
        "name": "openai:old",
        "revision": "",
        "terms": {},
        "left_out": 0,
    }
    assert {each["model"] for each in scoring.requests} == {"target", "old"}
    assert _report(asked)["detectors"]["membership"] == found.document
    scoring.requests.clear()
    assert run_with_reference(plan).document == found.document
    assert scoring.requests == []
    with pytest.raises(UsageError, match="is the model itself"):
        plan_with_reference(asked.files.root, settings, request, NAME)


def test_exchangeability_of_a_target_goes_on_after_a_failure(asked: Lab) -> None:
    asked.server.scoring = scoring = ScoringServer()
    settings = ExchangeabilitySettings(shuffles=3, shard=400)
    plan = plan_detection(make_exchangeability(settings), asked.files.root, [NAME], None)
    context = build_run_context(
        plan.setup, plan.manifest, plan.files, open_workspace(plan.manifest), DEFAULT_HOOKS
    )
    with closing(context) as run:
        texts = {each.text for each in list_questions(plan.detector, read_inputs(run))}
    scoring.fail_after = 4
    with pytest.raises(RunError, match="questions unanswered"):
        run_detector(plan)
    answered = len(scoring.requests)
    assert answered > 4
    scoring.fail_after = None
    scoring.requests.clear()
    (target,) = run_detector(plan).document["targets"]
    assert (target["verdict"], target["texts"], target["left_out"]) == ("too_few", SAMPLES, 0)
    assert len(scoring.requests) == len(texts) - 4


def test_an_endpoint_without_scores_is_one_error_and_writes_nothing(asked: Lab) -> None:
    before = _report(asked)
    with pytest.raises(ModelUnusable, match="does not score texts sent to it") as caught:
        run_detector(plan_detection(MEMBERSHIP, asked.files.root, [NAME], None))
    assert "--model hf:" in caught.value.hint
    assert _report(asked) == before
    assert not asked.files.detector_document("membership").exists()


def _read_prompt(request: Request) -> str:
    return str(request["messages"][-1]["content"])  # type: ignore[index]


def test_the_quiz_is_asked_in_both_orders_once_and_stands_beside_the_agreement(asked: Lab) -> None:
    with open_store(asked.files, utc_now) as store:
        originals = {ended.sample.fields["text"] for ended in store.sample_results()}

    async def pick(request: Request) -> str:
        first = _read_prompt(request).partition("\n\nA) ")[2].partition("\n\nB) ")[0]
        return "A" if first in originals else "B"

    asked.server.answers = pick
    quiz = PROBES["quiz"]
    plan = plan_detection(quiz, asked.files.root, [], None)
    (line,) = estimate_detection(plan).lines
    assert asked.server.requests == []
    found = run_detector(plan)
    (target,) = found.document["targets"]
    assert len(asked.server.requests) == line.calls.likely == 2 * target["asked"] > 0
    assert target["verdict"] == "too_few" and target["unanswered"] == 0
    assert target["original"] == target["items"] == target["asked"]
    run_detector(plan)
    assert len(asked.server.requests) == line.calls.likely

    report = _report(asked)
    assert report["detectors"] == {quiz.name: found.document}
    (row,) = compare_detectors([NAME], report).rows
    assert row.cells["recitation"].said == "not_measured" and quiz.name not in row.cells
    html = asked.files.report_html.read_text()
    assert f'<h2 id="{quiz.name}">Recitation: the quiz</h2>' in html
    assert "<code>coreeval detect recitation RUN</code>" in html


def test_ngrams_of_originals_alone_are_told(asked: Lab) -> None:
    with open_store(asked.files, utc_now) as store:
        originals = [ended.sample.fields["text"] for ended in store.sample_results()]
    following = {each.beginning: each.rest for text in originals for each in cut_ngrams(text)}

    async def recite(request: Request) -> str:
        return following.get(
            _read_prompt(request).partition("\n\nBeginning:\n")[2], "no idea at all"
        )

    asked.server.answers = recite
    plan = plan_detection(PROBES["ngrams"], asked.files.root, [], None)
    (line,) = estimate_detection(plan).lines
    found = run_detector(plan)
    (target,) = found.document["targets"]
    assert len(asked.server.requests) == line.calls.likely > 2 * target["asked"] > 0
    assert (target["verdict"], target["unanswered"]) == ("too_few", 0)
    assert target["higher"] == target["items"] == target["asked"]
    assert (target["original"]["estimate"], target["twin"]["estimate"]) == (1.0, 0.0)
    assert f"<td>{target['compared']}</td>" in asked.files.report_html.read_text()


def test_only_the_same_questions_teach_the_length_of_answers(asked: Lab) -> None:
    """Answers to the probe have five words, and those of the detector are as long as texts."""
    ngrams, halves = (
        plan_detection(each, asked.files.root, [], None) for each in (PROBES["ngrams"], RECITATION)
    )

    async def answer(request: Request) -> str:
        return "five words" if "5 words" in _read_prompt(request) else "many words " * 40

    asked.server.answers = answer
    (first,) = estimate_detection(halves).lines
    run_detector(ngrams)
    (line,) = estimate_detection(halves).lines
    assert line.rests_on["answers"] == STATED_BASIS == first.rests_on["answers"]
    assert line.completion_tokens == first.completion_tokens
    assert line.rests_on["tokens"] != STATED_BASIS
    run_detector(halves)
    (line,) = estimate_detection(halves).lines
    assert line.rests_on["answers"].origin == "recorded calls of the model in this role"
    assert line.rests_on["answers"].n == line.calls.likely


def test_draws_are_asked_at_a_temperature_and_none_twice_after_a_failure(asked: Lab) -> None:
    sent = list[Request]()

    async def draw(request: Request) -> str | Reply:
        sent.append(request)
        if len(sent) == 30:
            return refused(400)
        warm = request["temperature"] == TEMPERATURE
        return f"the draw of {len(sent)} other words" if warm else "the greedy answer to this text"

    asked.server.answers = draw
    plan = plan_detection(PROBES["peakedness"], asked.files.root, [], None)
    seeded = [target.model_copy(update={"seed": 5}) for target in plan.targets]
    plan = replace(plan, targets=seeded)
    (line,) = estimate_detection(plan).lines
    with pytest.raises(RunError, match="questions unanswered"):
        run_detector(plan)
    found = run_detector(plan)
    (target,) = found.document["targets"]
    texts = 2 * target["asked"]
    assert len(sent) - 1 == line.calls.likely == texts * (DRAWS + 1) > 0
    assert sum(request["temperature"] == 0 for request in sent[:29] + sent[30:]) == texts
    assert not any("seed" in request for request in sent)
    assert target["items"] == target["asked"] and target["unanswered"] == 0
    assert (target["peaked"], target["peaked_twin"]) == (0, 0)
    assert '<h2 id="recitation_peakedness">' in asked.files.report_html.read_text()
