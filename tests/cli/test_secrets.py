"""A key is nowhere but in the environment, whatever a server does with it."""

import base64
import contextlib
import gzip
import json
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from coreeval.config import load_config
from coreeval.models import PROVIDERS, Retry
from tests.cli.kit import CONFIG, Said, Shell
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import LLMServer, Reply, Request

KEYS = {
    "OPENAI_API_KEY": "sk-test/9f3A+qZ7=do-not-show-this-one",
    "ANTHROPIC_API_KEY": "sk-ant/77xQ+bW2=nor-this-one-either",
}
PIECE = 12
"""Characters of a key that are too many to show."""
ECHOING = [one for one in ("openai", "anthropic") if one in PROVIDERS]
HEADERS = ("x-ratelimit-remaining-requests", "x-request-id", "set-cookie", "location")


def forms(key: str) -> set[bytes]:
    """Return how a key may look where it was written down, its first and last part included."""
    parts = [part.encode() for part in (key, key[:PIECE], key[-PIECE:])]
    encoded = [base64.b64encode(b" " * shift + key.encode())[4:-4] for shift in range(3)]
    safe = [base64.urlsafe_b64encode(key.encode())[:-4], quote(key, safe="").encode()]
    return {*parts, *encoded, *safe, key.encode().hex().encode(), json.dumps(key)[1:-1].encode()}


def contents(path: Path) -> Iterator[bytes]:
    """Yield what a file holds, what is packed in it included."""
    raw = path.read_bytes()
    yield raw
    with contextlib.suppress(OSError, EOFError, zlib.error):
        yield gzip.decompress(raw)
    if raw.startswith(b"SQLite format 3\0"):
        yield from cells(path)


def cells(path: Path) -> Iterator[bytes]:
    """Yield every cell of a database, and what is packed in it."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        names = [name for (name,) in file.execute("SELECT name FROM sqlite_master")]
        for name in names:
            with contextlib.suppress(sqlite3.OperationalError):  # an index is no table
                for row in file.execute(f'SELECT * FROM "{name}"'):
                    yield from (cell for value in row for cell in unpacked(value))


def unpacked(value: object) -> Iterator[bytes]:
    """Yield a cell as bytes, and what it unpacks to."""
    raw = value if isinstance(value, bytes) else str(value).encode()
    yield raw
    for unpack in (zlib.decompress, gzip.decompress):
        with contextlib.suppress(OSError, EOFError, zlib.error):
            yield unpack(raw)


def places(folders: list[Path], said: list[Said]) -> list[str]:
    """Return where a key can be read."""
    wanted = {form for key in KEYS.values() for form in forms(key)}
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    found = [
        str(path) for path in files for held in contents(path) if any(one in held for one in wanted)
    ]
    words = [text for one in said for text in (one.out, one.err)]
    return found + [text for text in words if any(one in text.encode() for one in wanted)]


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the keys where keys belong; requests are sent again at once."""
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    hasty = partial(Retry, first_s=0.0, longest_s=0.0, jitter=lambda: 0.0)
    monkeypatch.setattr("coreeval.models.model_pool.Retry", hasty)


def test_the_search_finds_a_key_wherever_it_is(tmp_path: Path) -> None:
    key = KEYS["OPENAI_API_KEY"].encode()
    (tmp_path / "plain").write_bytes(b"x" + key)
    (tmp_path / "packed").write_bytes(gzip.compress(b"x" + key))
    (tmp_path / "coded").write_bytes(base64.b64encode(b"xx" + key + b"yyy"))
    with contextlib.closing(sqlite3.connect(tmp_path / "db")) as file:
        file.execute("CREATE TABLE t (c)")
        file.execute("INSERT INTO t VALUES (?)", (zlib.compress(b"x" + key),))
        file.commit()
    (tmp_path / "clean").write_bytes(b"sk-test")
    found = {Path(path).name for path in places([tmp_path], [])}
    assert found == {"plain", "packed", "coded", "db"}


# -- a server that fails and repeats the key ------------------------------------------------------


class Refuser(BaseHTTPRequestHandler):
    """Answers every request with its own key."""

    status, body = 401, "no"

    def do_POST(self) -> None:
        key = (self.headers.get("authorization") or self.headers.get("x-api-key") or "").split()[-1]
        self.rfile.read(int(self.headers["content-length"]))
        body = self.body.replace("KEY", key).encode()
        self.send_response(self.status, f"no {key}")
        for name in HEADERS:
            self.send_header(name, key)
        self.send_header("retry-after", "0")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def refusing(status: int, body: str) -> Iterator[str]:
    """Serve refusals inside the block; the URL is yielded."""
    handler = type("Handler", (Refuser,), {"status": status, "body": body})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join(10)


@pytest.mark.parametrize("provider", ECHOING)
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, '{"error": {"message": "Incorrect API key provided: KEY", "code": "KEY"}}'),
        (400, '{"error": {"message": "Authorization was KEY", "param": "KEY"}}'),
        (404, "<html>there is no /v1?key=KEY here</html>"),
        (500, '{"error": {"message": "KEY made us fail", "type": "KEY"}}'),
        (200, f"<html>{'.' * 56}KEY</html>"),
        (200, '{"error": {"message": "KEY"}}'),
    ],
)
def test_no_failure_shows_a_key(
    shell: Shell, keys: None, home: Path, provider: str, status: int, body: str
) -> None:
    with refusing(status, body) as url:
        config = shell.config({"models": {"default": {"model": f"{provider}:x", "base_url": url}}})
        role = ("--role", "extractor", "--limit", "1")
        said = [
            shell("--debug", "models", "check", config),
            shell("prompts", "try", config, *role, "--debug"),
            shell("refresh", config, "--limit", "1", "--run-dir", "run", "--debug"),
            shell("status", "run"),
            shell("trace", "run", "--json"),
        ]
    assert [one.code > 0 for one in said[:3]] == [True] * 3
    assert places([shell.folder, home], said) == []


# -- a server that works and repeats the key ------------------------------------------------------


class Echo:
    """The rules' answers, each with the key in its words, its model's name and its headers.

    The first request for each shape gets prose with the key, so that it is asked again.
    """

    def __init__(self, answers: OfflineAnswers) -> None:
        self._answers = answers
        self._seen: set[str] = set()

    async def __call__(self, request: Request) -> Reply:
        key = KEYS["OPENAI_API_KEY"]
        headers = dict.fromkeys(HEADERS, key)
        shape = str(request.get("response_format"))
        if shape not in self._seen:
            self._seen.add(shape)
            return Reply(content=f"Your key is {key}, by the way.", headers=headers)
        said = await self._said(request)
        for name in {"reason", "sketch", "draft", "city"} & set(said):
            said[name] = f"{said[name]} {key}"
        message = {"content": json.dumps(said), "role": "assistant"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return Reply(body=json.dumps({"model": f"x {key}", "choices": [choice]}), headers=headers)

    async def _said(self, request: Request) -> dict[str, object]:
        messages = request["messages"]
        assert isinstance(messages, list)
        if "capital of France" in str(messages):  # what models check asks
            return {"city": "Paris"}
        answer = await self._answers(request | {"messages": messages[:2]})  # as it was asked first
        assert isinstance(answer, str), answer
        said: dict[str, object] = json.loads(answer)
        return said


def test_no_success_shows_a_key(shell: Shell, keys: None, home: Path) -> None:
    plain = shell.write("plain.yaml", yaml.safe_dump(CONFIG))
    answers = OfflineAnswers(load_config(plain), shell.folder / "news")
    echo = Echo(answers)
    with LLMServer(echo).in_thread() as server:
        model = {"model": "openai:x", "base_url": server.url}
        config = shell.config({"models": {"default": model}})
        said = [
            shell("refresh", config, "--limit", "2", "--run-dir", "run", "--debug"),
            shell("prompts", "try", config, "--role", "replacer", "--limit", "2", "--debug"),
            shell("models", "check", config, "--json", "--debug"),
            shell("trace", "run", "emotion/test/1", "--json"),
            shell("calls", "stats"),
            shell("calls", "export", "--model", "openai:x", "--out", "answers.jsonl"),
        ]
        assert f"Bearer {KEYS['OPENAI_API_KEY']}" in server.keys
    answers.close()
    assert [one.code for one in said] == [0] * len(said)
    assert "***" in (shell.folder / "answers.jsonl").read_text("utf-8")
    assert places([shell.folder, home], said) == []
