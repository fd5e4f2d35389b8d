"""Tokens that cannot have been counted so: every command that pays says so once, none breaks."""

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from starlette.testclient import TestClient

from coreeval.config import load_config
from coreeval.tools.text import unescape
from coreeval.viewer.app import create_app
from tests.cli.kit import CONFIG, Said, Shell
from tests.cli.test_trust import item_config
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import Answers, LLMServer, Reply, Request
from tests.support.tides import tides

SAMPLES = 4
NOTE = "its endpoint reported an impossible token count"
MOST = 2**63 - 1
USAGES: tuple[dict[str, object], ...] = (
    {"prompt_tokens": MOST, "completion_tokens": MOST, "total_tokens": 2 * MOST},
    {"prompt_tokens": 2**62, "completion_tokens": 2**62, "total_tokens": 2**63},
    {"prompt_tokens": MOST, "completion_tokens": 1, "total_tokens": 2**63},
    {"prompt_tokens": 9.3e18, "completion_tokens": 9.3e18, "total_tokens": 1.86e19},
    {"prompt_tokens": 20_000_000, "completion_tokens": 20_000_000, "total_tokens": 40_000_000},
)
"""Counts whose sum a signed 64-bit number cannot hold, and the largest that count as meant."""


class Miscounting:
    """Answers as another does, with counts of its own."""

    def __init__(self, answers: Answers) -> None:
        self._answers, self._usages = answers, itertools.cycle(USAGES)

    async def __call__(self, request: Request) -> Reply:
        said = self._answers(request)
        answer = said if isinstance(said, str | Reply) else await said
        reply = Reply(content=answer) if isinstance(answer, str) else answer
        return replace(reply, usage=next(self._usages))


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LLMServer]:
    """Serve what the rules answer, with impossible counts."""
    folder = tmp_path_factory.mktemp("answers")
    config = folder / "answers.yaml"
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    with (
        closing(OfflineAnswers(load_config(config), folder)) as answers,
        LLMServer(Miscounting(answers), latency_s=0.03).in_thread() as server,
    ):
        yield server


@pytest.fixture
def model(server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Return the server's model, at a price."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    price = {"input": 2, "output": 10}
    return {"model": "openai:rules", "base_url": server.url, "price": price}


@pytest.fixture
def config(shell: Shell, model: dict[str, object]) -> Path:
    """Write a config whose roles and target are asked over the wire."""
    target = {**model, "cutoff": "2025-07-01"}
    return shell.config({"models": {"default": model, "targets": [target]}})


def told(said: Said) -> int:
    return said.err.count(NOTE)


def test_a_killed_run_is_finished_and_looked_at(
    shell: Shell, config: Path, server: LLMServer
) -> None:
    run = shell.folder / "run"
    kill_after(server, 6, "refresh", config, "--limit", str(SAMPLES), "--run-dir", run)
    assert json.loads((run / "manifest.json").read_text())["status"] == "running"
    done = shell("resume", run, "--json")
    assert done.code == 0 and done.document["counts"]["failed"] == 0
    assert done.document["counts"]["total"] == SAMPLES
    assert told(done) == 1
    status = shell("status", run, "--json")
    assert status.code == 0
    assert shell("trace", run).code == 0
    assert shell("calls", "stats", "--json").code == 0
    for text in (status.out, (run / "report.html").read_text(), *pages_of(run)):
        assert not any(str(number) in text for number in (MOST, 2 * MOST, 2**62, 2**63))


def pages_of(run: Path) -> Iterator[str]:
    """Yield the pages that `view` shows of a run, as far as links lead.

    Of links to one path with the same query keys, which only sort and filter, one is followed.
    """
    client = TestClient(create_app([run]), base_url="http://localhost")
    seen, left = {"/"}, ["/"]
    kinds = set[tuple[str, ...]]()
    while left:
        answer = client.get(left.pop())
        assert answer.status_code == 200, answer.url
        yield answer.text
        found = {unescape(link) for link in re.findall(r'href="(/run/[^"#]+)', answer.text)}
        for link in sorted(found - seen):
            page, _, query = link.partition("?")
            if (kind := (page, *sorted(parse_qs(query)))) not in kinds:
                kinds.add(kind)
                left.append(link)
        seen |= found
    assert any("/sample/" in link for link in seen)


def kill_after(server: LLMServer, requests: int, *arguments: str | Path) -> None:
    """Start a command and kill it once the server was asked so often."""
    line = [sys.executable, "-m", "coreeval", *map(str, arguments)]
    process = subprocess.Popen(line, env=os.environ, stderr=subprocess.DEVNULL)
    try:
        while len(server.requests) < requests:
            assert process.poll() is None
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()


def test_each_command_that_asks_says_so_once(
    shell: Shell, config: Path, model: dict[str, object], copied: Path
) -> None:
    preview = shell("estimate", config, "--preview", "2")
    assert (preview.code, told(preview)) == (0, 1)
    asked = shell("evaluate", copied, "--target", json.dumps({**model, "cutoff": "2025-07"}))
    assert (asked.code, told(asked)) == (0, 1)


def test_so_do_the_detectors(shell: Shell, model: dict[str, object], server: LLMServer) -> None:
    server.answers = Miscounting(lambda _: "The answer is (A).")
    (shell.folder / "items").mkdir()
    items = item_config(shell)
    items.write_text(items.read_text().replace("http://192.0.2.1/v1", server.url))
    asked = shell("detect", "pcr", items)
    assert told(asked) == 1, asked
    tides(shell.folder)
    target = {**model, "cutoff": "2024-01"}
    detect = {"numleak": {"series": ["tides.yaml"], "probes": ["value"], "dates": 5}}
    series = {"name": "s", "models": {"targets": [target]}, "detect": detect}
    asked = shell("detect", "numleak", shell.write("s.yaml", json.dumps(series)))
    assert told(asked) == 1, asked
