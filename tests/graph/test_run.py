"""What a run may be started, resumed and joined with."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from coreeval.errors import (
    BudgetSpent,
    ConfigError,
    CredentialError,
    DatasetError,
    RunLocked,
    RunStateError,
)
from coreeval.graph.bundled import WINDOW, demo_data
from coreeval.graph.evaluate import evaluate
from coreeval.graph.execute import RunHooks
from coreeval.graph.recorder import build_call_row
from coreeval.graph.run import open_run, refresh, resume, retry
from coreeval.models import CallRef
from coreeval.releases.exports.material import open_material
from coreeval.runs.manifest import read_manifest
from coreeval.runs.status import read_status
from coreeval.schema import Result
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.graph.kit import CONCURRENCY, SAMPLES, Lab, Undisturbed, assert_whole, ended
from tests.support.llm_server import Reply, Request, refused
from tests.support.odd_rows import odd_row
from tests.support.wire import Prompted

LATER = {"concurrency": CONCURRENCY, "max_attempts": 1}


def test_one_process_at_a_time(lab: Lab, undisturbed: Undisturbed) -> None:
    trap = lab.trap("plan", 1, lambda: Reply(delay_s=1.0, status=503))
    child = lab.child("refresh")
    assert trap.sprung.wait(30)
    with pytest.raises(RunLocked, match="another process") as caught:
        lab.resume()
    assert caught.value.where == str(lab.files.root)
    with pytest.raises(RunStateError, match="this folder already has a run"):
        lab.refresh()
    assert ended(child) == 0
    assert_whole(lab, undisturbed)


def test_a_changed_config_is_refused_or_left_aside(killed: Lab, undisturbed: Undisturbed) -> None:
    usual = killed.config.read_text()
    killed.write(run=LATER, name="other")
    with pytest.raises(RunStateError) as caught:
        killed.resume()
    assert caught.value.message.endswith("since the run began: name, run.max_attempts")
    assert "--keep" in caught.value.hint and "--anew" in caught.value.hint
    assert killed.asked() == []
    killed.resume("keep")
    assert_whole(killed, undisturbed)  # with one attempt it would not be

    killed.config.write_text(f"# a thought\n{usual}")
    assert killed.resume().manifest.status == "complete"


def test_a_changed_config_can_have_a_run_of_its_own(killed: Lab) -> None:
    before = killed.manifest
    killed.write(run=LATER)
    answered = killed.answered()
    anew = killed.resume("anew")
    assert anew.run_dir.parent == killed.workspace.runs / "survival"
    assert (anew.manifest.status, anew.manifest.counts["total"]) == ("complete", SAMPLES)
    assert killed.manifest == before
    assert answered.isdisjoint(killed.asked())


PRICED = {"price": {"input": 0, "output": 1000}, "max_tokens": 1000}
"""A call puts 1 USD aside."""


def _price(lab: Lab) -> None:
    """Let the samples be written by a model that costs something, one call after the other."""
    model = {"model": "openai:scripted", "base_url": lab.server.url, **PRICED}
    lab.write(models={"default": model}, run={"concurrency": 1})


def _stop_first(lab: Lab) -> None:
    """Leave a run that was begun without a budget and stopped at its first call."""
    _price(lab)
    lab.server.answers = lambda _: Reply(status=401, error={"message": "no"})
    with pytest.raises(CredentialError):
        lab.refresh()
    lab.forget()


def _spent(lab: Lab) -> float:
    cost = lab.manifest.cost
    return (cost.billed_usd or 0.0) + cost.unknown_usd


def test_a_budget_of_a_resume_holds_in_later_ones_until_another_is_given(lab: Lab) -> None:
    _stop_first(lab)
    with pytest.raises(BudgetSpent):
        resume(lab.files.root, budget_usd=2.0)
    for go_on in (resume, retry):
        with pytest.raises(BudgetSpent):
            go_on(lab.files.root)
        assert _spent(lab) <= 2.0
    assert read_status(lab.files.root).spend.budget_usd == 2.0
    lab.config.unlink()
    with pytest.raises(BudgetSpent):
        resume(lab.files.root)
    done = resume(lab.files.root, budget_usd=100.0).manifest
    assert (done.status, done.cost.budget_usd) == ("complete", 100.0)
    assert done.source.overrides == ("run.budget_usd=100.0",)


def test_a_new_run_in_place_of_a_changed_one_has_the_budget_that_was_given(lab: Lab) -> None:
    _stop_first(lab)
    before, kept = lab.manifest, lab.files.config.read_bytes()
    lab.write(run={"concurrency": 1, "max_attempts": 1})
    with pytest.raises(BudgetSpent):
        resume(lab.files.root, if_changed="anew", budget_usd=2.0)
    (started,) = (lab.workspace.runs / "survival").glob("*/manifest.json")
    cost = read_manifest(started).cost
    assert cost.budget_usd == 2.0
    assert (cost.billed_usd or 0.0) + cost.unknown_usd <= 2.0
    assert (lab.manifest, lab.files.config.read_bytes()) == (before, kept)


def test_a_budget_that_cannot_be_used_leaves_the_run_as_it_was(lab: Lab) -> None:
    _stop_first(lab)
    before, kept = lab.files.manifest.read_bytes(), lab.files.config.read_bytes()
    for gone in (False, True):
        if gone:
            lab.config.unlink()
        with pytest.raises(ConfigError, match="budget_usd"):
            resume(lab.files.root, budget_usd=0.0)
        assert (lab.files.manifest.read_bytes(), lab.files.config.read_bytes()) == (before, kept)


def test_looking_at_a_run_with_another_budget_writes_nothing(finished: Lab) -> None:
    kept = finished.files.config.read_bytes()
    _, manifest, setup = open_run(finished.files.root, 5.0)
    assert setup.config.run.budget_usd == 5.0
    assert manifest.source.overrides == ("run.budget_usd=5.0",)
    assert finished.files.config.read_bytes() == kept


def test_refresh_beside_an_unfinished_run_names_resume(lab: Lab) -> None:
    moment = datetime(2026, 11, 1, 3, tzinfo=UTC)
    lab.server.answers = lambda _: Reply(status=401, error={"message": "no"})
    with pytest.raises(CredentialError):
        refresh(lab.config, limit=3, around=RunHooks(now=lambda: moment))
    first = lab.workspace.runs / "survival" / "20261101T030000Z"
    assert first.is_dir()
    lab.forget()
    for place in (None, first):
        with pytest.raises(RunStateError) as caught:
            refresh(lab.config, limit=3, run_dir=place)
        assert f"coreeval resume {first}" in caught.value.hint
    assert lab.asked() == []


def test_a_run_that_was_renamed_does_not_hide_a_newer_unfinished_one(lab: Lab) -> None:
    done = refresh(lab.config, limit=1).run_dir
    done.rename(done.with_name("first-try"))
    lab.server.answers = lambda _: Reply(status=401, error={"message": "no"})
    with pytest.raises(CredentialError):
        refresh(lab.config, limit=3)
    with pytest.raises(RunStateError, match="the last run of 'survival' is unfinished"):
        refresh(lab.config, limit=3)


def test_two_runs_may_start_in_one_second(lab: Lab) -> None:
    moment = RunHooks(now=lambda: datetime(2026, 11, 1, 3, tzinfo=UTC))
    runs = [refresh(lab.config, limit=1, around=moment).run_dir.name for _ in range(3)]
    assert runs == ["20261101T030000Z", "20261101T030000Z-2", "20261101T030000Z-3"]


def test_a_limit_and_lines_that_are_no_samples(lab: Lab) -> None:
    rows: list[object] = [
        {"text": "Gold price hit a record, so happy", "label": 1},
        {"text": "no label here"},
        {"text": "an unknown label", "label": 9},
        {"text": "Windows made me furious again", "label": 0},
        {"text": "never reached", "label": 0},
    ]
    source = lab.folder / "rows.jsonl"
    lines = [*map(json.dumps, rows[:3]), "{not json", *map(json.dumps, rows[3:])]
    source.write_text("\n".join(lines) + "\n")
    lab.write(
        dataset={"format": "jsonl", "path": str(source)},
        models={"default": "offline"},
    )
    summary = lab.refresh(limit=2)
    assert summary.manifest.counts["total"] == 2 == len(lab.results())
    assert summary.manifest.bad_rows == 3
    assert summary.manifest.limit == 2
    assert bad_lines(lab.files.store) == [2, 3, 4]


def bad_lines(path: Path) -> list[int]:
    store = RunStore.open(path, now=utc_now)
    try:
        return [row.line for row in store.bad_rows()]
    finally:
        store.close()


def _refuse(lab: Lab, shape: str) -> None:
    async def answers(request: Request) -> str | Reply:
        if Prompted(request).shape == shape:
            return refused(400, "not to our taste")
        return await lab.answers(request)

    lab.server.answers = answers


def _ended(results: dict[str, Result], outcome: str) -> set[str]:
    return {key for key, result in results.items() if result.outcome == outcome}


def test_unsafe_counts_more_than_failed(lab: Lab, undisturbed: Undisturbed) -> None:
    unsafe = _ended(dict(undisturbed.results), "unsafe")
    assert unsafe
    _refuse(lab, "rewrite")
    lab.refresh()
    results = lab.results()
    assert _ended(results, "unsafe") == unsafe
    assert _ended(results, "failed") == results.keys() - unsafe


def test_a_failed_sample_keeps_its_judged_rewording_and_its_attempts(
    lab: Lab, undisturbed: Undisturbed
) -> None:
    _refuse(lab, "fact_check")
    lab.refresh()
    results = lab.results()
    failed = _ended(results, "failed")
    assert failed
    for key in failed:
        before = undisturbed.results[key]
        assert results[key].semantic == before.semantic
        assert results[key].semantic_status == before.semantic_status
        assert results[key].attempts >= 1
    assert len(lab.arms()["semantic"]) == len(undisturbed.arms["semantic"])


def test_a_rewording_that_no_judge_has_seen_is_in_no_arm(lab: Lab) -> None:
    _refuse(lab, "label")
    lab.refresh()
    assert all(result.semantic is None for result in lab.results().values())
    assert lab.arms()["semantic"] == []


def test_retry_makes_the_manifest_say_that_the_run_is_worked_on(lab: Lab) -> None:
    _refuse(lab, "fact_check")
    lab.refresh()
    seen: list[str] = []

    async def look(request: Request) -> str | Reply:
        seen.append(lab.manifest.status)
        return await lab.answers(request)

    lab.server.answers = look
    assert retry(lab.files.root).manifest.counts["failed"] == 0
    assert set(seen) == {"running"}


def test_retry_that_stops_at_once_leaves_an_unfinished_run(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    _refuse(lab, "fact_check")
    assert lab.refresh().manifest.status == "complete"
    seen, forget = list[str](), RunStore.forget

    def note_status(store: RunStore, outcome: str) -> int:
        seen.append(lab.manifest.status)
        return forget(store, outcome)

    monkeypatch.setattr(RunStore, "forget", note_status)
    (lab.folder / "prices.yaml").write_text("models: {x")
    lab.write(run={"concurrency": CONCURRENCY, "prices": "prices.yaml"})
    with pytest.raises(ConfigError, match=r"prices\.yaml"):
        retry(lab.files.root)
    assert seen == [lab.manifest.status] == ["interrupted"]
    lab.write(run={"concurrency": CONCURRENCY})
    assert lab.resume().manifest.status == "complete"


def test_a_complete_run_that_is_resumed_keeps_its_end(lab: Lab) -> None:
    ended = lab.refresh().manifest.ended_at
    assert lab.resume().manifest.ended_at == ended


@pytest.mark.parametrize(
    ("cached", "payer", "free"),
    [
        (False, "me", False),
        (True, "me", False),
        (True, "another", True),
    ],
)
def test_a_call_found_in_the_store_is_free_unless_this_run_paid_it(
    cached: bool, payer: str, free: bool
) -> None:
    call = CallRef(
        role="composer",
        key="k",
        model="openai:m",
        draw=0,
        cached=cached,
        paid_by=payer,
        prompt_tokens=1,
        cached_tokens=0,
        completion_tokens=1,
        seconds=0.1,
        method="json_schema",
        tries="",
        error="",
        usd=None,
    )
    assert build_call_row(call, "me").cached == free
    recorded = call.model_copy(update={"model": "replay:answers.jsonl"})
    assert build_call_row(recorded, "me").cached


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return the config of a small run with a task and a benchmark of the user's own."""
    labels = [{"id": 0, "name": "bad", "meaning": "m"}, {"id": 1, "name": "good", "meaning": "m"}]
    task = {
        "name": "mood",
        "description": "Whether a text is in a good mood.",
        "fields": ["text"],
        "labels": labels,
        "question": "Is the mood good?",
        "text_kind": "tweet",
        "templates": ["$text\nOne of: $labels"],
    }
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    rows = [
        {"id": str(n), "text": f"the heat wave is great, number {n}", "label": 1} for n in (1, 2)
    ]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {
        "name": "own",
        "task": "task.yaml",
        "dataset": {"format": "jsonl", "path": "test.jsonl"},
        "knowledge": {
            "path": str(demo_data() / "news"),
            "window": WINDOW,
            "min_precision": "crawl",
        },
        "models": {"default": "offline"},
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    return tmp_path / "c.yaml"


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        ("task.yaml", "name: good", "name: fine", "the task"),
        ("test.jsonl", "heat wave", "cold spell", "the benchmark"),
    ],
)
def test_a_changed_task_or_benchmark_is_named_and_refused(
    own: Path, file: str, old: str, new: str, named: str
) -> None:
    run = own.parent / "run"
    refresh(own, run_dir=run)
    changed = own.parent / file
    changed.write_text(changed.read_text().replace(old, new))
    with pytest.raises(RunStateError, match=named):
        resume(run)
    assert resume(run, if_changed="keep").manifest.status == "complete"


def _refresh_with_train_split(own: Path) -> Path:
    rows = [{"text": f"number {n}", "label": n % 3 % 2} for n in range(24)]
    (own.parent / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return refresh(own, run_dir=own.parent / "run", overrides=["dataset.path=."]).run_dir


def _exchange_labels(own: Path) -> None:
    file = own.parent / "task.yaml"
    task = yaml.safe_load(file.read_text())
    bad, good = task["labels"]
    bad["id"], good["id"] = 1, 0
    file.write_text(yaml.safe_dump(task))


def _work_on(run: Path) -> Iterator[partial[Any]]:
    """Yield each use of an existing run that reads its task."""
    yield partial(retry, run)
    yield partial(evaluate, run, targets=["offline:clean"])
    yield partial(resume, run, if_changed="keep")
    yield partial(open_material, run)


def test_an_existing_run_uses_the_task_that_it_began_with(own: Path) -> None:
    run = _refresh_with_train_split(own)
    task, rows = open_material(run).task, [*open_material(run).samples()]
    _exchange_labels(own)
    with pytest.raises(RunStateError, match="the task"):
        resume(run)
    for work in _work_on(run):
        with RunStore.open(run / "run.db", now=utc_now) as store:
            for outcome in {row.outcome for row in rows if work.func is resume}:
                store.forget(outcome)
        work()
        assert open_material(run).task == task
        assert [*open_material(run).samples()] == rows
    (own.parent / "task.yaml").unlink()
    assert resume(run).manifest.status == "complete"


def test_a_run_without_a_copy_of_its_task_refuses_a_changed_one_before_it_pays(own: Path) -> None:
    run = _refresh_with_train_split(own)
    (run / "task.yaml").unlink()  # as in runs of older versions
    for work in _work_on(run):
        work()
    _exchange_labels(own)
    before = {path: path.read_bytes() for path in sorted(run.rglob("*.*")) if path.is_file()}
    for work in _work_on(run):
        with pytest.raises(RunStateError, match="the task has changed since the run"):
            work()
    assert before == {path: path.read_bytes() for path in before}


def test_files_that_are_gone_do_not_stop_a_resume(own: Path) -> None:
    run = own.parent / "run"
    refresh(own, run_dir=run)
    (own.parent / "test.jsonl").unlink()
    assert resume(run).manifest.status == "complete"


def test_results_that_are_gone_are_written_again_by_a_resume(own: Path) -> None:
    run = own.parent / "run"
    refresh(own, run_dir=run)
    gone = (
        *(run / "dataset").rglob("*.parquet"),
        *(run / name for name in ("dataset/README.md", "report.json", "report.html")),
    )
    for path in gone:
        before = path.read_bytes()
        path.unlink()
        assert resume(run).manifest.status == "complete"
        assert path.exists() and (path.suffix == ".html" or path.read_bytes() == before), path


def test_an_embedded_target_is_not_fitted_on_what_it_is_tested_on(own: Path) -> None:
    overrides = ["models.targets=[offline:classifier]", "dataset.train_split=test"]
    with pytest.raises(DatasetError, match="an embedded target would be trained on its test split"):
        refresh(own, run_dir=own.parent / "run", overrides=overrides)
    assert not (own.parent / "run").exists()


def test_a_run_that_lost_its_config_says_so(own: Path) -> None:
    run = own.parent / "run"
    refresh(own, run_dir=run)
    (run / "config.yaml").unlink()
    with pytest.raises(RunStateError, match=r"config\.yaml is missing"):
        resume(run)
    assert read_manifest(run / "manifest.json").status == "complete"


def test_a_finished_run_has_no_row_that_coreeval_does_not_write(undisturbed: Undisturbed) -> None:
    assert odd_row(undisturbed.lab.files.root) == ""
