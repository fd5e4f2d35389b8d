"""LangSmith, by its environment variables alone: a trace for each sample, and no key in any."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from coreeval import cli
from coreeval.graph.execute import open_store
from coreeval.models.tracing import TRACING
from coreeval.runs.history import read_sample_history
from coreeval.schedule.plan import open_plan
from coreeval.tools.clock import utc_now
from coreeval.tools.env_file import read_env_file
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_overview import Overview
from coreeval.tools.stores.run_store import RunStore
from tests.cli.kit import config_text
from tests.graph.conftest import MakeLab
from tests.graph.kit import KEY, Lab, Undisturbed, ended
from tests.schedule.kit import FakeSchedule
from tests.support import worker
from tests.support.langsmith_server import LangSmithServer, tracing
from tests.support.llm_server import Reply, Request

LIMIT = 2


@pytest.mark.parametrize("hidden", [False, True])
def test_langsmith_gets_a_trace_of_each_sample(
    make_lab: MakeLab, tmp_path: Path, hidden: bool
) -> None:
    lab = make_lab(tmp_path)
    model = {"model": "openai:scripted", "base_url": lab.server.url, "api_key_env": "SCRIPTED_KEY"}
    lab.write(models={"default": model})
    hide = {f"LANGSMITH_HIDE_{part}": str(hidden).lower() for part in ("INPUTS", "OUTPUTS")}
    with tracing() as server:
        environment = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": server.url,
            "LANGSMITH_API_KEY": "ls-key",
            "LANGSMITH_PROJECT": "evals",
            "SCRIPTED_KEY": KEY,
        }
        child = worker.fork(refreshed, lab.config, lab.files.root, environment | hide)
        assert ended(child) == 0
    told = b"".join(server.bodies)
    assert server.keys == {"ls-key"}
    assert KEY.encode() not in told
    assert {text.encode() in told for text in texts_of(lab)} == {not hidden}
    check_runs(server)


def refreshed(config: Path, run: Path, environment: dict[str, str]) -> None:
    """Refresh as the command line does, with an exit as it has one; done in another process."""
    os.environ.update(environment)
    sys.exit(cli.main(["refresh", str(config), "--limit", str(LIMIT), "--run-dir", str(run)]))


def texts_of(lab: Lab) -> list[str]:
    with closing(open_store(lab.files, utc_now)) as store:
        return [one.sample.fields["text"] for one in store.sample_results()]


def check_runs(server: LangSmithServer) -> None:
    runs = list(server.runs.values())
    assert all(run.get("end_time") for run in runs), "some did not arrive before the process ended"
    assert {run["session_name"] for run in runs} == {"evals"}
    roots = Counter(run["name"] for run in server.roots)
    assert roots.keys() == {"refresh sample", "run"} and roots["run"] == 1
    assert LIMIT < roots["refresh sample"] <= 2 * LIMIT, "once up to the search for news, and on"
    calls = [run for run in runs if run["run_type"] == "llm"]
    assert {"extraction", "label", "rewrite"} <= {call["name"] for call in calls}
    assert {call["extra"]["metadata"]["ls_model_name"] for call in calls} == {"scripted"}
    assert {"extract", "judge_original", "retrieve"} <= {run["name"] for run in runs}


SECRET_EXTRA = "private-value-4711"


def test_hidden_means_errors_and_parameters_too(make_lab: MakeLab, tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    lab.server.answers = echoed
    model = {
        "model": "openai:scripted",
        "base_url": lab.server.url,
        "extra": {"user": SECRET_EXTRA},
        "structured": "json_schema",
    }
    lab.write(models={"default": model})
    with tracing() as server:
        environment = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": server.url,
            "LANGSMITH_API_KEY": "ls-key",
            "LANGSMITH_HIDE_INPUTS": "true",
            "LANGSMITH_HIDE_OUTPUTS": "true",
        }
        child = worker.fork(refreshed, lab.config, lab.files.root, environment)
        assert ended(child) == 1
    told = b"".join(server.bodies)
    errors = {run["error"] for run in server.runs.values() if run.get("error")}
    assert errors and all(error.endswith("(hidden)") for error in errors)
    for text in (*texts_of(lab), SECRET_EXTRA, lab.server.url):
        assert text.encode() not in told
    assert any(run.get("serialized") for run in server.runs.values())


@pytest.mark.parametrize("value", ["True", "TRUE", " true ", "1"])
def test_each_way_to_write_true_hides(tmp_path: Path, value: str) -> None:
    with tracing() as server:
        environment = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": server.url,
            "LANGSMITH_API_KEY": "ls-key",
            "LANGSMITH_HIDE_INPUTS": value,
            "LANGCHAIN_HIDE_OUTPUTS": value,
        }
        office = FakeSchedule(tmp_path)
        assert ended(worker.fork(traced, [office.config], environment)) == 0
    told = b"".join(server.bodies)
    assert b"echo" in told
    assert b"input of n" not in told and b"output of n" not in told


@pytest.mark.parametrize("closes", [True, False])
def test_each_config_of_a_process_has_its_own_account(tmp_path: Path, closes: bool) -> None:
    """The first and last are not traced; the third hides its texts, the next shows them again."""
    said = {
        "off": "LANGSMITH_TRACING_V2=false\n",
        "a": "LANGSMITH_API_KEY=key-a\nLANGSMITH_PROJECT=of-a\n",
        "b": "LANGSMITH_API_KEY=key-b\nLANGSMITH_HIDE_INPUTS=true\nLANGSMITH_HIDE_OUTPUTS=true\n",
        "c": "LANGSMITH_API_KEY=key-c\nLANGSMITH_PROJECT=of-c\n",
        "off_again": "LANGSMITH_API_KEY=key-d\nLANGSMITH_TRACING_V2=false\n",
    }
    configs = []
    for name, text in said.items():
        configs.append(FakeSchedule(tmp_path / name, name=name).config)
        (tmp_path / name / ".env").write_text(text, encoding="utf-8")
    with tracing() as server:
        environment = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": server.url}
        way = traced if closes else traced_in_a_notebook
        assert ended(worker.fork(way, configs, environment)) == 0
    assert server.by_key.keys() == {"key-a", "key-b", "key-c"}
    for name in "abc":
        told = server.by_key[f"key-{name}"]
        shown = {one for one in said if f"input of {one}".encode() in told}
        assert shown == ({name} - {"b"})
    projects = {run["session_name"] for run in server.runs.values()}
    assert projects == {"of-a", "default", "of-c"}


def traced(configs: list[Path], environment: dict[str, str]) -> None:
    """Trace a step for each config, as a look at their schedules does; done in another process."""
    os.environ.update(environment)
    for config in configs:
        with open_plan(config) as plan:
            trace_step(plan.name)


def traced_in_a_notebook(configs: list[Path], environment: dict[str, str]) -> None:
    """Trace a step for each config, as one refresh after the other; done in another process."""
    os.environ.update(environment)
    for config in configs:
        read_env_file(config.parent)
        trace_step(config.parent.name)


def trace_step(name: str) -> None:
    from langchain_core.runnables import RunnableLambda

    TRACING.open()
    echo = RunnableLambda[str, str](lambda said: said.replace("input", "output"))
    echo.invoke(f"input of {name}", {"run_name": "echo"})


def echoed(request: Request) -> Reply:
    """Refuse a request with all of its words."""
    return Reply(status=400, error={"message": json.dumps(request, ensure_ascii=False)})


@pytest.mark.parametrize("manner", ["never answers", "refuses connections"])
def test_a_finished_process_is_not_held(make_lab: MakeLab, tmp_path: Path, manner: str) -> None:
    lab = make_lab(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if manner == "refuses connections":
            silent.close()
        environment = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": f"http://127.0.0.1:{port}",
            "LANGSMITH_API_KEY": "ls-key",
        }
        said = tmp_path / "said"
        child = worker.fork(timed, lab.config, lab.files.root, environment, said)
        ended(child)
    left = time.time()
    finished = (lab.files.root / "report.html").stat().st_mtime
    assert left - finished < 5 + SLACK_S
    assert f"LangSmith at 127.0.0.1:{port}: " in said.read_text()


def test_two_collectors_that_are_silent_hold_no_command(tmp_path: Path) -> None:
    """As a user has it: a process of its own, with all that its exit does."""
    config = tmp_path / "trial.yaml"
    config.write_text(config_text({}), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        environment = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": f"http://127.0.0.1:{port}",
            "LANGSMITH_API_KEY": "ls-key",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        }
        line = ["refresh", config, "--limit", "3", "--run-dir", tmp_path / "run"]
        done = subprocess.run(
            [sys.executable, "-m", "coreeval", *map(str, line)],
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )
        left = time.time()
    assert done.returncode == 0, done.stderr
    assert left - (tmp_path / "run" / "report.html").stat().st_mtime < 5 + SLACK_S
    assert f"LangSmith at 127.0.0.1:{port}: " in done.stderr
    assert f"spans did not arrive at http://127.0.0.1:{port}/v1/traces" in done.stderr


SLACK_S = 2.0
"""For writing the last files of the run on a machine that does other things too."""


def timed(config: Path, run: Path, environment: dict[str, str], said: Path) -> None:
    """Refresh, with what is written on stderr in a file; done in another process."""
    with said.open("w") as sys.stderr:
        refreshed(config, run, environment)


BILLED = "SELECT count(*), sum(prompt_tokens) FROM (SELECT DISTINCT key, prompt_tokens FROM calls)"
STEPS = "SELECT node, count(*) FROM steps GROUP BY node"
VERDICTS = "SELECT name, sum(passed), sum(NOT passed) FROM verdicts GROUP BY name"


def _overview(lab: Lab) -> Overview:
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        return store.listing.overview()


def _assert_adds_up(lab: Lab) -> None:
    """Assert that what is kept count of is what there is."""
    found, cost = _overview(lab), lab.manifest.cost
    billed = [one for one in found.calls if not one.cached]
    assert {**found.outcomes, "total": found.total}.items() <= lab.manifest.counts.items()
    assert sum(one.calls for one in billed) == cost.billed_calls
    assert sum(one.prompt_tokens for one in billed) == cost.prompt_tokens
    with closing(sqlite3.connect(lab.files.store)) as db:
        assert (cost.billed_calls, cost.prompt_tokens) == db.execute(BILLED).fetchone()
        assert {one.node: one.steps for one in found.nodes} == dict(db.execute(STEPS).fetchall())
        assert {(one.name, one.passed, one.failed) for one in found.verdicts} == set(
            db.execute(VERDICTS).fetchall()
        )


def test_figures_of_a_run_add_up(undisturbed: Undisturbed) -> None:
    _assert_adds_up(undisturbed.lab)


def test_figures_of_a_resumed_run_add_up(killed: Lab) -> None:
    killed.resume()
    _assert_adds_up(killed)


@pytest.mark.parametrize("outcome", ["accepted", "no_knowledge"])
def test_a_story_is_whole(undisturbed: Undisturbed, outcome: str) -> None:
    lab = undisturbed.lab
    chosen = next(key for key, one in undisturbed.results.items() if one.outcome == outcome)
    with (
        closing(RunStore.open(lab.files.store, now=utc_now)) as store,
        closing(open_calls(lab.workspace.calls)) as calls,
    ):
        story = read_sample_history(store, calls, chosen, prompts=lab.manifest.prompts)
    made = [call for step in story.steps for call in step.calls]
    assert made
    for call in made:
        assert (call.gone, call.prompt) == (False, call.role)
        assert call.messages
        assert call.answer
    did = {step.node: step.did for step in story.steps}
    asked = did["retrieve"]["asked"]
    assert asked
    assert all(bool(query["found"]) != bool(query["why_none"]) for query in asked)
    if outcome == "accepted":
        assert {each["supported"] for each in did["reflect"]["statements"]} <= {"yes", "not_needed"}
        assert story.evidence.keys() >= {
            fact.evidence_id for fact in undisturbed.results[chosen].facts
        }
