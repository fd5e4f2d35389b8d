"""Texts scored by weights: the numbers, batches, what is left out, and detectors on a run."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from coreeval.cli.detect_reference import score_beside
from coreeval.errors import Interrupted, RunCorrupt, UsageError
from coreeval.evaluation.detectors.base import Detector
from coreeval.evaluation.detectors.exchangeability import make_exchangeability
from coreeval.evaluation.detectors.membership import make_membership
from coreeval.evaluation.overlap.sources import ReadOptions
from coreeval.evaluation.whitebox import local_scores
from coreeval.evaluation.whitebox.exchangeability import (
    ExchangeabilitySettings,
    judge_exchangeability,
    list_orders,
    make_shards,
)
from coreeval.evaluation.whitebox.local_scores import LocalScorer, ScoreFile, ScoringHeader
from coreeval.evaluation.whitebox.membership_texts import MembershipSettings
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.study_data import LabelledText, TrainingItem
from coreeval.evaluation.whitebox.training import trained
from coreeval.graph import text_scoring
from coreeval.graph.evaluate import evaluate
from coreeval.graph.execute import RunHooks
from coreeval.graph.monitor import Progress, ignore_progress
from coreeval.graph.reference_scoring import plan_with_reference, run_with_reference
from coreeval.graph.text_scoring import (
    RunScoring,
    ScoringRequest,
    plan_order_scoring,
    plan_run_scoring,
    run_scoring,
)
from coreeval.models.local_model import LocalModel, load_model
from coreeval.models.weights import find_weights
from coreeval.tools.text_scores import TextScores
from tests.graph.kit import Lab
from tests.support.scoring_server import ScoringServer
from tests.whitebox.kit import save_model

TEXTS = ("I hate this so much", "what a lovely day, Answer", "my dog", "days are coming " * 9)
ORDERS = make_exchangeability(ExchangeabilitySettings(shuffles=2, shard=400))
MEMBERS = make_membership(MembershipSettings(context=1))


@pytest.fixture
def model(tiny: Path) -> LocalModel:
    """Return the tiny model."""
    weights = find_weights(f"hf:{tiny}")
    return load_model(weights, "cpu", full=True, needed=1, most_tokens=100)


def score(model: LocalModel, texts: Sequence[str], batch: int = 8) -> list[TextScores | str]:
    found = LocalScorer(lambda: model, batch=batch).score_texts(texts)
    return [found[text] for text in texts]


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_scores_are_those_of_each_text_alone(model: LocalModel, batch: int) -> None:
    for text, found in zip(TEXTS, score(model, TEXTS, batch), strict=True):
        tokens = model.encode_text(text).tokens
        with torch.inference_mode():
            logits = model.network(torch.tensor([tokens])).logits[0, :-1].double().numpy()
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        chance = np.exp(logs)
        mean = (chance * logs).sum(axis=1)
        deviation = np.sqrt((chance * logs**2).sum(axis=1) - mean**2)
        own = logs[np.arange(len(tokens) - 1), tokens[1:]]
        assert isinstance(found, TextScores)
        assert found.tokens == tuple(map(str, tokens[1:]))
        np.testing.assert_allclose(found.logprobs, own, atol=1e-4)
        np.testing.assert_allclose(found.means, mean, atol=1e-4)
        np.testing.assert_allclose(found.deviations, deviation, atol=1e-3)


def test_texts_that_are_too_long_or_empty_are_left_out_with_the_reason(model: LocalModel) -> None:
    long, empty, short, good = score(model, ["dog " * 300, "", "I", TEXTS[0]])
    assert isinstance(long, str) and "but only 100 are allowed" in long
    assert empty == short == "it has fewer than two tokens"
    assert isinstance(good, TextScores)


HEADER = ScoringHeader(model="m", revision="r", device="cpu", max_tokens=100)


def test_a_text_is_scored_once_also_after_a_kill(model: LocalModel, tmp_path: Path) -> None:
    results = ScoreFile(tmp_path / "scores.jsonl", HEADER)
    first = LocalScorer(lambda: model, results=results).score_texts(TEXTS[:2])
    with results.path.open("ab") as file:
        file.write(b'{"key": "cut')
    asked = list[int]()

    def open_model() -> LocalModel:
        asked.append(1)
        return model

    second = LocalScorer(open_model, results=results).score_texts(TEXTS)
    assert {text: second[text] for text in TEXTS[:2]} == first
    assert len(results.read()) == len(TEXTS)
    assert LocalScorer(open_model, results=results).score_texts(TEXTS) == second
    assert asked == [1]
    results.path.write_bytes(results.path.read_bytes().replace(b'"key"', b'"kez"', 1))
    with pytest.raises(RunCorrupt, match="results of scored texts is damaged"):
        results.read()


def test_an_order_that_was_trained_on_is_preferred_and_no_other(model: LocalModel) -> None:
    words = [
        "day",
        "dog",
        "joy",
        "Label",
        "anger",
        "tweet",
        "better",
        "author",
        "coming",
        "sadness",
    ]
    chance = np.random.default_rng(0)
    texts = [" ".join(chance.choice(words, size=3)) for _ in range(60)]
    shards = make_shards(texts, ExchangeabilitySettings(shuffles=9, shard=180), seed=0)
    items = [
        TrainingItem(LabelledText(str(at), (), shard.join(0), 0), with_label=False)
        for at, shard in enumerate(shards)
    ]

    def judge() -> str:
        scorer = LocalScorer(lambda: model, detailed=False)
        found = scorer.score_texts(order.text for order in list_orders(shards))
        scores = {
            order.key: each
            for order in list_orders(shards)
            if isinstance(each := found[order.text], TextScores)
        }
        assert len(scores) == 10 * len(shards)
        return judge_exchangeability(shards, scores, len(texts)).verdict

    assert judge() == "exchangeable"
    settings = TrainingSettings(method="full", epochs=60, learning_rate=3e-3, batch=4)
    with trained(model, items, (), settings, seed=1, on_batch=lambda *_: None):
        assert judge() == "ordered"


# -- on a run -------------------------------------------------------------------------------------


@pytest.fixture
def asking(tiny: Path) -> ScoringRequest:
    """Return a request to score with the tiny model."""
    return ScoringRequest(model=f"hf:{tiny}", device="cpu", max_tokens=500)


def plan(lab: Lab, detector: Detector, asking: ScoringRequest) -> RunScoring:
    return plan_run_scoring(detector, lab.files.root, asking)


@pytest.mark.parametrize("detector", [MEMBERS, ORDERS], ids=lambda each: each.name)
def test_a_finding_on_weights_joins_report_and_agreement(
    finished: Lab, asking: ScoringRequest, detector: Detector
) -> None:
    made = plan(finished, detector, asking)
    estimate = made.scoring.estimate()
    assert estimate.texts == estimate.left > 0 and estimate.low < estimate.seconds < estimate.high
    assert not made.scoring.results.path.exists()
    seen = list[Progress]()
    found = run_scoring(made, around=RunHooks(watch=seen.append))
    (target,) = found.document["targets"]
    assert (target["target"], target["verdict"]) == (asking.model, "too_few")
    stages = [each for each in seen if each.stage == f"detect {detector.name}"]
    assert (stages[-1].done, stages[-1].total) == (estimate.texts, estimate.texts)
    report = json.loads(finished.files.report_json.read_text())
    assert report["detectors"][detector.name] == found.document
    rows = {row["target"]: row["cells"] for row in report["decomposition"]["agreement"]["rows"]}
    assert rows[asking.model][detector.name]["said"] == "cannot_tell"
    assert rows[asking.model]["decomposition"]["said"] == "not_measured"
    html = finished.files.report_html.read_text()
    assert f'<h2 id="{detector.name}">' in html
    assert plan(finished, detector, asking).scoring.estimate().left == 0


def test_membership_of_weights_has_every_score(finished: Lab, asking: ScoringRequest) -> None:
    (target,) = run_scoring(plan(finished, MEMBERS, asking)).document["targets"]
    assert target["method"] == "min_k_plus"
    names = [each["method"] for each in target["methods"]]
    assert names[:4] == ["min_k_plus", "min_k", "dc_pdd", "zlib"]
    assert "no control arm" in target["notes"][0]


def test_a_stop_keeps_what_was_scored(
    finished: Lab, asking: ScoringRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan(finished, ORDERS, replace(asking, batch=1))
    real, batches = local_scores.score_tokens, list[int]()

    def stop_at_third(*given: object, **more: object) -> list[TextScores]:
        batches.append(1)
        if len(batches) == 3:
            raise KeyboardInterrupt
        return real(*given, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(local_scores, "score_tokens", stop_at_third)
        with pytest.raises(Interrupted, match="stopped"):
            run_scoring(made)
    left = made.scoring.estimate().left
    assert left == made.scoring.estimate().texts - 2
    assert not finished.files.detector_document("exchangeability").exists()
    run_scoring(made)
    assert made.scoring.estimate().left == 0


def test_other_weights_or_settings_are_scored_anew(finished: Lab, asking: ScoringRequest) -> None:
    run_scoring(plan(finished, ORDERS, asking))
    other = plan(finished, ORDERS, replace(asking, max_tokens=400)).scoring.estimate()
    assert other.left == other.texts


@pytest.mark.parametrize("detector", [MEMBERS, ORDERS], ids=lambda each: each.name)
def test_other_weights_of_the_same_name_are_told(
    finished: Lab, tiny: Path, old: Path, tmp_path: Path, detector: Detector
) -> None:
    place = tmp_path / "model"
    asking = ScoringRequest(model=f"hf:{place}", device="cpu", max_tokens=500)
    digests = list[str]()
    document = finished.files.detector_document(detector.name)
    for folder in (tiny, tiny, old, tiny):
        place.unlink(missing_ok=True)
        place.symlink_to(folder)
        if len(digests) == 3:  # the document of an older version has no digest
            stored = json.loads(document.read_text())
            del stored["targets"][0]["revision"]
            document.write_text(json.dumps(stored))
        seen = list[Progress]()
        around = RunHooks(watch=seen.append)
        found = run_scoring(plan(finished, detector, asking), around=around).document
        (target,) = found["targets"]
        digests.append(target["revision"])
        report = json.loads(finished.files.report_json.read_text())
        assert report["detectors"][detector.name] == found
        assert target["revision"] in finished.files.report_html.read_text()
        told = [each.note for each in seen if "other weights" in each.note]
        assert bool(told) == (folder == old)
    assert digests[0] == digests[1] == digests[3] != digests[2]


# -- a reference ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of another tiny model."""
    return save_model(tmp_path_factory.mktemp("old"), seed=9)


SOME = MembershipSettings(context=0)


def test_a_reference_has_scores_of_its_own_and_stands_in_the_report(
    finished: Lab, asking: ScoringRequest, old: Path
) -> None:
    alone = run_scoring(plan(finished, make_membership(SOME), asking)).document["targets"][0]
    made = plan_with_reference(finished.files.root, SOME, asking, f"hf:{old}")
    assert isinstance(made.model, RunScoring) and isinstance(made.reference, RunScoring)
    assert made.model.scoring.estimate().left == 0
    assert made.reference.scoring.estimate().left == made.reference.scoring.estimate().texts > 0
    assert made.model.scoring.results.path != made.reference.scoring.results.path
    found = run_with_reference(made)
    (target,) = found.document["targets"]
    reference, (*notes, why) = target["reference"], target["notes"]
    assert target == {**alone, "notes": [*notes, why], "reference": reference}
    assert notes == alone["notes"] and target["target"] == asking.model
    assert (
        "differences are not compared with the reference, because too few samples have scores"
        in why
    )  # the run has one
    weights = find_weights(f"hf:{old}")
    digest = {"name": weights.name, "revision": weights.revision}
    assert reference == {**digest, "terms": {}, "left_out": 0}
    assert weights.revision in finished.files.report_html.read_text()
    assert made.reference.scoring.estimate().left == 0
    report = json.loads(finished.files.report_json.read_text())
    assert report["detectors"]["membership"] == found.document
    assert why in finished.files.report_html.read_text()
    again = plan(finished, make_membership(SOME), asking)
    assert "reference" not in run_scoring(again).document["targets"][0]


def test_a_stop_keeps_the_scores_of_both_models(
    finished: Lab, asking: ScoringRequest, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = replace(asking, batch=1)
    made = plan_with_reference(finished.files.root, SOME, request, f"hf:{old}")
    assert isinstance(made.model, RunScoring) and isinstance(made.reference, RunScoring)
    texts = made.reference.scoring.estimate().texts
    real = local_scores.score_tokens
    for stop_at, left in ((3, (texts - 2, texts)), (texts - 2 + 2, (0, texts - 1))):
        batches = list[int]()

        def stop(*given: object, at: int = stop_at, seen: list[int] = batches, **more: object):  # type: ignore[no-untyped-def]
            seen.append(1)
            if len(seen) == at:
                raise KeyboardInterrupt
            return real(*given, **more)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(local_scores, "score_tokens", stop)
            with pytest.raises(Interrupted, match="stopped"):
                run_with_reference(made)
        scored = (made.reference.scoring.estimate().left, made.model.scoring.estimate().left)
        assert scored == left
        assert not finished.files.detector_document("membership").exists()
    (target,) = run_with_reference(made).document["targets"]
    assert target["reference"]["name"] == f"hf:{old}"


def test_weights_and_an_endpoint_may_stand_beside_each_other(
    finished: Lab, asking: ScoringRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    finished.server.scoring = ScoringServer("one token at least")
    evaluate(finished.files.root, targets=[finished.target])
    local, remote = asking, replace(asking, model="openai:target")
    for model, other in ((local, remote), (remote, local)):
        score_beside(finished.files.root, SOME, model, other.model, None, True, True)
        dry = json.loads(capsys.readouterr().out)
        assert {"time", "lines"} == {"time", "lines"} & (dry.keys() ^ dry["reference"].keys())
        made = plan_with_reference(finished.files.root, SOME, model, other.model)
        targets = run_with_reference(made).document["targets"]
        (found,) = (each for each in targets if each["target"] == model.model)
        assert (found["method"], found["reference"]["name"]) == ("min_k", other.model)


def test_the_model_is_no_reference_of_its_own(finished: Lab, asking: ScoringRequest) -> None:
    with pytest.raises(UsageError, match="is the model itself"):
        plan_with_reference(finished.files.root, SOME, asking, asking.model)


def test_the_command_takes_a_reference(finished: Lab, tiny: Path, old: Path) -> None:
    words = [str(finished.files.root), "--model", f"hf:{tiny}", "--reference", f"hf:{old}"]
    words += ["--context", "0", "--device", "cpu"]
    dry = _run(*words, "--dry-run", "--json", cwd=finished.folder, name="membership")
    assert dry.returncode == 0, dry.stderr
    document = json.loads(dry.stdout)
    assert document["model"] == f"hf:{tiny}" and document["reference"]["model"] == f"hf:{old}"
    assert document["reference"]["time"]["left"] > 0
    shown = _run(*words, "--dry-run", cwd=finished.folder, name="membership")
    assert f"reference hf:{old}:" in shown.stdout and shown.stdout.count("remain to be scored") == 2
    done = _run(*words, cwd=finished.folder, name="membership")
    assert done.returncode == 0, done.stderr
    assert "not compared with the reference" in " ".join(done.stdout.split())


# -- a file ---------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of 30 texts, in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f'{{"text": "my day {at} so {at}"}}\n' for at in range(30)))
    return path


def test_a_file_has_a_finding_of_its_own(source: Path, asking: ScoringRequest) -> None:
    settings = ExchangeabilitySettings(shuffles=3, shard=100)
    made = plan_order_scoring(str(source), ReadOptions(fields=("text",)), settings, asking)
    found = made.score(ignore_progress)
    assert found["verdict"] in ("exchangeable", "ordered") and found["texts"] == 30
    assert made.estimate().left == 0
    assert made.results.path.is_relative_to(source.parent / ".coreeval")


def test_neighbours_of_a_cluster_are_one_text_of_a_file(
    source: Path, asking: ScoringRequest
) -> None:
    source.write_text(
        "".join(
            f'{{"text": "day {at // 2}\\nso {at}", "cluster": "{at // 2}"}}\n' for at in range(30)
        )
    )
    settings = ExchangeabilitySettings(shuffles=3, shard=100)
    made = plan_order_scoring(str(source), ReadOptions(fields=("text",)), settings, asking)
    assert made.score(ignore_progress)["texts"] == 15
    assert all("day 0 so 0 so 1" in one.text for one in made.questions[:4])


def _run(
    *words: str, cwd: Path, name: str = "exchangeability"
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "coreeval", "detect", name, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_the_command_says_how_long_it_takes_and_then_what_it_found(
    source: Path, tiny: Path
) -> None:
    words = [source.name, "--field", "text", "--model", f"hf:{tiny}", "--shard", "100"]
    words += ["--shuffles", "3", "--device", "cpu"]
    dry = _run(*words, "--dry-run", cwd=source.parent)
    assert dry.returncode == 0, dry.stderr
    assert "remain to be scored" in dry.stdout and not (source.parent / ".coreeval").exists()
    done = _run(*words, "--json", cwd=source.parent)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["targets"][0]["verdict"] in ("exchangeable", "ordered")
    shown = _run(*words, cwd=source.parent)
    assert "t-test p" in shown.stdout


def test_an_endpoint_cannot_score_a_file(source: Path) -> None:
    done = _run(source.name, "--field", "text", "--model", "openai:m", cwd=source.parent)
    assert done.returncode == 2 and "cannot score the texts of a file" in done.stderr


def test_a_benchmark_without_orders_is_told_before_anything_is_loaded(
    source: Path, asking: ScoringRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.write_text('{"text": "one text alone"}\n')
    monkeypatch.setattr(text_scoring, "load_model", pytest.fail)
    with pytest.raises(UsageError, match="no two different texts"):
        plan_order_scoring(
            str(source), ReadOptions(fields=("text",)), ExchangeabilitySettings(), asking
        )


def test_a_killed_process_costs_the_batch_at_hand(source: Path, tiny: Path) -> None:
    words = [source.name, "--field", "text", "--model", f"hf:{tiny}", "--shard", "60"]
    words += ["--shuffles", "400", "--device", "cpu", "--batch", "1"]
    command = [sys.executable, "-m", "coreeval", "detect", "exchangeability", *words]
    killed = subprocess.Popen(command, cwd=source.parent, stderr=subprocess.DEVNULL)
    folder = source.parent / ".coreeval" / "scores"

    def count() -> int:
        return sum(max(0, file.read_bytes().count(b"\n") - 1) for file in folder.glob("*.jsonl"))

    while count() < 5 and killed.poll() is None:
        pass
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    kept = count()
    assert kept >= 5
    dry = _run(*words, "--dry-run", "--json", cwd=source.parent)
    times = json.loads(dry.stdout)["time"]
    assert times["left"] == times["texts"] - kept


def test_the_commands_join_a_finding_to_a_run(finished: Lab, tiny: Path) -> None:
    run, model = str(finished.files.root), ("--model", f"hf:{tiny}", "--device", "cpu")
    done = _run(run, *model, "--context", "0", "--json", cwd=finished.folder, name="membership")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["detector"] == "membership"
    done = _run(run, *model, "--shuffles", "2", cwd=finished.folder)
    assert done.returncode == 0, done.stderr
    assert "texts in shards were scored, but 20 are needed" in " ".join(done.stdout.split())
    report = json.loads(finished.files.report_json.read_text())
    assert set(report["detectors"]) == {"membership", "exchangeability"}
