"""Originals that are labelled together: who is in a batch, what it costs, and when it fails."""

import asyncio
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.cli import main
from coreeval.config import ROLES, RunConfig, load_config
from coreeval.graph import label_batches
from coreeval.graph.cassettes.record import record
from coreeval.graph.cassettes.replay import replay
from coreeval.graph.estimate.assignments import assign_roles
from coreeval.graph.estimate.history import load_past_runs, read_run_usage
from coreeval.graph.estimate.run_estimate import estimate
from coreeval.graph.label_batches import LabelBatches
from coreeval.graph.run import refresh
from coreeval.prompts import load_prompts
from coreeval.releases.create import make_release
from coreeval.runs.history import read_sample_history
from coreeval.schema import Sample
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.graph.kit import SAMPLES, Lab, Undisturbed
from tests.support.llm_server import Reply, Request, refused
from tests.support.wire import Prompted


def batches(folder: Path, ids: list[str], size: int) -> LabelBatches:
    """Return the batches of samples whose text is their id."""
    store = RunStore.open(folder / "run.db", now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    store.add_samples(
        Sample(id=known, split="test", fields={"text": known}, label=0, label_text="anger")
        for known in ids
    )
    return LabelBatches(store, size)


async def found(made: LabelBatches, sample_id: str) -> tuple[int, list[str]] | None:
    batch = await made.find(sample_id)
    return batch and (batch[0], [fields["text"] for fields in batch[1]])


async def test_samples_are_together_in_the_order_of_the_benchmark(tmp_path: Path) -> None:
    made = batches(tmp_path, ["c", "a", "b", "e", "d"], 2)
    assert await found(made, "c") == (0, ["c", "a"])
    assert await found(made, "a") == (1, ["c", "a"])
    assert await found(made, "e") == (1, ["b", "e"])
    assert await found(made, "d") is None, "it is alone"
    assert await found(made, "train:a") is None


async def test_a_batch_of_one_is_none(tmp_path: Path) -> None:
    assert await found(batches(tmp_path, ["a", "b"], 1), "a") is None


async def test_samples_of_different_targets_are_never_together(tmp_path: Path) -> None:
    ids = ["stance/climate/test/1", "stance/atheism/test/1", "stance/climate/test/2"]
    made = batches(tmp_path, ids, 10)
    assert await found(made, ids[2]) == (1, [ids[0], ids[2]])
    assert await found(made, ids[1]) is None


async def test_only_a_batch_that_failed_is_given_up(tmp_path: Path) -> None:
    made = batches(tmp_path, ["a", "b", "c", "d"], 2)
    made.mark_failed("b", "too long")
    assert await found(made, "a") is None
    assert made.find_failure("a") == "too long", "also a sample that begins later says why"
    assert made.find_failure("c") is None
    assert await found(made, "c") == (0, ["c", "d"])


async def test_batches_that_leave_memory_meanwhile_are_found_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_batches, "_KEPT_SAMPLES", 2)
    ids = [f"{number:03}" for number in range(200)]
    made = batches(tmp_path, ids, 2)
    every = await asyncio.gather(*(found(made, one) for one in ids * 3))
    assert every == [(at % 2, ids[at - at % 2 : at - at % 2 + 2]) for at in range(200)] * 3


def test_a_users_own_prompt_for_one_text_is_not_passed_over(lab: Lab) -> None:
    folder = lab.folder / "own"
    folder.mkdir()
    (folder / "label_judge.md").write_text(load_prompts()["label_judge"].text + "\n")
    together = label_calls(lab)
    lab.write(prompts=str(folder))
    assert label_calls(lab) > together + SAMPLES / 2
    lab.refresh()
    assert "labels" not in lab.asked_shapes()


def label_calls(lab: Lab) -> float:
    """Return the likely calls of the label judge, by an estimate."""
    lines = estimate(lab.config, limit=SAMPLES).lines
    return next(line.calls.likely for line in lines if line.role == "label_judge")


# -- when a batch fails ---------------------------------------------------------------------------


@pytest.mark.parametrize("reply", [refused(400, "too long"), Reply(content="I would rather not.")])
def test_a_run_whose_batches_failed_is_told_and_repeated_from_a_cassette(
    lab: Lab, tmp_path: Path, reply: Reply, capsys: pytest.CaptureFixture[str]
) -> None:
    async def unkind(request: Request) -> str | Reply:
        return reply if Prompted(request).shape == "labels" else await lab.answers(request)

    lab.server.answers = unkind
    lab.refresh()
    assert main(["trace", str(lab.files.root), "emotion/test/1"]) == 0
    assert "labelled individually, because the batch call failed" in capsys.readouterr().out
    record(lab.files.root, tmp_path / "a.cassette", texts=True)
    lab.forget()
    assert replay(tmp_path / "a.cassette", tmp_path / "again").same
    assert lab.asked() == []


def test_a_run_that_follows_a_release_has_the_batches_of_the_whole_benchmark(
    finished: Lab, tmp_path: Path
) -> None:
    """Kept samples keep their places, so that the open ones find the answers of the first run."""
    release = make_release(finished.files.root, version="1", out=tmp_path / "released")
    done = finished.refresh("next", parent=release.path)
    assert 0 < done.manifest.kept < SAMPLES
    assert finished.asked() == []
    record(finished.folder / "next", tmp_path / "a.cassette", texts=True)
    assert replay(tmp_path / "a.cassette", tmp_path / "again").same


# -- what a batch costs ---------------------------------------------------------------------------


def test_the_samples_of_a_batch_share_its_cost(undisturbed: Undisturbed) -> None:
    lab = undisturbed.lab
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        read = [read_sample_history(store, None, known) for known in store.sample_ids()]
    (first, *_) = [
        call for step in read[0].steps if step.node == "judge_original" for call in step.calls
    ]
    assert first.samples == 10
    parts = {
        (history.sample.id, call.key): 1 / call.samples
        for history in read
        for step in history.steps
        for call in step.calls
    }
    assert sum(parts.values()) == pytest.approx(lab.manifest.cost.billed_calls)


def test_a_shared_call_counts_once_in_later_estimates(finished: Lab) -> None:
    usage = read_run_usage(
        finished.files,
        finished.workspace,
        assign_roles(load_config(finished.config)),
        templates=1,
        arms=True,
    )
    told = sum(one.calls for sample in usage.by_sample for one in sample.values())
    assert told == pytest.approx(usage.paid.calls) == finished.manifest.cost.billed_calls

    refresh(finished.config, limit=SAMPLES)
    known = load_past_runs(finished.workspace, "emotion", RunConfig())
    per_sample = sum(sum(known.calls[role]) for role in ROLES)
    assert per_sample == pytest.approx(finished.manifest.cost.billed_calls)


def test_runs_with_other_settings_tell_nothing_of_the_next(finished: Lab) -> None:
    refresh(finished.config, limit=SAMPLES)
    assert load_past_runs(finished.workspace, "emotion", RunConfig()).runs
    for other in (
        RunConfig(label_batch=1),
        RunConfig(pipeline="lean"),
        RunConfig(arms=("updated",)),
    ):
        assert not load_past_runs(finished.workspace, "emotion", other).runs, other
