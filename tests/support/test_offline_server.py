"""The rules behind a wire come to the same end as the rules in process: nothing is lost on it."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
import yaml

from coreeval.config import load_config
from coreeval.graph.bundled import write_configs
from coreeval.graph.run import refresh
from coreeval.schema import Result
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import LLMServer


@contextmanager
def in_thread(config: Path) -> Iterator[str]:
    """Start the server in a thread; yield where it is."""
    answers = OfflineAnswers(load_config(config), config.parent)
    with closing(answers), LLMServer(answers).in_thread() as server:
        yield server.url.removesuffix("/v1")


@contextmanager
def as_process(config: Path) -> Iterator[str]:
    """Start the server as a process; yield where it is."""
    command = [sys.executable, "-m", "tests.support.offline_server", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def results(run: Path) -> list[Result]:
    """Return how the samples ended; the targets whom their news is new to differ."""
    store = RunStore.open(run / "run.db", now=utc_now)
    try:
        return [one.result.model_copy(update={"freshness": None}) for one in store.sample_results()]
    finally:
        store.close()


@pytest.mark.parametrize(("task", "served"), [("emotion", in_thread), ("mrpc", as_process)])
def test_a_run_over_the_wire_ends_like_one_in_process(
    tmp_path: Path, task: str, served: Callable[[Path], AbstractContextManager[str]]
) -> None:
    config = next(path for path in write_configs(tmp_path) if path.stem == task)
    raw = yaml.safe_load(config.read_text())
    with served(config) as url:
        raw["models"] = {"default": "offline"}
        config.write_text(yaml.safe_dump(raw))
        refresh(config, run_dir=tmp_path / "rules", limit=12)
        raw["models"] = {
            "default": {"model": "openai:rules", "base_url": f"{url}/v1"},
            "targets": [{"model": "openai:guess", "base_url": f"{url}/v1"}],
        }
        config.write_text(yaml.safe_dump(raw))
        wire = refresh(config, run_dir=tmp_path / "wire", limit=12)
        with urllib.request.urlopen(f"{url}/counts") as counts:
            asked = json.load(counts)
        assert (asked["requests"], asked["repeats"]) == (wire.manifest.cost.billed_calls, 0)
    assert results(tmp_path / "wire") == results(tmp_path / "rules")
    assert wire.manifest.counts["accepted"] > 0
