"""Inspect evaluates the exported task, and reads the logs of a run."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from inspect_ai.event import EventTreeSpan, InfoEvent, ModelEvent, event_tree
from inspect_ai.log import EvalLog, read_eval_log, read_eval_log_sample
from inspect_ai.model import ModelUsage

from coreeval.errors import UsageError
from coreeval.evaluation.targets import fill_template
from coreeval.releases.exports import inspect_logs
from coreeval.releases.exports.export import export
from coreeval.schema import Verdict
from coreeval.tasks import load_task
from coreeval.tools.stores.call_records import CallRecord, call_key, call_request
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, StepRecord
from tests.releases import kinds
from tests.releases.exports.conftest import Sources, assemble
from tests.releases.kit import NOW, Made, make_run

REQUEST = call_request(
    provider="openai",
    endpoint="http://127.0.0.1:9/v1",
    model="writer",
    parameters={"temperature": 0.5},
    schema={},
    messages=[{"role": "system", "content": "You write."}, {"role": "user", "content": "Do."}],
    draw=0,
)
CALL = CallRow(
    key=call_key(REQUEST),
    role="composer",
    model="openai:writer",
    draw=0,
    cached=False,
    prompt_tokens=120,
    cached_tokens=20,
    completion_tokens=30,
    seconds=1.5,
    tries="429\n500",
    usd=0.002,
)


INSPECT = """
import json, sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
def answer(messages, *_):
    is_other = "number 3" in messages[-1].text
    said = "I cannot say." if is_other else '```json\\n{"label": "joy"}\\n```'
    output = ModelOutput.from_content("mockllm", said)
    output.usage = ModelUsage(input_tokens=5, output_tokens=1, total_tokens=6)
    return output
model = get_model("mockllm/model", custom_outputs=answer)
(log,) = eval(sys.argv[1], task_args={"arm": "original"}, model=model, display="none")
metrics = log.results.scores[0].metrics
found = {name: one.value for name, one in metrics.items()}
print(json.dumps({"task": log.eval.task, "status": log.status, **found}))
"""
"""A process of its own: Inspect leaves streams open, which warns."""


def test_the_task_asks_about_an_arm_and_scores_labels(sources: Sources, tmp_path: Path) -> None:
    made = export(sources.free, to="inspect", out=tmp_path / "out")
    assert made.rows == {"original": 6, "semantic": 3, "updated": 3}
    done = subprocess.run(
        [sys.executable, "-c", INSPECT, "out/coreeval_task.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert (found["status"], found["task"]) == ("success", "coreeval_weekly_original")
    assert found["accuracy"] == 0.5
    assert found["unparsed"] == pytest.approx(1 / 6)
    assert found["macro_f1"] == pytest.approx(0.75 / 4)
    assert found["macro_f1_lower"] < found["macro_f1"] < found["macro_f1_upper"]
    assert {"lower", "upper"} <= set(found)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a run whose first sample has a story of two steps, one of them with a call."""
    made = make_run(tmp_path_factory.mktemp("told"))
    store = RunStore.open(made.files.store, now=lambda: NOW)
    first, evidence = "emotion/test/1", f"{0:016x}"
    store.history.record(
        _step(first, "retrieve", 1, {"evidence": {evidence: "named"}, "rung": "named"})
    )
    said = (Verdict(name="checks", attempt=2, passed=False, reason="too long"),)
    store.history.record(_step(first, "compose", 2, {"composed": {"text": "x"}}, (CALL,), said))
    store.close()
    asyncio.run(_put(made))
    assemble(made)
    return made


def _step(
    sample: str,
    node: str,
    attempt: int,
    detail: dict[str, object],
    calls: tuple[CallRow, ...] = (),
    verdicts: tuple[Verdict, ...] = (),
) -> StepRecord:
    return StepRecord(
        sample_id=sample,
        attempt=attempt,
        node=node,
        started_at=NOW.replace(minute=attempt).isoformat(),
        seconds=2.0,
        detail=detail,
        calls=calls,
        verdicts=verdicts,
    )


async def _put(made: Made) -> None:
    calls = open_calls(made.folder / ".coreeval" / "calls.db")
    await calls.put(
        CallRecord(
            key=CALL.key,
            draw=0,
            role="composer",
            request=REQUEST,
            response="a new text",
            valid=True,
            finish_reason="length",
        )
    )
    calls.close()


def _log(folder: Path) -> EvalLog:
    return read_eval_log(next(folder.glob("logs/*.eval")))


def _nodes(log: EvalLog) -> dict[str, EventTreeSpan]:
    """Return the spans of the first sample's steps, by name."""
    assert log.samples
    (root,) = event_tree(log.samples[0].events)
    assert isinstance(root, EventTreeSpan)
    assert (root.name, root.type) == ("refresh", "agent")
    return {each.name: each for each in root.children if isinstance(each, EventTreeSpan)}


def test_the_log_of_a_run_tells_how_each_sample_ended(told: Made, tmp_path: Path) -> None:
    made = export(told.files.root, to="inspect", out=tmp_path / "out")
    assert made.rows["logs"] == 6
    log = _log(made.out)
    assert (log.status, log.eval.task, log.eval.model) == ("success", "weekly-refresh", "offline")
    assert log.results
    shares = {score.name: score.metrics["accuracy"].value for score in log.results.scores}
    assert shares["accepted"] == 0.5
    path = next(made.out.glob("logs/*.eval"))
    first = read_eval_log_sample(path, "emotion/test/1")
    assert (first.input, first.target) == ("old tweet number 0", "anger")
    assert first.output.completion == "Ada Roe opened it"
    assert first.metadata["facts"][0]["after"]["head"] == "new 0"
    rejected = read_eval_log_sample(path, "emotion/test/4")
    assert rejected.scores
    assert rejected.scores["accepted"].answer == "rejected_facts"
    assert "Ada Roe was arrested" in str(rejected.scores["accepted"].explanation)
    assert rejected.output.completion == ""


def test_nodes_are_spans_with_calls_news_and_verdicts(told: Made, tmp_path: Path) -> None:
    export(told.files.root, to="inspect", out=tmp_path / "out")
    log = _log(tmp_path / "out")
    nodes = _nodes(log)
    assert {"retrieve (attempt 1)", "compose (attempt 2)"} <= set(nodes)
    found, rest = nodes["retrieve (attempt 1)"].children
    assert isinstance(found, InfoEvent) and isinstance(rest, InfoEvent)
    assert isinstance(found.data, list) and isinstance(found.data[0], dict)
    assert (found.source, found.data[0]["url"]) == ("evidence", "https://example.org/0")
    call, _, verdict = nodes["compose (attempt 2)"].children
    assert isinstance(call, ModelEvent) and isinstance(verdict, InfoEvent)
    assert [message.text for message in call.input] == ["You write.", "Do."]
    assert (call.output.completion, call.output.stop_reason) == ("a new text", "max_tokens")
    assert (call.role, call.retries, call.config.temperature) == ("composer", 2, 0.5)
    assert call.output.usage == ModelUsage(
        input_tokens=100,
        output_tokens=30,
        total_tokens=150,
        input_tokens_cache_read=20,
        total_cost=0.002,
    )
    assert verdict.data == said_of(2)
    assert log.stats.model_usage["openai:writer"].output_tokens == 30


def said_of(attempt: int) -> dict[str, object]:
    return {"name": "checks", "attempt": attempt, "passed": False, "reason": "too long"}


def test_without_the_call_store_the_words_are_left_out(told: Made, tmp_path: Path) -> None:
    store = told.folder / ".coreeval" / "calls.db"
    hidden = store.rename(store.with_suffix(".away"))
    try:
        export(told.files.root, to="inspect", out=tmp_path / "out")
        assert not store.exists()
    finally:
        hidden.rename(store)
    call = _nodes(_log(tmp_path / "out"))["compose (attempt 2)"].children[0]
    assert isinstance(call, ModelEvent)
    assert (call.input, call.output.completion) == ([], "")
    assert call.output.usage and call.output.usage.output_tokens == 30


def test_no_id_leads_out_of_the_folder_of_an_unpacked_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {
        "../../x": "..%2F..%2Fx",
        "..%2F..%2Fx": "..%252F..%252Fx",
        "/x": "%2Fx",
        "C:/x": "C%3A%2Fx",
        "a\\b": "a%5Cb",
        "a\nb": "a%0Ab",
        "a/.. /b": "a%2F.. %2Fb",
        "emotion/test/1": "emotion/test/1",
        "own:b, 100%": "own:b, 100%",
    }
    rows = [{**row, "id": name} for row, name in zip(kinds.ROWS["choice"] * 3, named, strict=True)]
    monkeypatch.setitem(kinds.ROWS, "choice", rows)
    made = kinds.make_kind_run(tmp_path, "choice")
    export(made.files.root, to="inspect", out=tmp_path / "out")
    (path,) = tmp_path.glob("out/logs/*.eval")
    names = ZipFile(path).namelist()
    assert {f"samples/{name}_epoch_1.json" for name in named.values()} <= set(names)
    assert not [name for name in names if {"", ".", ".."} & {*map(str.strip, name.split("/"))}]
    for name, encoded in named.items():
        assert read_eval_log_sample(path, encoded).metadata["sample_id"] == name


def test_many_samples_become_several_logs(
    told: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_logs, "SAMPLES_AT_A_TIME", 4)
    export(told.files.root, to="inspect", out=tmp_path / "out")
    logs = [read_eval_log(path, header_only=True) for path in tmp_path.glob("out/logs/*.eval")]
    assert sorted(log.eval.dataset.samples or 0 for log in logs) == [2, 4]
    assert len({log.eval.task_id for log in logs}) == 2


def test_a_package_that_is_missing_is_named(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "coreeval.releases.exports.inspect_logs", raising=False)
    for name in {"inspect_ai", *sys.modules}:
        if name.partition(".")[0] == "inspect_ai":
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match="not installed") as told:
        export(sources.run, to="inspect", out=tmp_path / "out")
    assert "pip install 'coreeval[inspect]'" in told.value.hint
    export(sources.closed, to="inspect", out=tmp_path / "out")


LM_EVAL = """
import functools, sys
from lm_eval import tasks
from lm_eval.__main__ import cli_evaluate
# The tasks that come with it take seconds to list, and nothing here needs them.
tasks.TaskManager = functools.partial(tasks.TaskManager, include_defaults=False)
for arguments in (line.split() for line in sys.argv[1:]):
    sys.argv = ["lm-eval", *arguments]
    cli_evaluate()
"""


def _run(folder: Path, *commands: str) -> str:
    """Run commands of the installed tool, one after another, without the network."""
    offline = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", LM_EVAL, *commands],
        cwd=folder,
        env=os.environ | offline,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def _found(folder: Path) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Return the results by task, and the samples that were logged of each."""
    results = json.loads(next(folder.rglob("results_*.json")).read_text("utf-8"))
    samples = {
        path.name.removeprefix("samples_").rpartition("_")[0]: [
            json.loads(line) for line in path.read_text("utf-8").splitlines()
        ]
        for path in folder.rglob("samples_*.jsonl")
    }
    return results, samples


def test_the_tool_validates_and_runs_every_task_wherever_the_folder_is(
    sources: Sources, tmp_path: Path
) -> None:
    made = export(sources.free, to="lm-eval", out=tmp_path / "out")
    assert made.rows == {"original": 6, "semantic": 3, "updated": 3}
    moved = Path(shutil.move(made.out, tmp_path / "elsewhere"))
    names = [f"coreeval_weekly_{arm}_{kind}" for arm in made.rows for kind in ("gen", "mc")]
    said = _run(
        tmp_path,
        f"validate --tasks {','.join(names)} --include_path {moved}",
        f"run --model dummy --include_path {moved} --tasks coreeval_weekly --seed 3"
        " --output_path results --log_samples",
    )
    assert "All tasks found and valid" in said
    results, samples = _found(tmp_path / "results")
    assert sorted(results["results"]) == sorted(names)
    assert set(results["versions"].values()) == {"2026.47"}
    for name in names:
        scores = results["results"][name]
        assert {"acc,none", "macro_f1,none"} <= set(scores)
        assert scores["sample_len"] == made.rows[name.split("_")[2]]
    written = results["results"]["coreeval_weekly_updated_gen"]
    assert (written["acc,none"], written["unparsed,none"]) == (0.0, 1.0)
    first = samples["coreeval_weekly_updated_mc"][0]
    asked = fill_template(load_task("emotion"), {"text": "Ada Roe opened it"}, 1)
    assert first["arguments"]["gen_args_0"]["arg_0"] == asked
    assert samples["coreeval_weekly_updated_gen"][0]["macro_f1"] == ["anger", "__unparsed__"]
