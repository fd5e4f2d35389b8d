"""Runs from Python: what they leave is what the commands leave and print."""

import asyncio
import json
from datetime import datetime
from pathlib import Path

import pytest

from coreeval.api.execution import arefresh, evaluate, refresh, resume, retry
from coreeval.api.runs import list_runs, load_run, status
from coreeval.errors import CoreEvalError, RunStateError, UntrustedEndpoint, UsageError
from coreeval.graph.execute import RunHooks, RunSummary
from coreeval.graph.monitor import Progress
from coreeval.graph.pool import Stop
from tests.cli.kit import CONFIG, Shell


def test_a_run_of_a_config_in_memory_is_the_run_of_its_file(shell: Shell) -> None:
    in_memory = refresh(CONFIG, limit=3, run_dir="memory")
    from_file = refresh(shell.config(), limit=3, run_dir=Path("file"))
    assert isinstance(in_memory, RunSummary)
    assert in_memory.is_complete and in_memory.counts == from_file.counts
    assert in_memory.manifest.source.path == "" and in_memory.manifest.source.sha256
    assert in_memory.manifest.fingerprints == from_file.manifest.fingerprints
    assert in_memory.samples()["updated_text"] == from_file.samples()["updated_text"]
    assert Path(in_memory.manifest.workspace) == shell.folder / ".coreeval"
    assert in_memory.report.exists() and (in_memory.dataset / "updated").is_dir()


def test_a_run_in_memory_goes_on_where_it_stopped(shell: Shell) -> None:
    stop = Stop()

    def stop_early(progress: Progress) -> None:
        if progress.done >= 1:
            stop.ask("test")

    hooks = RunHooks(watch=stop_early, stop=stop)
    done = refresh({**CONFIG, "run": {"concurrency": 1}}, limit=8, run_dir="run", around=hooks)
    assert done.manifest.status == "interrupted"
    assert done.counts["pending"] > 0
    with pytest.raises(RunStateError, match="no readable report") as caught:
        done.scores()
    assert "coreeval resume" in caught.value.hint
    again = resume(done)
    assert again.is_complete and again.counts["total"] == 8
    assert again.run_dir == done.run_dir
    assert retry("run").counts == again.counts


def test_refresh_is_the_document_of_the_command(shell: Shell) -> None:
    path = shell.config()
    said = shell("refresh", path, "--limit", "4", "--run-dir", "run", "--json").document
    assert load_run("run").document == said
    done = refresh(path, limit=4, run_dir="other", sample="random")
    assert done.document.keys() == said.keys()
    assert done.manifest.subset and done.manifest.subset.order == "random"
    assert done.document["counts"] == dict(done.counts)


def test_nothing_is_printed(shell: Shell) -> None:
    shell.capture.readouterr()
    done = refresh(CONFIG, limit=2, run_dir="run")
    evaluate(done, targets=["offline:classifier"])
    said = shell.capture.readouterr()
    assert (said.out, said.err) == ("", "")


def test_a_run_reads_as_a_line_and_a_table(shell: Shell, finished: Path) -> None:
    run = load_run(finished)
    lines = repr(run).splitlines()
    assert lines[0].startswith(f"run {run.id} of trial: complete (")
    assert sum(run.table["samples"]) == run.counts["total"] == 5  # type: ignore[arg-type]
    assert "<table" in run._repr_html_() and run.id in run._repr_html_()
    assert run.to_arrow().num_rows == len(run.to_pandas()) == len(run.table)


def test_a_status_is_the_document_of_the_command(shell: Shell, finished: Path) -> None:
    found = status(finished)
    said = shell("status", finished, "--json").document
    said["heartbeat"]["age_s"] = found.document["heartbeat"]["age_s"]  # type: ignore[index, call-overload]
    assert found.document == said
    assert found.status == "complete" and "5 of 5 samples have ended" in repr(found)


def test_samples_have_outcomes_and_texts(shell: Shell, finished: Path) -> None:
    run = load_run(finished)
    said = shell("trace", finished, "--json").document["samples"]
    found = run.samples()
    assert len(found) == 5
    for name in ("sample", "label", "outcome", "reason", "attempts", "usd", "seconds"):
        assert list(found[name]) == [row[name] for row in said]
    accepted = run.samples(outcomes=["accepted"])
    assert 0 < len(accepted) == run.counts["accepted"]
    for row in accepted:
        assert row["original_text"] and row["updated_text"]
        assert row["original_text"] != row["updated_text"]
    rest = [row for row in found if row["outcome"] != "accepted"]
    assert all(row["updated_text"] is None for row in rest)
    label = str(found[0]["label"])
    assert set(run.samples(label=label)["label"]) == {label}
    with pytest.raises(UsageError, match="did you mean 'accepted'"):
        run.samples(outcomes=["acepted"])


def test_a_trace_is_the_document_of_the_command(shell: Shell, finished: Path) -> None:
    run = load_run(finished)
    sample = str(run.samples(outcomes=["accepted"])[0]["sample"])
    found = run.trace(sample)
    assert json.loads(found.to_json()) == shell("trace", finished, sample, "--json").document
    assert found.outcome == "accepted" and found.reason == ""
    assert set(found.texts) >= {"original", "updated"}
    assert found.steps["node"][0] == "extract"
    assert len(found.facts) >= 1
    assert isinstance(found.facts["published_at"][0], datetime)
    assert str(found.facts["url"][0]).startswith("http")
    assert found.calls.shape[0] == 0  # rules play all roles
    assert found.to_arrow().num_rows == len(found.steps)
    with pytest.raises(UsageError, match="has no sample 'nowhere'"):
        run.trace("nowhere")


def test_scores_are_those_of_the_command(shell: Shell) -> None:
    done = refresh(CONFIG, limit=6, run_dir="run")
    assert len(done.scores()) == len(done.paired_scores()) == 0
    asked = evaluate("run", targets=["offline:classifier"])
    said = shell("evaluate", "run", "--target", "offline:classifier", "--json").document
    (target,) = said["arms"]["targets"]
    found = {row["arm"]: row for row in asked.scores()}
    for arm in target["all_samples"]["arms"]:
        score, row = arm["macro_f1"], found[arm["arm"]]
        assert [row[key] for key in ("estimate", "ci_low", "ci_high", "n")] == [
            score[key] for key in ("estimate", "ci_low", "ci_high", "n")
        ]
        assert row["target"] == "offline:classifier"
    pairs = {pair["second"]["arm"]: pair for pair in target["all_samples"]["comparisons"]}
    pair = pairs["updated"]
    (paired,) = asked.paired_scores()
    assert paired == {
        "target": "offline:classifier",
        "score": "macro-F1",
        "original": pair["first"]["macro_f1"]["estimate"],
        "updated": pair["second"]["macro_f1"]["estimate"],
        "difference": pair["macro_f1_difference"]["estimate"],
        **{key: pair["macro_f1_difference"][key] for key in ("ci_low", "ci_high", "n")},
    }
    assert paired["n"] != found["original"]["n"]
    assert asked.read_report()["arms"] == said["arms"]


def test_runs_are_listed_as_the_command_lists_them(shell: Shell) -> None:
    path = shell.config()
    refresh(path, limit=2)
    said = shell("runs", "--json").document["runs"]
    found = list_runs()
    assert len(found) == len(said) == 1
    for key, value in said[0].items():
        assert found[0][key] == (tuple(value) if key == "tags" else value)
    assert list_runs(shell.folder) == list_runs(str(shell.folder / ".coreeval")) == found
    assert len(list_runs(status="killed")) == 0
    assert load_run().run_dir == load_run(str(found[0]["id"])).run_dir == load_run("trial").run_dir
    with pytest.raises(UsageError, match="there is no state 'done'"):
        list_runs(status="done")
    with pytest.raises(RunStateError, match="no runs found"):
        list_runs(shell.folder / "nowhere")


def test_a_name_of_no_run_suggests_one(shell: Shell) -> None:
    refresh(shell.config(), limit=1)
    with pytest.raises(RunStateError, match="did you mean 'trial'"):
        load_run("trail")
    with pytest.raises(UsageError, match="is a file, but a run is a directory"):
        load_run("trial.yaml")


def test_the_same_errors_as_the_command(shell: Shell) -> None:
    path = shell.config({"knowledge.path": "nowhere"})
    with pytest.raises(CoreEvalError) as caught:
        refresh(path, run_dir="run")
    said = shell("refresh", path, "--run-dir", "run", "--json")
    assert said.error == caught.value.as_dict()
    assert not Path("run").exists()


def test_an_endpoint_needs_consent(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "k")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    model = {
        "model": "openai:gpt-x",
        "base_url": "http://192.0.2.1/v1",
        "api_key_env": "OTHER_KEY",
        "price": {"input": 1, "output": 1},
    }
    given = {**CONFIG, "models": {"default": model}}
    with pytest.raises(UntrustedEndpoint):
        refresh(given, limit=1, run_dir="run")
    with pytest.raises(CoreEvalError) as caught:  # trusted now, and nothing answers there
        refresh(given, limit=1, run_dir="run", trust_endpoints=True)
    assert not isinstance(caught.value, UntrustedEndpoint)
    with pytest.raises(CoreEvalError) as again:
        refresh(given, limit=1, run_dir="run")
    assert again.value.message == caught.value.message


async def test_a_run_works_under_a_running_loop(shell: Shell) -> None:
    assert asyncio.get_running_loop()
    assert refresh(CONFIG, limit=2, run_dir="run").is_complete


async def test_a_run_leaves_the_loop_free(shell: Shell) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    other = asyncio.create_task(tick())
    done = await arefresh(CONFIG, limit=3, run_dir="run")
    other.cancel()
    assert done.is_complete and ticks > 5


async def test_a_cancelled_run_comes_to_rest_and_can_be_resumed(shell: Shell) -> None:
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch(progress: Progress) -> None:
        if progress.done >= 1:
            loop.call_soon_threadsafe(begun.set)

    given = {**CONFIG, "run": {"concurrency": 1}}
    work = asyncio.create_task(
        arefresh(given, limit=8, run_dir="run", around=RunHooks(watch=watch))
    )
    await begun.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert load_run("run").manifest.status == "interrupted"
    assert resume("run").is_complete
