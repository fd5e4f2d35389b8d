"""A contamination test on a run: planned, stopped, killed, resumed, and in the report."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from coreeval.errors import DatasetError, Interrupted, UsageError
from coreeval.evaluation.whitebox import study_data, training
from coreeval.evaluation.whitebox.cells import Cell
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.graph import finetune
from coreeval.graph.finetune import run_finetune
from coreeval.graph.finetune_plan import (
    FinetunePlan,
    FinetuneRequest,
    plan_finetune,
    require_samples,
)
from coreeval.schema import Arm
from tests.graph.kit import Lab

FEW = 3
"""Samples that arms must share here: the run has 14, of which some are accepted."""
TRAINING = TrainingSettings(epochs=1, learning_rate=1e-2, max_tokens=600)


@pytest.fixture
def request_of(finished: Lab, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> FinetuneRequest:
    """Return a small test on a run that has ended."""
    monkeypatch.setattr(study_data, "FEWEST", FEW)
    return FinetuneRequest(
        run_dir=finished.files.root,
        model=f"hf:{tiny}",
        arms=("updated",),
        seeds=1,
        train=4,
        held_out=4,
        training=TRAINING,
        device="cpu",
    )


def counted(monkeypatch: pytest.MonkeyPatch, *, stop_at: int = 0) -> list[int]:
    """Count the trainings, and press Ctrl-C in one of them."""
    seen = list[int]()

    def trained(*given: object, **more: object) -> AbstractContextManager[None]:
        seen.append(len(seen) + 1)
        if len(seen) == stop_at:
            raise KeyboardInterrupt
        return training.trained(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(finetune, "trained", trained)
    return seen


def keys(plan: FinetunePlan) -> list[str]:
    """Return the cells that are done."""
    return [cell.key for cell in plan.results.read()]


def test_a_plan_has_arms_with_the_same_samples_and_clean_ones(request_of: FinetuneRequest) -> None:
    plan = plan_finetune(request_of)
    original, updated = plan.data.arms["original"], plan.data.arms["updated"]
    assert [one.id for one in original] == [one.id for one in updated]
    assert all(one.text != other.text for one, other in zip(original, updated, strict=True))
    assert (len(plan.data.held_out), len(plan.data.train)) == (4, 4)
    assert len(plan.cells) == 1 + 1 + 2 * 2
    assert plan.estimate().left == len(plan.cells)
    assert not plan.results.path.exists()


def test_a_stop_costs_one_cell_and_the_same_call_goes_on(
    request_of: FinetuneRequest, finished: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_finetune(request_of)
    with monkeypatch.context() as patch:
        counted(patch, stop_at=3)
        with pytest.raises(Interrupted, match="stopped") as caught:
            run_finetune(plan)
    assert "run the same command to continue" in caught.value.hint
    assert keys(plan) == [cell.key for cell in plan.cells[:2]]
    assert not finished.files.detector_document("finetune").exists()

    seen = counted(monkeypatch)
    found = run_finetune(plan)
    assert len(seen) == len(plan.cells) - 2
    (entry,) = found.document["targets"]
    assert (entry["target"], entry["verdict"]) == (request_of.model, "too_few")
    assert entry["study"]["revision"].startswith("sha256:")
    assert {rise["measured"] for rise in entry["rises"]} == {"original", "updated", "held_out"}
    assert "no control arm" in entry["notes"][0]
    report = json.loads(finished.files.report_json.read_text())
    assert report["detectors"]["finetune"] == found.document
    html = finished.files.report_html.read_text()
    assert '<h2 id="finetune">Contamination test</h2>' in html and "table 3" in html

    again = run_finetune(plan)
    assert len(seen) == len(plan.cells) - 2
    assert again.document == found.document


def test_another_share_trains_only_what_is_new(
    request_of: FinetuneRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_finetune(plan_finetune(replace(request_of, leaks=("test",))))
    seen = counted(monkeypatch)
    wider = plan_finetune(replace(request_of, leaks=("test", "text"), percents=(50, 100)))
    assert wider.estimate().measured
    run_finetune(wider)
    assert len(seen) == len(wider.cells) - 3
    other = plan_finetune(replace(request_of, training=TRAINING.model_copy(update={"epochs": 2})))
    assert other.estimate().left == len(other.cells)


def test_the_same_seed_gives_the_same_answers(request_of: FinetuneRequest) -> None:
    plan = plan_finetune(replace(request_of, leaks=("test",)))
    run_finetune(plan)
    first = {cell: found.answers for cell, found in plan.results.read().items()}
    plan.results.path.unlink()
    run_finetune(plan)
    assert {cell: found.answers for cell, found in plan.results.read().items()} == first
    assert set(first) == set(plan.cells)


PROGRAM = (
    "import sys; from coreeval.evaluation.whitebox import study_data; study_data.FEWEST = 3; "
    "from coreeval.__main__ import run; sys.exit(run())"
)


def _start(asked: FinetuneRequest, *more: str) -> "subprocess.Popen[str]":
    words: Sequence[str] = ("detect", "finetune", str(asked.run_dir), "--model", asked.model,
             "--arm", "updated", "--seeds", "1", "--train", "4", "--held-out", "4",
             "--epochs", "1", "--learning-rate", "0.01", "--max-tokens", "600",
             "--device", "cpu", *more)  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def test_a_killed_process_leaves_what_was_done_and_two_processes_share_the_rest(
    request_of: FinetuneRequest,
) -> None:
    plan = plan_finetune(request_of)
    killed, began = _start(request_of), time.monotonic()
    while len(keys(plan)) < 2 and killed.poll() is None and time.monotonic() - began < 100:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    left = keys(plan)
    assert 2 <= len(left) <= len(plan.cells)

    both = [_start(request_of, "--json"), _start(request_of, "--json")]
    said = [each.communicate() for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    assert keys(plan)[: len(left)] == left
    assert len(plan.results.path.read_text().splitlines()) == 1 + len(plan.cells)
    documents = [json.loads(out) for out, _ in said]
    assert documents[0] == documents[1]


def test_the_estimate_trains_nothing_and_says_how_long(request_of: FinetuneRequest) -> None:
    process = _start(request_of, "--dry-run", "--json")
    out, err = process.communicate()
    assert process.returncode == 0, err
    said = json.loads(out)
    assert said["time"]["left"] == said["time"]["cells"] == 6
    assert said["samples"]["held_out"] == said["train"] == 4
    assert not Path(said["results"]).exists()


# -- what is refused ------------------------------------------------------------------------------


def test_a_run_without_the_arm_is_told(request_of: FinetuneRequest) -> None:
    with pytest.raises(UsageError, match="the run has no control arm") as caught:
        plan_finetune(replace(request_of, arms=("control",)))
    assert "run.control_window" in caught.value.hint


def test_arms_that_share_too_little_are_told(
    request_of: FinetuneRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_data, "FEWEST", 100)
    with pytest.raises(DatasetError, match="original, updated share"):
        plan_finetune(request_of)


def test_arms_that_share_enough_by_themselves_are_named() -> None:
    found: list[dict[Arm, object]] = [{"original": 1, "updated": 1}] * 10
    found += [{"original": 1, "updated": 1, "semantic": 1}] * 2
    with pytest.raises(DatasetError, match="semantic, updated share 2 samples") as caught:
        require_samples(["original", "semantic", "updated"], found, 2)
    assert caught.value.hint == "use --arm updated (12), or refresh more samples"


def test_too_few_samples_are_refused(request_of: FinetuneRequest) -> None:
    with pytest.raises(UsageError, match=f"at least {FEW} samples are needed, not 2"):
        plan_finetune(replace(request_of, samples=2))


def test_a_cell_has_a_name_for_files() -> None:
    assert Cell(scenario="test", arm="updated", percent=20, seed=1).key == "test-updated-20-1"
