"""34 mistakes that a newcomer makes: each message names the fault, the place and the way out."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from tests.cli.kit import CONFIG, Shell, config_text

Words = tuple[str, ...]
ROWS = '{"text": "so happy", "label": "joy"}\n'
HOPELESS = ROWS + 2 * '{"text": "x", "label": "rage"}\n'


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Return the address of a server with a list of models at /v1, and web pages elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listed = self.path == "/v1/models"
            page = "<!doctype html><title>Welcome</title>"
            body = (json.dumps({"data": [{"id": "gpt-oss"}]}) if listed else page).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_args: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def model(name: str, url: str) -> dict[str, object]:
    return {"models.default": {"model": name, "base_url": url}}


CONFIGS: dict[str, tuple[dict[str, object], Words]] = {
    "a wrong section": ({"models": None, "model": {"default": "offline"}},
                        ("unknown key 'model'", "wrong.yaml", "did you mean 'models'?")),
    "three at once": ({"tsak": "x", "run.concurrency": "many", "dataset.format": "tweetevil"},
                      ("3 mistakes", "'tsak'", "did you mean 'task'?", "run.concurrency",
                       "did you mean 'tweeteval'?", "coreeval docs config")),
    "no dataset": ({"dataset": None}, ("dataset: this key is required", "coreeval docs config")),
    "a number as words": ({"run.seed": "seven"}, ("run.seed", "whole number", "wrong.yaml")),
    "an unknown task": ({"task": "emotoin"}, ("'emotoin'", "did you mean 'emotion'?")),
    "no task file": ({"task": "mine.yaml"}, ("task file not found", "mine.yaml", "built in")),
    "no benchmark": ({"dataset.path": "gone"}, ("no such folder", "gone", "dataset.path")),
    "an unknown split": ({"dataset.split": "tset"}, ("'tset'", "test, train, val")),
    "no column": ({"dataset": {"format": "jsonl", "path": "columns.jsonl"}},
                  ("columns.jsonl", "text", "dataset.columns")),
    "unknown labels": ({"dataset": {"format": "jsonl", "path": "hopeless.jsonl"}},
                       ("2 of 3 rows", "'rage'", "line 2", "labels match")),
    "a benchmark in UTF-16": ({"dataset": {"format": "jsonl", "path": "utf16.jsonl"}},
                              ("UTF-16", "utf16.jsonl", "save it as UTF-8")),
    "no news folder": ({"knowledge.path": "gone"}, ("news folder", "gone", "knowledge.path")),
    "a window backwards": ({"knowledge.window": {"start": "2026-10-01", "end": "2026-01-01"}},
                           ("2026-10-01", "2026-01-01", "knowledge.window")),
    "a window without news": ({"knowledge.window": {"start": "2020-01-01", "end": "2020-02-01"}},
                              ("no news", "2025-08-07", "under knowledge:, write `window:")),
    "a model without a provider": ({"models.default": "gpt-x"}, ("'gpt-x'", "provider:name")),
    "an unknown provider": ({"models.default": "opnai:gpt-x"}, ("'opnai:gpt-x'", "openai:")),
    "no key": ({"models.default": "openai:gpt-x"}, ("OPENAI_API_KEY", ".env")),
    "a key in the config": ({"models.default": {"model": "openai:x", "api_key_env": "sk-abc12"}},
                            ("api_key_env", "NAME of an environment variable")),
    "an address without http": (model("openai:x", "localhost:9"),
                                ("base_url", "http://127.0.0.1:8000/v1")),
    "nobody listens": (model("openai:x", "http://127.0.0.1:9/v1"),
                       ("no server answers at this address", "127.0.0.1:9", "base_url")),
    "a web page": (model("openai:gpt-oss", "{endpoint}/docs"),
                   ("there is one at", "/v1", "base_url: ")),
    "an unknown model": (model("openai:gpt-os", "{endpoint}/v1"),
                         ("no model 'gpt-os'", "did you mean 'gpt-oss'?")),
    "an unknown target": ({"models.targets": ["offline:clasifier"]},
                          ("'offline:clasifier'", "offline:classifier")),
}  # fmt: skip
"""Mistakes in a config: changes of a good one, and words of what `coreeval validate` says."""
COMMANDS: dict[str, tuple[list[str], Words]] = {
    "no config": (["validate", "gone.yaml"], ("config file not found", "gone.yaml", "init")),
    "a config in UTF-16": (["validate", "utf16.yaml"], ("UTF-16", "utf16.yaml", "UTF-8")),
    "a tab in YAML": (["validate", "tab.yaml"], ("not YAML: line 2", "tab.yaml", "correct this")),
    "an unknown command": (["refersh", "good.yaml"], ("'refersh'", "refresh")),
    "a misspelt setting": (["refresh", "good.yaml", "--set", "run.sead=1"],
                           ("run.sead", "did you mean 'seed'?")),
    "no run": (["view", "empty"], ("not a run", "empty", "coreeval refresh")),
    "an unknown run": (["trace", "trail"],
                       ("no run 'trail'", ".coreeval/runs", "coreeval refresh")),
    "an unknown sample": (["trace", "{finished}", "emotion/tset/1"],
                          ("'emotion/tset/1'", "did you mean emotion/test/1?")),
    "no release": (["verify", "{finished}"], ("no release", "release.json", "coreeval release")),
    "nothing to follow": (["refresh", "good.yaml", "--from", "latest"],
                          ("no release", "coreeval release")),
    "news without dates": (["gdelt", "sync"], ("no news source", "gdelt sync", "--days N")),
}  # fmt: skip
"""Mistakes in a command line: its words, and words of the message."""


@pytest.fixture
def world(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Return a shell in a folder with a good config, and files that are not what they should be."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
    shell.write("good.yaml", config_text({}))
    shell.write("tab.yaml", "name: x\n\ttask: emotion\n")
    shell.write("columns.jsonl", '{"tweet": "so happy", "label": "joy"}\n')
    shell.write("hopeless.jsonl", HOPELESS)
    (shell.folder / "utf16.yaml").write_text(yaml.safe_dump(CONFIG), "utf-16")
    (shell.folder / "utf16.jsonl").write_text(ROWS, "utf-16")
    (shell.folder / "empty").mkdir()
    return shell


def test_there_are_34_mistakes() -> None:
    assert len(CONFIGS) + len(COMMANDS) == 34


@pytest.mark.parametrize("name", CONFIGS)
def test_a_mistake_in_a_config(
    world: Shell, endpoint: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, words = CONFIGS[name]
    if name == "no key":
        monkeypatch.delenv("OPENAI_API_KEY")
    text = config_text(changes).replace("{endpoint}", endpoint)
    said = world("validate", world.write("wrong.yaml", text))
    assert said.code == 2
    assert [word for word in words if word not in said.out + said.err] == [], said.out + said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_mistake_in_a_command(world: Shell, finished: Path, name: str) -> None:
    arguments, words = COMMANDS[name]
    said = world(*(word.replace("{finished}", str(finished)) for word in arguments))
    assert said.code == 2
    assert [word for word in words if word not in said.err] == [], said.err
    assert said.err.startswith("error: ") and "Traceback" not in said.err
