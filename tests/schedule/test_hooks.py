"""Hooks are told what happened, a bounded number of times, and no secret is repeated."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from coreeval.config.schedule import HookConfig
from coreeval.schedule.hooks import News, Teller, Told

NEWS = News(
    outcome="released",
    name="n",
    version="2026.47",
    due_at="2026-11-16T03:00:00+00:00",
    run="/w/runs/n/1",
    release="/w/releases/n/2026.47",
    counts={"total": 20, "accepted": 19},
    trouble=None,
)
SECRET = "T0P-SECRET-4711"


class Server(HTTPServer):
    """Answers posts with these codes, the last one for ever."""

    codes: list[int]
    bodies: list[object]


class Answer(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(json.loads(body))
        codes = self.server.codes
        self.send_response(codes.pop(0) if len(codes) > 1 else codes[0])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Answer) as serving:
        serving.codes, serving.bodies = [200], []
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        port = serving.server_address[1]
        monkeypatch.setenv("HOOK_URL", f"http://127.0.0.1:{port}/{SECRET}")
        yield serving
        serving.shutdown()
        thread.join()


def told(hook: object, folder: Path) -> tuple[Told, list[float]]:
    """Tell one hook; return how that went, and the pauses between tries."""
    pauses = list[float]()
    [result] = Teller(sleep=pauses.append)([HookConfig.model_validate(hook)], NEWS, folder)
    return result, pauses


def test_a_command_finds_the_news_in_its_environment(tmp_path: Path) -> None:
    said, pauses = told('env | grep ^COREEVAL_ > "told $COREEVAL_VERSION"', tmp_path)
    assert (said.tries, said.problem, pauses) == (1, "", [])
    lines = (tmp_path / "told 2026.47").read_text().splitlines()
    found = dict(line.split("=", 1) for line in lines)
    assert found["COREEVAL_OUTCOME"] == "released"
    assert found["COREEVAL_RELEASE"] == "/w/releases/n/2026.47"
    assert json.loads(found["COREEVAL_COUNTS"]) == {"total": 20, "accepted": 19}


def test_a_command_that_fails_is_tried_again_with_growing_pauses(tmp_path: Path) -> None:
    said, pauses = told("echo x >> tries; test $(wc -l < tries) = 3", tmp_path)
    assert (said.tries, said.problem, pauses) == (3, "", [1.0, 2.0])
    said, pauses = told({"command": "exit 7", "tries": 2}, tmp_path)
    assert (said.tries, said.problem) == (2, "ended with exit code 7")


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    hook = {"command": "(sleep 0.6; touch alive) & sleep 60", "tries": 1, "timeout_s": 0.2}
    said, _ = told(hook, tmp_path)
    assert said.problem == "took longer than 0.2 s"
    threading.Event().wait(0.8)
    assert not (tmp_path / "alive").exists()


def test_a_webhook_gets_a_body(server: Server, tmp_path: Path) -> None:
    said, _ = told({"webhook_env": "HOOK_URL"}, tmp_path)
    assert said == Told("the webhook in HOOK_URL", 1, "")
    assert server.bodies == [json.loads(json.dumps(NEWS.__dict__))]


@pytest.mark.parametrize(
    ("codes", "tries", "problem"),
    [
        ([503, 429, 204], 3, ""),
        ([500], 3, "answered 500"),
        ([404], 1, "answered 404"),
        ([302], 1, "answered 302"),
    ],
)
def test_only_what_may_pass_is_tried_again(
    server: Server, tmp_path: Path, codes: list[int], tries: int, problem: str
) -> None:
    server.codes = codes
    said, _ = told({"webhook_env": "HOOK_URL"}, tmp_path)
    assert (said.tries, said.problem) == (tries, problem)
    assert len(server.bodies) == tries


@pytest.mark.parametrize(
    ("url", "tries"),
    [
        (f"http://127.0.0.1:1/{SECRET}", 3),
        (f"ftp://{SECRET}.example/", 1),
        (SECRET, 1),
        (f"http://127.0.0.1:{SECRET}/", 1),
        (f"https://u:{SECRET}@127.0.0.1:1/", 3),
    ],
)
def test_no_address_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    url: str,
    tries: int,
) -> None:
    monkeypatch.setenv("HOOK_URL", url)
    said, _ = told({"webhook_env": "HOOK_URL"}, tmp_path)
    assert said.tries == tries
    assert said.problem
    assert SECRET not in str(said) + "".join(capfd.readouterr())
