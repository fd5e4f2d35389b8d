"""No command sends a key to an endpoint before somebody has agreed, and it is remembered."""

import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from tests.cli.kit import Said, Shell
from tests.support.llm_server import LLMServer, empty_objects
from tests.support.tides import tides

KEY = "sk-do-not-send-4711"
THERE = "http://192.0.2.1/v1"
"""Nothing is there; a proxy on this machine answers for it."""
MODEL = {"model": "openai:m", "base_url": THERE, "api_key_env": "OTHER_KEY"}
PAIR = "OTHER_KEY to http://192.0.2.1"


class Proxy(ThreadingHTTPServer):
    """Answers 404 to whatever it is asked to pass on, and keeps the keys that came with it."""

    keys: list[str]


class Keeping(BaseHTTPRequestHandler):
    server: Proxy

    def do_GET(self) -> None:
        self.server.keys.append(self.headers["Authorization"] or "")
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with Proxy(("127.0.0.1", 0), Keeping) as server:
        server.keys = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("OTHER_KEY", KEY)
        yield server
        server.shutdown()
        thread.join()


def item_config(shell: Shell) -> Path:
    for split in ("train", "test"):
        row = {"id": "1", "input": "q", "output": "A", "options": ["a", "b"]}
        shell.write(f"items/{split}.jsonl", json.dumps(row))
    pcr = {"modification": "option_shuffle", "metric": "accuracy", "consistency": "option"}
    said = {
        "name": "items",
        "dataset": {"format": "jsonl", "path": "items"},
        "models": {"targets": [MODEL]},
        "detect": {"pcr": pcr},
    }
    return shell.write("items.yaml", yaml.safe_dump(said))


def series_config(shell: Shell) -> Path:
    tides(shell.folder)
    target = {**MODEL, "cutoff": "2024-01"}
    detect = {"numleak": {"series": ["tides.yaml"], "probes": ["value"], "dates": 5}}
    said = {"name": "s", "models": {"targets": [target]}, "detect": detect}
    return shell.write("series.yaml", yaml.safe_dump(said))


def commands(shell: Shell, run: Path) -> list[tuple[str | Path, ...]]:
    """Return a line for each command that sends something to a model."""
    (shell.folder / "items").mkdir()
    config = shell.config({"models": {"default": MODEL}, "schedule": "0 3 * * MON"})
    return [
        ("refresh", config),
        ("models", "check", config),
        ("estimate", config, "--preview", "2"),
        ("prompts", "try", config, "--role", "extractor"),
        ("evaluate", run, "--target", json.dumps(MODEL)),
        ("evaluate", run, "--target", json.dumps(MODEL), "--dry-run"),
        ("detect", "pcr", item_config(shell)),
        ("detect", "numleak", series_config(shell)),
    ]


def refused(said: Said) -> bool:
    return said.code == 2 and PAIR in said.err and "--trust-endpoints" in said.err


def test_no_command_sends_a_key_unasked(shell: Shell, proxy: Proxy, finished: Path) -> None:
    for command in commands(shell, finished):
        assert refused(said := shell(*command)), (command, said)
        assert KEY not in said.err + said.out
    config = shell.folder / "trial.yaml"
    looked = shell("schedule", "due", config)
    assert looked.code == 2 and PAIR in looked.err
    assert proxy.keys == []
    assert not (shell.folder / ".coreeval" / "runs").exists()


def test_validate_lists_the_pairs_and_sends_none(shell: Shell, proxy: Proxy) -> None:
    config = shell.config({"models": {"default": MODEL}})
    said = shell("validate", config)
    assert said.code == 0 and f"{PAIR}: " in said.out
    assert proxy.keys == []
    shell("models", "check", config, "--trust-endpoints")
    assert f"{PAIR}: remembered" in shell("validate", config).out
    assert proxy.keys and set(proxy.keys) == {f"Bearer {KEY}"}


def test_the_env_file_of_a_folder_names_no_proxy(
    shell: Shell, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = os.environ["HTTP_PROXY"]
    monkeypatch.delenv("HTTP_PROXY")
    shell.write(".env", f"HTTP_PROXY={theirs}\nSSL_CERT_FILE=/no/such/file\n")
    with LLMServer(empty_objects).in_thread() as server:
        server.models = ["m"]
        config = shell.config({"models": {"default": {**MODEL, "base_url": server.url}}})
        said = shell("models", "check", config)
        assert server.keys and set(server.keys) == {f"Bearer {KEY}"}
    assert "ignored: HTTP_PROXY, SSL_CERT_FILE" in said.err
    assert proxy.keys == []


def test_what_was_agreed_to_is_remembered(shell: Shell, proxy: Proxy) -> None:
    config = shell.config({"models": {"default": MODEL}})
    said = shell("models", "check", config, "--trust-endpoints")
    assert said.code == 1 and f"remembered in {shell.folder}/.coreeval/trusted.json" in said.err
    asked = len(proxy.keys)
    assert asked > 0
    assert shell("models", "check", config).code == 1
    assert len(proxy.keys) == 2 * asked
    other = shell.config({"models": {"default": {**MODEL, "base_url": "http://192.0.2.2/v1"}}})
    assert shell("models", "check", other).code == 2
    assert len(proxy.keys) == 2 * asked


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "sent"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_terminal_is_asked(
    shell: Shell, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, answer: str, sent: bool
) -> None:
    config = shell.config({"models": {"default": MODEL}})
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    said = shell("models", "check", config)
    assert "OTHER_KEY would be sent to http://192.0.2.1" in said.err
    assert (said.code, bool(proxy.keys)) == ((1, True) if sent else (2, False))


def test_a_run_that_goes_on_is_asked_too(shell: Shell, proxy: Proxy) -> None:
    config = shell.config({"models": {"default": MODEL}})
    assert shell("refresh", config, "--run-dir", "run", "--trust-endpoints", "--limit", "1").code
    sent = len(proxy.keys)
    (shell.folder / ".coreeval" / "trusted.json").unlink()
    assert refused(shell("resume", "run")) and refused(shell("retry", "run"))
    assert len(proxy.keys) == sent
