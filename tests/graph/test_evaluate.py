"""Asking targets about a run that has ended: only what is missing, and never twice."""

import json
import os
import signal
from collections import Counter
from typing import Any

import pytest

from coreeval import cli
from coreeval.config import TargetConfig
from coreeval.errors import BudgetSpent, ConfigError, RunStateError
from coreeval.evaluation.benchmarks import load_benchmark
from coreeval.graph import evaluate as evaluation
from coreeval.graph.estimate.evaluation_estimate import estimate_evaluation
from coreeval.graph.evaluate import evaluate, prepare_evaluation
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks, build_run_context
from coreeval.graph.monitor import Progress
from coreeval.graph.run import open_workspace, retry
from coreeval.graph.setup import check_targets
from coreeval.graph.target_questions import put_to_target
from tests.graph.kit import OPEN, SAMPLES, Lab, ended
from tests.support.wire import Prompted

NAME, SHAPE, TEMPLATES = "openai:target", "LabelAnswer", 3


def questions(lab: Lab) -> Counter[str]:
    """Return what targets were asked since `forget`."""
    asked = [Prompted(request) for request in list(lab.server.requests)]
    return Counter(one.user for one in asked if one.shape == SHAPE)


def expected(lab: Lab) -> int:
    """Return how many questions the arms of the run make."""
    arms = lab.arms()
    return TEMPLATES * (SAMPLES + len(arms["semantic"]) + len(arms["updated"]))


def scores(lab: Lab) -> dict[str, Any]:
    """Return the scores of the report by target."""
    report = json.loads(lab.files.report_json.read_text())
    return {one["target"]: one["all_samples"] for one in report["arms"]["targets"]}


def test_a_target_is_added_to_a_run_and_asked_once(finished: Lab) -> None:
    done = evaluate(finished.files.root, targets=[finished.target])
    assert done.manifest.status == "complete"
    assert len(finished.server.requests) == questions(finished).total() == expected(finished)
    original = scores(finished)[NAME]["arms"][0]
    assert original["answers"]["answered"] == SAMPLES * TEMPLATES
    assert [one["template"] for one in original["templates"]] == [1, 2, 3]

    finished.forget()
    again = evaluate(finished.files.root)
    assert (again.manifest.status, questions(finished)) == ("complete", Counter())
    assert again.manifest.cost == done.manifest.cost
    assert again.manifest.cost.billed_calls > finished_calls(finished) > 0


def finished_calls(lab: Lab) -> int:
    """Return the calls of the roles, without those of targets."""
    return sum(
        row["calls"] for row in lab.manifest.cost.by_model if row["model"] == "openai:scripted"
    )


def test_a_killed_evaluation_goes_on_without_asking_twice(finished: Lab) -> None:
    finished.trap(SHAPE, 31, lambda: os.kill(child.pid or 0, signal.SIGKILL))
    child = finished.child("evaluate")
    assert ended(child) == -signal.SIGKILL
    assert finished.manifest.status == "running"
    first = questions(finished)
    answered = sum(SHAPE in one for one in finished.answered())
    finished.forget()

    done = finished.resume()  # without being told the target again
    second = questions(finished)
    assert done.manifest.status == "complete"
    assert answered + second.total() == expected(finished)
    assert (first & second).total() <= OPEN
    assert scores(finished)[NAME]["arms"][0]["answers"]["answered"] == SAMPLES * TEMPLATES


def test_ctrl_c_ends_it_cleanly_and_the_same_command_goes_on(finished: Lab) -> None:
    finished.trap(SHAPE, 9, lambda: os.kill(child.pid or 0, signal.SIGINT))
    child = finished.child("evaluate")
    assert ended(child) == 130
    said = finished.out.read_text()
    assert json.loads(said[said.index("{\n") :])["arms"] is None
    asked = questions(finished)
    finished.forget()
    child = finished.child("evaluate")
    assert ended(child) == 0
    assert (asked & questions(finished)) == Counter()
    assert asked.total() + questions(finished).total() == expected(finished)


def test_only_the_targets_that_are_named_are_asked(finished: Lab) -> None:
    other = finished.target.replace("target", "other")
    evaluate(finished.files.root, targets=[finished.target])
    finished.forget()
    evaluate(finished.files.root, targets=[other, "offline:classifier"])
    asked = {request["model"] for request in finished.server.requests}
    assert asked == {"other"}
    assert set(scores(finished)) == {NAME, "openai:other", "offline:classifier"}
    assert scores(finished)["offline:classifier"]["arms"][0]["templates"][0]["template"] == 0


def test_a_budget_stops_it_and_a_larger_one_goes_on(finished: Lab) -> None:
    spec = finished.target[:-1] + ", max_tokens: 100, price: {input: 100, output: 1000}}"
    with pytest.raises(BudgetSpent) as caught:
        evaluate(finished.files.root, targets=[spec], budget_usd=1.0)
    assert "coreeval resume" in caught.value.hint
    asked = questions(finished)
    assert 0 < asked.total() < expected(finished)
    finished.forget()
    evaluate(finished.files.root, targets=[NAME], budget_usd=100.0)
    assert (asked & questions(finished)) == Counter()
    assert asked.total() + questions(finished).total() == expected(finished)


@pytest.mark.parametrize("first", [{"targets": ["offline:clean"]}, {"budget_usd": 0.5}])
def test_what_another_command_has_set_meanwhile_is_not_lost(
    finished: Lab, monkeypatch: pytest.MonkeyPatch, first: dict[str, Any]
) -> None:
    root = finished.files.root

    def wait_for_consent(*_: object) -> None:
        monkeypatch.setattr(evaluation, "check_targets", check_targets)
        evaluate(root, **({"targets": ["offline:finetuned"]} | first))

    monkeypatch.setattr(evaluation, "check_targets", wait_for_consent)
    with pytest.raises(RunStateError, match="another command has changed the run's budget"):
        evaluate(root, targets=["offline:finetuned"])
    kept = finished.manifest
    evaluate(root, targets=["offline:finetuned"])
    assert finished.manifest.source == kept.source
    assert kept.evaluation and finished.manifest.evaluation
    assert {str(one) for one in kept.evaluation.added} <= {
        str(one) for one in finished.manifest.evaluation.added
    }


def test_what_it_will_cost_is_counted_and_nothing_is_asked(finished: Lab) -> None:
    before = finished.manifest
    spec = finished.target[:-1] + ", price: {input: 1, output: 10}}"
    made = estimate_evaluation(finished.files.root, targets=[spec], budget_usd=5)
    with pytest.raises(ConfigError, match=r"run.budget_usd: 0.* is too small"):
        estimate_evaluation(finished.files.root, targets=[spec], budget_usd=0)
    (line,) = made.lines
    assert line.calls.low == line.calls.high == expected(finished)
    assert line.usd and line.usd.likely > 0
    assert made.budget and made.budget.high
    assert finished.server.requests == []
    assert finished.manifest == before
    evaluate(finished.files.root, targets=[spec])
    (line,) = estimate_evaluation(finished.files.root).lines
    assert line.calls.high == 0


def test_progress_counts_questions(finished: Lab) -> None:
    seen: list[Progress] = []
    evaluate(finished.files.root, targets=[finished.target], around=RunHooks(watch=seen.append))
    shown = [one for one in seen if one.stage == "evaluate" and one.total]
    assert [one.done for one in shown] == list(range(1, expected(finished) + 1))
    assert shown[-1].counts == {"answered": expected(finished)}


async def test_samples_of_any_split_can_be_put_to_a_target(finished: Lab) -> None:
    """What the consistency of a split needs: train samples, under a name of their own."""
    found = prepare_evaluation(finished.files.root, [finished.target], None)
    workspace = open_workspace(found.manifest)
    job = build_run_context(found.setup, found.manifest, found.files, workspace, DEFAULT_HOOKS)
    train = load_benchmark(job.config.dataset, job.task, split="train").samples[:5]
    (target,) = found.asked_targets
    try:
        for _ in range(2):
            await put_to_target(job, target, lambda: [("train", train)])
        answers = list(job.store.answers(NAME, ["train"]))
    finally:
        job.store.close()
    assert questions(finished).total() == 15 == len(answers)
    assert {key for _, _, key, *_ in answers} == {sample.id for sample in train}


def test_retrying_asks_those_who_have_answered(finished: Lab) -> None:
    evaluate(finished.files.root, targets=[finished.target])
    evaluate(finished.files.root, targets=["offline:classifier"])
    retry(finished.files.root)
    said = finished.manifest.evaluation
    assert said and set(said.asked) == {NAME, "offline:classifier"}
    assert TargetConfig.model_validate(said.added[0]).base_url == finished.server.url


def test_a_run_with_open_samples_is_refused(stopped: Lab) -> None:
    with pytest.raises(RunStateError, match="unfinished") as caught:
        evaluate(stopped.files.root, targets=[stopped.target])
    assert "coreeval resume" in caught.value.hint
    assert stopped.manifest.evaluation is None


def test_a_target_of_that_name_with_other_settings_is_refused(finished: Lab) -> None:
    evaluate(finished.files.root, targets=["offline:classifier"])
    with pytest.raises(ConfigError, match="different settings"):
        evaluate(finished.files.root, targets=["{model: 'offline:classifier', temperature: 1}"])


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("offline:oracle", "no embedded target"),
        ("nosuch:model", "no provider"),
        ("{model: 'openai:x', temprature: 1}", "temprature"),
        ("[openai:x", "not YAML"),
        ("", "provider:name or a mapping"),
    ],
)
def test_a_target_that_cannot_be_is_refused_before_anything_is_written(
    finished: Lab, capsys: pytest.CaptureFixture[str], target: str, told: str
) -> None:
    before = finished.files.manifest.read_text()
    assert cli.main(["evaluate", str(finished.files.root), "--target", target]) == 2
    assert told in capsys.readouterr().err
    assert finished.files.manifest.read_text() == before


def test_a_run_without_any_target_says_how_to_name_one(
    finished: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["evaluate", str(finished.files.root), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert "--target" in error["hint"]


def test_the_command_shows_scores_and_their_intervals(
    finished: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    where = str(finished.files.root)
    assert cli.main(["evaluate", where, "--target", "offline:classifier", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    shown = {"run", "status", "asked", "cost", "comparability", "arms", "pcr", "numleak", "report"}
    assert set(document) == shown
    assert document["asked"] == ["offline:classifier"]
    assert document["arms"]["targets"][0]["all_samples"]["arms"][0]["macro_f1"]["n"] == SAMPLES
    assert cli.main(["evaluate", where]) == 0
    said = capsys.readouterr().out
    assert (
        "differences between arms, on the n samples that are in both arms\n  original -> " in said
    )
    assert "original -> semantic" in said and "95 % interval" in said
    assert said.index("arms:    ") < said.index("macro-F1"), "comparability stands before scores"
    assert cli.main(["evaluate", where, "--dry-run"]) == 0
    assert "nothing was spent" in capsys.readouterr().out
