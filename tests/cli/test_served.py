"""A paid run on the command line: stopped by its budget, gone on, recorded, repeated from that."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.config import load_config
from tests.cli.kit import CONFIG, Shell
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import LLMServer

SAMPLES = 4
PARTS = ("updated", "semantic")


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LLMServer]:
    """Serve what the rules answer."""
    folder = tmp_path_factory.mktemp("answers")
    config = folder / "answers.yaml"
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    with (
        closing(OfflineAnswers(load_config(config), folder)) as answers,
        LLMServer(answers).in_thread() as server,
    ):
        yield server


@pytest.fixture
def config(shell: Shell, server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a config whose roles and target are asked over the wire, at a price."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    price = {"input": 2, "output": 10}
    model = {"model": "openai:rules", "base_url": server.url, "price": price}
    target = {**model, "cutoff": "2025-07-01"}
    return shell.config({"models": {"default": model, "targets": [target]}})


def spent(folder: Path) -> float:
    """Return what the calls of a workspace cost."""
    with closing(sqlite3.connect(folder / ".coreeval" / "calls.db")) as store:
        return float(store.execute("SELECT coalesce(sum(usd), 0) FROM calls").fetchone()[0])


def cost(run: Path) -> dict[str, float]:
    """Return what a run's manifest says that it cost."""
    told: dict[str, float] = json.loads((run / "manifest.json").read_text())["cost"]
    return told


def written(run: Path) -> dict[str, bytes]:
    """Return the tables that a run wrote."""
    return {
        part: b"".join(file.read_bytes() for file in (run / "dataset" / part).glob("*.parquet"))
        for part in PARTS
    }


def facts(run: Path) -> list[dict[str, object]]:
    """Return the replaced facts; for which targets they are new goes by the targets' names."""
    table = pq.read_table(run / "dataset" / "provenance")
    rows: list[dict[str, object]] = table.drop_columns(["after_cutoff"]).to_pylist()
    return rows


def test_a_run_that_its_budget_stopped_goes_on_with_a_larger_one_and_asks_nothing_twice(
    shell: Shell, config: Path, server: LLMServer
) -> None:
    run = shell.folder / "run"
    first = shell(
        "refresh", config, "--limit", str(SAMPLES), "--run-dir", run, "--budget", "0.06", "--json"
    )
    assert first.code == 3 and "0.0600 USD" in first.error["message"]
    assert f"coreeval resume {run}" in first.error["hint"] and "--budget" in first.error["hint"]
    told, asked = cost(run), len(server.requests)
    assert 0 < spent(shell.folder) <= 0.06 and asked > 0
    assert told["billed_usd"] + told["unknown_usd"] == pytest.approx(spent(shell.folder))
    again = shell("resume", run, "--json")
    assert again.code == 3 and spent(shell.folder) <= 0.06
    assert asked <= len(server.requests)
    done = shell("resume", run, "--budget", "2", "--json")
    assert done.code == 0 and done.document["counts"]["total"] == SAMPLES
    bodies = [json.dumps(request, sort_keys=True) for request in server.requests]
    assert len(set(bodies)) == len(bodies) == cost(run)["billed_calls"]
    assert cost(run)["billed_usd"] == pytest.approx(spent(shell.folder))
    assert cost(run)["unknown_usd"] == 0


def test_a_recorded_run_is_repeated_without_a_server_or_a_key_and_writes_the_same(
    shell: Shell, config: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, answers = (shell.folder / name for name in ("first", "second", "a.jsonl"))
    assert shell("refresh", config, "--limit", str(SAMPLES), "--run-dir", first).code == 0
    assert shell("calls", "export", "--model", "openai:rules", "--out", answers).code == 0
    asked = len(server.requests)
    monkeypatch.delenv("OPENAI_API_KEY")
    replay = f"replay:{answers}"
    target = {"model": replay, "cutoff": "2025-07-01"}
    repeated = shell.config({"models": {"default": replay, "targets": [target]}})
    monkeypatch.setenv("COREEVAL_HOME", str(shell.folder / "another"))
    said = shell("refresh", repeated, "--limit", str(SAMPLES), "--run-dir", second)
    assert said.code == 0 and "billed for 0.00 USD" in said.out
    assert written(second) == written(first) and all(written(first).values())
    assert facts(second) == facts(first) != []
    assert len(server.requests) == asked
