"""A run through batches: the same outcomes, nothing paid twice, and every ending of a batch."""

import gc
import json
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from coreeval.cli.app import main
from coreeval.errors import WAITING, BudgetSpent, CoreEvalError, ModelUnusable, RunLocked
from coreeval.graph import batch_rounds
from coreeval.graph.batch_collector import READ_TRIES
from coreeval.graph.evaluate import evaluate
from coreeval.graph.execute import RunHooks, RunSummary
from coreeval.graph.monitor import Progress
from coreeval.graph.run import refresh, resume
from coreeval.models import close_models
from coreeval.models.batch_dispatch import CallQueued
from coreeval.models.dispatch import ModelRequest
from coreeval.models.failures import CallFailure, clean_message
from coreeval.models.openai import OpenAIChat
from coreeval.models.retry import Retry
from coreeval.prompts import load_prompts
from coreeval.runs.status import read_status
from coreeval.tools import endpoints
from coreeval.tools.clock import utc_now
from tests.graph.conftest import MakeLab
from tests.graph.kit import Lab, Undisturbed
from tests.support.fake_batches import FakeBatches, FakeProvider

FEW = 3
PRICE = {"input": 2.0, "output": 8.0, "batch_input": 1.0, "batch_output": 4.0}


@pytest.fixture
def provider(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    found = FakeProvider(lab.server.url)
    monkeypatch.setattr(OpenAIChat, "open_batches", lambda _chat: FakeBatches(found))
    monkeypatch.setattr(batch_rounds, "LONGEST_LOOK_S", 0.01)
    lab.write(run={"concurrency": 4, "batch": {"live_below": 0}})
    return found


def begin(lab: Lab, *, waits: bool = False, notes: list[str] | None = None) -> RunSummary:
    """Refresh a few samples."""
    kept = notes if notes is not None else list[str]()
    around = RunHooks(waits=waits, first_look_s=0.01, watch=lambda told: kept.append(told.note))
    return refresh(lab.config, limit=FEW, run_dir=lab.files.root, around=around)


def go_on(lab: Lab, **hooks: object) -> RunSummary:
    around = RunHooks(first_look_s=0.01, **hooks)  # type: ignore[arg-type]
    return resume(lab.files.root, around=around)


def assert_as_live(lab: Lab, undisturbed: Undisturbed) -> None:
    assert lab.manifest.status == "complete"
    assert lab.results() == {name: undisturbed.results[name] for name in lab.results()}


def priced(lab: Lab, **run: object) -> None:
    model = {"model": "openai:scripted", "base_url": lab.server.url, "price": PRICE}
    lab.write(
        models={"default": model},
        run={"concurrency": 4, "batch": {"live_below": 0}, "budget_usd": 50.0, **run},
    )


def test_each_round_ends_the_run_and_the_end_is_that_of_a_live_run(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    priced(lab)
    assert begin(lab).manifest.status == "waiting"
    now = read_status(lab.files.root)
    assert now.status == "waiting" and now.batches and now.batches.open_calls == FEW
    assert lab.manifest.cost.unknown_usd > 0
    while go_on(lab).manifest.status != "complete":
        assert len(provider.sizes) < 15

    assert_as_live(lab, undisturbed)
    assert set(provider.paid.values()) == {1}
    assert len(provider.deleted) == len(provider.sizes)
    cost, batches = lab.manifest.cost, read_status(lab.files.root).batches
    assert batches and cost.billed_usd == pytest.approx(
        sum(each.usd or 0 for each in batches.batches)
    )
    assert cost.billed_usd == pytest.approx(sum(each.live_usd or 0 for each in batches.batches) / 2)
    assert (cost.unknown_usd, cost.cached_calls) == (0, 0)


def test_a_process_that_waits_goes_through_all_rounds(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    assert begin(lab, waits=True).manifest.status == "complete"
    assert_as_live(lab, undisturbed)
    assert set(provider.paid.values()) == {1}


def test_an_endpoint_without_batches_is_asked_live_and_said_so(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    provider.has_batches = False
    notes = list[str]()
    assert begin(lab, notes=notes).manifest.status == "complete"
    assert_as_live(lab, undisturbed)
    assert any("calls are sent individually, at full price" in note for note in notes)


def test_a_provider_known_for_batches_is_not_asked_live_unless_the_user_says_so(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced(lab)
    provider.has_batches = False
    monkeypatch.setitem(endpoints._OWN_ORIGINS, "openai", lab.server.url.removesuffix("/v1"))
    with pytest.raises(ModelUnusable, match="none can be created") as caught:
        begin(lab)
    assert "OPENAI_API_KEY" in caught.value.hint and "--live" in caught.value.hint
    assert lab.server.requests == [] and lab.manifest.cost.unknown_usd == 0
    go_on(lab, live=True)
    assert_as_live(lab, undisturbed)


def test_what_is_left_of_few_is_asked_live(lab: Lab, provider: FakeProvider) -> None:
    lab.write(run={"concurrency": 4, "batch": {"live_below": 1}})
    assert begin(lab).manifest.status == "complete"
    assert provider.sizes == []


def test_a_model_that_nobody_asks_cannot_wait(lab: Lab, provider: FakeProvider) -> None:
    lab.write(run={"concurrency": 4, "batch": {"models": ["openai:another"]}})
    with pytest.raises(CoreEvalError, match="'openai:another' is not a model in this config"):
        begin(lab)


def test_a_refused_batch_costs_nothing_and_the_run_says_why(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    priced(lab)
    begin(lab)
    provider.refuses = "line 2: no such model"
    with pytest.raises(ModelUnusable, match="line 2: no such model"):
        go_on(lab)
    assert (lab.manifest.status, lab.manifest.cost.unknown_usd) == ("stopped", 0)
    provider.refuses = ""
    go_on(lab, waits=True)
    assert_as_live(lab, undisturbed)


@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_too_much_for_the_queue_of_the_account_waits_for_smaller_batches(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed, at_once: bool
) -> None:
    priced(lab)
    provider.queue_limit, provider.refuses_at_once, notes = 2, at_once, list[str]()
    assert begin(lab, notes=notes).manifest.status == "waiting"
    go_on(lab, waits=True, watch=lambda told: notes.append(told.note))
    assert_as_live(lab, undisturbed)
    assert set(provider.paid.values()) == {1} and lab.manifest.cost.unknown_usd == 0
    taken = provider.sizes if at_once else provider.sizes[1:]
    assert set(taken) == {1}, "half of what was refused, for the rest of the day"
    assert len([note for note in notes if "accepts no more batches for now" in note]) == 1


def test_a_single_call_that_is_too_much_ends_the_run_and_costs_nothing(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    priced(lab)
    provider.queue_limit, provider.refuses_at_once = 0, True
    with pytest.raises(ModelUnusable, match="Enqueued token limit reached"):
        begin(lab)
    assert lab.manifest.cost.unknown_usd == 0 and provider.sizes == []
    provider.queue_limit = None
    go_on(lab, waits=True, now=lambda: utc_now() + timedelta(hours=25))
    assert_as_live(lab, undisturbed)
    assert provider.sizes[0] == FEW, "a day later it is as before"


def test_a_batch_whose_creation_was_not_confirmed_is_adopted(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    provider.breaks_after_create = 1
    begin(lab, waits=True)
    assert_as_live(lab, undisturbed)
    assert set(provider.paid.values()) == {1}


def test_the_calls_of_a_lost_batch_are_sent_again_and_stay_spent(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    priced(lab)
    begin(lab)
    reserved, provider.loses = lab.manifest.cost.unknown_usd, True
    assert go_on(lab).manifest.status == "waiting"
    provider.loses = False
    go_on(lab, waits=True)
    assert_as_live(lab, undisturbed)
    assert lab.manifest.cost.unknown_usd == pytest.approx(reserved)


def test_results_that_are_cut_off_are_read_again(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    provider.cuts_results, notes = 1, list[str]()
    begin(lab, waits=True, notes=notes)
    assert_as_live(lab, undisturbed)
    assert not [note for note in notes if "unknown or repeated id" in note]


def test_results_with_unknown_and_doubled_ids_are_told_and_change_nothing(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    priced(lab)
    provider.strays, notes = True, list[str]()
    begin(lab, waits=True, notes=notes)
    assert_as_live(lab, undisturbed)
    told = [note for note in notes if "unknown or repeated id" in note]
    assert len(told) == len(provider.sizes)
    assert "a batch has 2 results with an unknown or repeated id" in told[0]
    assert lab.manifest.cost.billed_calls == sum(provider.sizes)
    assert lab.manifest.cost.unknown_usd == 0


def test_a_prompt_that_changed_between_rounds_is_asked_anew_and_the_old_answers_are_kept(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    text, folder = load_prompts()["extractor"].text, lab.folder / "own prompts"
    folder.mkdir()
    (folder / "extractor.md").write_text(text)
    priced(lab)
    lab.write(prompts=str(folder))
    begin(lab)
    (folder / "extractor.md").write_text(text.replace("\n=== user", "\nTake care.\n\n=== user"))
    go_on(lab, waits=True)
    assert_as_live(lab, undisturbed)
    old, new, *_ = provider.requests.values()
    assert len(old) == len(new) == FEW and all(b"Take care." in each.body for each in new)
    assert not {each.custom_id for each in old} & {each.custom_id for each in new}
    assert set(provider.paid.values()) == {1}
    cost, batches = lab.manifest.cost, read_status(lab.files.root).batches
    assert batches and cost.billed_usd is not None
    paid = sum(each.usd or 0 for each in batches.batches)
    assert cost.billed_usd + cost.unknown_usd == pytest.approx(paid)


def test_two_processes_do_not_collect_the_same_run(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    begin(lab)
    refused = list[str]()

    def collect_too(_: Progress) -> None:
        with pytest.raises(RunLocked) as caught:
            go_on(lab)
        refused.append(caught.value.message)

    go_on(lab, waits=True, watch=collect_too)
    assert refused and "another process" in refused[0]
    assert_as_live(lab, undisturbed)
    assert set(provider.paid.values()) == {1}


@pytest.mark.parametrize(
    "failure", [CallFailure("throttled", "too much"), None], ids=["fails", "not processed"]
)
def test_questions_that_get_no_answer_in_batches_cost_nothing(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed, failure: CallFailure | None
) -> None:
    priced(lab)
    provider.failures["*"] = failure
    begin(lab)
    assert go_on(lab).manifest.status == "waiting"  # sent again
    provider.failures.clear()
    go_on(lab, waits=True)
    assert_as_live(lab, undisturbed)
    assert lab.manifest.cost.unknown_usd == 0


def test_what_fails_in_three_batches_is_asked_live(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    provider.failures["*"] = CallFailure("transient", "an error of theirs")
    begin(lab, waits=True)
    assert_as_live(lab, undisturbed)
    assert not provider.paid


def test_an_option_that_the_endpoint_lacks_is_dropped(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    refused = CallFailure("unsupported", "no response_format here", refused="method")
    provider.failures["*"] = refused
    begin(lab)
    go_on(lab)
    provider.failures.clear()
    go_on(lab, waits=True)
    assert_as_live(lab, undisturbed)
    second = list(provider.requests.values())[1]
    assert all(b'"tools"' in each.body for each in second)


def test_a_run_that_waits_does_nothing_until_a_batch_has_come(
    lab: Lab, provider: FakeProvider
) -> None:
    provider.ends = False
    begin(lab)
    seen = list[Progress]()
    assert go_on(lab, watch=seen.append).manifest.status == "waiting"
    assert provider.sizes == [FEW] and not any(each.done for each in seen)


def test_a_signal_once_a_run_waits_leaves_it_waiting(
    lab: Lab, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def close_disturbed() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await close_models()

    provider.ends = False
    with monkeypatch.context() as patch:
        patch.setattr(batch_rounds, "close_models", close_disturbed)
        assert begin(lab).manifest.status == "waiting"
    assert lab.manifest.status == "waiting" and provider.sizes == [FEW]


def test_a_signal_while_the_end_is_told_leaves_the_exit_code_of_a_run_that_waits(
    lab: Lab, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disturbed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("coreeval.cli.refresh.show", disturbed)
    arguments = ["refresh", str(lab.config), "--limit", "1", "--run-dir", str(lab.files.root)]
    assert main(arguments) == WAITING


def test_live_cancels_what_is_open_and_keeps_what_was_answered(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    provider.ends = False
    begin(lab)
    go_on(lab, live=True)
    assert_as_live(lab, undisturbed)
    assert set(provider.paid.values()) == {1} and len(provider.sizes) == 1


def test_live_waits_a_bounded_time_for_a_provider_that_cannot_tell(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_rounds, "LIVE_PATIENCE_S", 0.05)
    provider.breaks_after_create, provider.hides, notes = 1, 60, list[str]()
    assert begin(lab).manifest.status == "waiting"
    done = go_on(lab, live=True, watch=lambda told: notes.append(told.note))
    assert done.manifest.status == "waiting" and provider.hides
    assert [note for note in notes if "1 open batch with 3 calls did not end" in note]
    provider.hides = 0
    go_on(lab, live=True)
    assert_as_live(lab, undisturbed)
    assert set(provider.paid.values()) == {1} and len(provider.sizes) == 1


@pytest.mark.parametrize("live", [True, False])
def test_a_provider_that_gives_no_answer_is_asked_once_for_all_its_batches(
    lab: Lab, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, live: bool
) -> None:
    one_each = FakeBatches(provider, most_requests=1)
    monkeypatch.setattr(OpenAIChat, "open_batches", lambda _chat: one_each)
    defaults = Retry.__init__.__kwdefaults__
    assert defaults
    monkeypatch.setitem(defaults, "attempts", 2)
    provider.ends = False
    begin(lab)
    assert provider.sizes == [1] * FEW
    provider.is_down, provider.looks = True, 0
    with pytest.raises(ModelUnusable, match="the provider is down") as caught:
        go_on(lab, live=live)
    assert provider.looks == 2 and "resume later" in caught.value.hint
    provider.is_down, provider.ends = False, True
    assert go_on(lab, waits=True).manifest.status == "complete"
    assert set(provider.paid.values()) == {1}


def test_a_batch_that_takes_too_long_is_cancelled_and_its_rest_asked_live(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    provider.ends, provider.failures["*"] = False, None
    begin(lab)
    later = utc_now() + timedelta(hours=25)
    go_on(lab, now=lambda: later)  # cancels
    go_on(lab, now=lambda: later)
    assert provider.sizes[0] == FEW and not provider.paid
    provider.ends = True
    provider.failures.clear()
    go_on(lab, waits=True)
    assert_as_live(lab, undisturbed)


def test_a_cancelled_batch_is_waited_for_as_long_as_its_provider_is_at_work(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    priced(lab)
    provider.ends, provider.cancels_slowly, notes = False, True, list[str]()
    begin(lab)
    for hours in (50, 50.1, 80, 200):
        later = utc_now() + timedelta(hours=hours)
        done = go_on(lab, now=lambda: later, watch=lambda told: notes.append(told.note))  # noqa: B023
        assert done.manifest.status == "waiting"
    assert provider.sizes == [FEW] and len(provider.cancelled) == 1
    assert [
        note
        for note in notes
        if "which was cancelled; its answers may be billed, so its calls are not sent" in note
    ]
    provider.ends, provider.cancels_slowly = True, False
    go_on(lab, waits=True)
    assert_as_live(lab, undisturbed)
    assert set(provider.paid.values()) == {1} and lab.manifest.cost.unknown_usd == 0


def test_paid_answers_are_not_thrown_away_because_a_late_download_fails(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    begin(lab)
    provider.cuts_results = 1000
    later = utc_now() + timedelta(hours=25)
    go_on(lab, now=lambda: later)
    assert not provider.deleted
    provider.cuts_results = 0
    go_on(lab, now=lambda: later + timedelta(hours=1), waits=True)
    assert_as_live(lab, undisturbed)
    sent = [each.custom_id for batch in provider.requests.values() for each in batch]
    assert len(sent) == len(set(sent)), "no question was sent twice"


def test_what_comes_back_without_a_result_three_times_is_asked_live(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    provider.failures["*"] = None
    begin(lab, waits=True)
    assert_as_live(lab, undisturbed)
    assert not provider.paid


def test_an_answer_that_is_kept_and_not_used_causes_no_busy_loop(
    lab: Lab, provider: FakeProvider
) -> None:
    begin(lab)
    provider.cuts_results = 1000
    assert go_on(lab).manifest.status == "waiting"
    left = provider.cuts_results
    assert go_on(lab).manifest.status == "waiting"
    assert left - provider.cuts_results <= READ_TRIES, "it was read once more, in a few tries"


def test_half_a_character_in_an_error_of_a_provider_is_no_fault_of_ours(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    provider.failures["*"] = CallFailure("transient", clean_message("half \ud83d", ""))
    begin(lab)
    assert go_on(lab).manifest.status == "waiting"
    provider.failures.clear()
    go_on(lab, waits=True)
    assert_as_live(lab, undisturbed)


def test_a_folder_that_cannot_be_used_is_told_with_its_name(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, no folder")
    lab.write(run={"concurrency": 4, "batch": {"files": str(tmp_path / "out"), "live_below": 0}})
    with pytest.raises(CoreEvalError) as caught:
        begin(lab)
    assert caught.value.where == str(tmp_path / "out")
    assert "run.batch.files" in caught.value.hint


def test_a_folder_that_went_away_is_no_loss_of_its_batches(
    lab: Lab, tmp_path: Path, undisturbed: Undisturbed
) -> None:
    folder = tmp_path / "out"
    lab.write(run={"concurrency": 4, "batch": {"files": str(folder), "live_below": 0}})
    begin(lab)
    away = folder.rename(tmp_path / "away")
    with pytest.raises(CoreEvalError, match="mount the folder or move it back") as caught:
        go_on(lab)
    assert caught.value.where == str(folder) and not folder.exists()
    away.rename(folder)
    assert go_on(lab).manifest.status == "waiting" and len(list(folder.iterdir())) == 1
    go_on(lab, live=True)
    assert_as_live(lab, undisturbed)


@pytest.mark.parametrize("how", ["copied", "renamed"])
@pytest.mark.parametrize("files", ["batches", "../batches"])
def test_the_batches_of_a_moved_project_are_those_of_its_present_folder(
    make_lab: MakeLab, tmp_path: Path, undisturbed: Undisturbed, how: str, files: str
) -> None:
    old, new = tmp_path / "old", tmp_path / "elsewhere" / "new"
    (old / "project").mkdir(parents=True)
    lab = make_lab(old / "project")
    lab.write(run={"concurrency": 4, "batch": {"files": files, "live_below": 0}})
    begin(lab)
    (sent,) = (lab.folder / files).iterdir()
    if how == "copied":
        shutil.copytree(old, new)
    else:
        new.parent.mkdir()
        old.rename(new)
    moved = replace(lab, folder=new / "project")
    for _ in range(2):
        assert go_on(moved).manifest.status == "waiting"
    go_on(moved, live=True)
    assert_as_live(moved, undisturbed)
    assert [*(moved.folder / files).iterdir()] == []
    assert sent.exists() == (how == "copied")


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("target", ["disk", ".coreeval"])
def test_the_batches_of_a_linked_workspace_are_those_of_the_project_with_the_link(
    make_lab: MakeLab,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    undisturbed: Undisturbed,
    target: str,
    *,
    renamed: bool,
) -> None:
    (tmp_path / target).mkdir(parents=True)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / ".coreeval").symlink_to(tmp_path / target)
    lab = make_lab(tmp_path / "old")
    lab.write(run={"concurrency": 4, "batch": {"files": "batches", "live_below": 0}})
    begin(lab)
    inside = Path(".coreeval", "runs", "emotion", "20261120T030000Z")
    (lab.folder / inside).parent.mkdir(parents=True)
    lab.files.root.rename(lab.folder / inside)
    lab.files.root.symlink_to(inside)
    if renamed:
        lab = replace(lab, folder=lab.folder.rename(tmp_path / "new"))
        monkeypatch.chdir(lab.folder)
    for _ in range(2):
        assert go_on(lab).manifest.status == "waiting"
    go_on(lab, live=True)
    assert_as_live(lab, undisturbed)
    assert [*(lab.folder / "batches").iterdir()] == []


def test_a_copy_without_its_batches_leaves_those_of_the_first_project(
    make_lab: MakeLab, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    lab = make_lab(tmp_path / "old")
    lab.write(run={"concurrency": 4, "batch": {"files": "batches", "live_below": 0}})
    begin(lab)
    new = shutil.copytree(lab.folder, tmp_path / "new", ignore=shutil.ignore_patterns("batches"))
    with pytest.raises(CoreEvalError, match="mount the folder or move it back") as caught:
        go_on(replace(lab, folder=new), live=True)
    assert caught.value.where == str(new / "batches")
    assert go_on(lab).manifest.status == "waiting"


def test_batches_in_a_folder_are_collected_from_there_whatever_the_config_says_now(
    lab: Lab, tmp_path: Path
) -> None:
    lab.write(run={"concurrency": 4, "batch": {"files": str(tmp_path / "out"), "live_below": 0}})
    begin(lab)
    lab.write(run={"concurrency": 4})
    assert go_on(lab).manifest.status == "complete"
    assert lab.manifest.cost.billed_calls > 0


def test_a_config_without_batches_collects_those_that_are_open(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    begin(lab)
    lab.write(run={"concurrency": 4})
    go_on(lab)
    assert_as_live(lab, undisturbed)
    assert provider.sizes == [FEW] and set(provider.paid.values()) == {1}


def test_a_spent_budget_ends_the_run_and_a_larger_one_goes_on(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    priced(lab, budget_usd=0.02)
    with pytest.raises(BudgetSpent, match="in a batch"):
        begin(lab, waits=True)
    cost = lab.manifest.cost
    assert cost.billed_usd is not None and 0 < cost.billed_usd + cost.unknown_usd <= 0.02
    resume(lab.files.root, budget_usd=50.0, around=RunHooks(waits=True, first_look_s=0.01))
    assert_as_live(lab, undisturbed)


def test_a_budget_that_covers_some_calls_sends_these_first(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed
) -> None:
    priced(lab, budget_usd=0.06)
    begin(lab, waits=True)
    assert_as_live(lab, undisturbed)
    assert min(provider.sizes) == 1
    cost = lab.manifest.cost
    assert cost.billed_usd is not None and cost.billed_usd + cost.unknown_usd <= 0.06


def test_targets_are_asked_through_batches(lab: Lab, provider: FakeProvider) -> None:
    config = yaml.safe_load(lab.config.read_text())
    targets = [{"model": f"openai:{name}", "base_url": lab.server.url} for name in ("one", "two")]
    lab.write(
        models=config["models"] | {"targets": targets},
        run={"concurrency": 4, "batch": {"live_below": 0, "models": [t["model"] for t in targets]}},
        detect={"evaluate": True},
    )
    assert begin(lab).manifest.status == "waiting"
    assert len(provider.sizes) == 2, "both targets are asked in one round"
    assert go_on(lab).manifest.status == "complete"
    assert set(provider.paid.values()) == {1}


def test_a_second_target_does_not_displace_one_whose_batch_is_open(
    lab: Lab, provider: FakeProvider
) -> None:
    lab.write(run={"concurrency": 4})
    begin(lab)
    lab.write(run={"concurrency": 4, "batch": {"live_below": 0}})
    for name in ("one", "two"):
        spec = f"{{model: 'openai:{name}', base_url: '{lab.server.url}'}}"
        assert evaluate(lab.files.root, targets=[spec]).manifest.status == "waiting"
    assert len(provider.sizes) == 2
    assert go_on(lab).manifest.status == "complete"
    report = json.loads(lab.files.report_json.read_text())
    assert [each["target"] for each in report["arms"]["targets"]] == ["openai:one", "openai:two"]
    assert set(provider.paid.values()) == {1}


def test_two_keys_of_one_model_have_batches_of_their_own(
    lab: Lab, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    providers = {name: FakeProvider(lab.server.url) for name in ("one", "two")}
    monkeypatch.setenv("KEY_ONE", "one")
    monkeypatch.setenv("KEY_TWO", "two")
    monkeypatch.setattr(
        OpenAIChat,
        "open_batches",
        lambda chat: FakeBatches(providers[chat.key.get_secret_value()]),
    )
    model = {"model": "openai:scripted", "base_url": lab.server.url, "price": PRICE}
    one, two = ({**model, "api_key_env": f"KEY_{name.upper()}"} for name in providers)
    lab.write(
        models={"default": one, "label_judge": two},
        run={"concurrency": 4, "batch": {"live_below": 0}, "budget_usd": 50.0},
    )
    begin(lab)
    monkeypatch.setenv("KEY_ONE", "new")  # a key may be renewed while its batch is open
    providers["new"] = providers["one"]
    monkeypatch.setattr(batch_rounds, "LONGEST_LOOK_S", 0.01)
    go_on(lab, waits=True)
    assert_as_live(lab, undisturbed)
    shapes = {name: shapes_of(provider) for name, provider in providers.items()}
    assert shapes["two"] and not shapes["one"] & shapes["two"]
    assert set(providers["one"].paid.values()) == {1} == set(providers["two"].paid.values())


def shapes_of(provider: FakeProvider) -> set[str]:
    """Return what a provider was asked for in batches."""
    sent = [json.loads(each.body) for batch in provider.requests.values() for each in batch]
    return {each["response_format"]["json_schema"]["name"] for each in sent}


def test_workers_and_batches_exclude_each_other(lab: Lab, provider: FakeProvider) -> None:
    lab.write(run={"concurrency": 4, "batch": True, "workers": 2})
    with pytest.raises(CoreEvalError, match=r"remove run\.workers"):
        begin(lab)


def test_files_of_a_folder_are_batches_too(lab: Lab, tmp_path: Path) -> None:
    lab.write(run={"concurrency": 4, "batch": {"files": str(tmp_path / "out"), "live_below": 0}})
    assert begin(lab).manifest.status == "waiting"
    [written] = (tmp_path / "out").glob("*.jsonl")
    assert len(written.read_text().splitlines()) == FEW


def test_a_waiting_sample_leaves_nothing_behind_for_the_garbage_collector(
    lab: Lab, provider: FakeProvider
) -> None:
    gc.collect()
    usual, flags = gc.isenabled(), gc.get_debug()
    gc.disable()
    try:
        assert begin(lab).manifest.status == "waiting"
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = [each for each in gc.garbage if isinstance(each, CallQueued | ModelRequest)]
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        if usual:
            gc.enable()
    assert provider.sizes == [FEW]
    assert left == []


def test_samples_that_need_no_news_are_reworded_in_the_rounds_of_the_others(
    lab: Lab, provider: FakeProvider
) -> None:
    number, around = 7, RunHooks(first_look_s=0.01)
    refresh(lab.config, limit=number, run_dir=lab.files.root, around=around)
    for _ in range(2):
        assert go_on(lab).manifest.status == "waiting"
    with closing(sqlite3.connect(lab.files.store)) as db:
        judged = "SELECT sample_id FROM steps WHERE node = 'judge_original'"
        searched = "SELECT sample_id FROM steps WHERE node = 'retrieve'"
        (alone,) = db.execute(f"SELECT count(*) FROM ({judged} EXCEPT {searched})").fetchone()
    assert alone > 0, "no sample of these needs no news"
    extractions, labels, rewordings = provider.sizes
    assert (extractions, labels) == (number, 1)
    assert rewordings >= number
