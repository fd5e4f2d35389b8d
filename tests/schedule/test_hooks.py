"""Hooks run as somebody has agreed to, a bounded number of times, and no secret is repeated."""

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from coreeval.config.schedule import HookConfig
from coreeval.schedule.hooks import (
    HookEvent,
    HookResult,
    HookRunner,
    accept_by_digest,
    accept_hooks,
    consent_digest,
    hooks_digest,
    require_consent,
)
from coreeval.schedule.plan import open_plan
from coreeval.tools.endpoints import EndpointPair
from coreeval.tools.trust import TrustRecord
from tests.schedule.kit import FakeSchedule

NEWS = HookEvent(
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


def told(hook: object, folder: Path) -> tuple[HookResult, list[float]]:
    """Tell one hook; return how that went, and the pauses between tries."""
    pauses = list[float]()
    [result] = HookRunner(sleep=pauses.append)([HookConfig.model_validate(hook)], NEWS, folder)
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
    assert said == HookResult("the webhook in HOOK_URL", 1, "")
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
        (f"http://a..b/{SECRET}", 1),
        (f"http://{'a' * 64}.example/{SECRET}", 1),
        (f"http://127.0.0.1:99999/{SECRET}", 1),
        (f"http://[/{SECRET}", 1),
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


@pytest.fixture(params=[b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-A: "])
def endless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Answer posts with this, then with a byte of a header or the same, for ten seconds."""
    start: bytes = request.param
    done = threading.Event()

    def answer(place: socket.socket) -> None:
        with place.accept()[0] as one:
            one.recv(1 << 16)
            one.sendall(start)
            for _ in range(500):
                try:
                    one.sendall(start if b"100" in start else b"a")
                except OSError:
                    return
                if done.wait(0.02):
                    return

    with socket.create_server(("127.0.0.1", 0)) as place:
        thread = threading.Thread(target=answer, args=(place,))
        thread.start()
        monkeypatch.setenv("HOOK_URL", f"http://127.0.0.1:{place.getsockname()[1]}/{SECRET}")
        yield
        done.set()
        thread.join()


@pytest.mark.usefixtures("endless")
def test_an_answer_that_never_ends_is_given_up(tmp_path: Path) -> None:
    said, _ = told({"webhook_env": "HOOK_URL", "tries": 1, "timeout_s": 0.3}, tmp_path)
    assert said.problem == "no answer within 0.3 s"


def test_a_hook_that_cannot_be_begun_keeps_no_other_waiting(tmp_path: Path) -> None:
    hooks = [HookConfig.model_validate(hook) for hook in ("touch one", "touch two")]
    said = HookRunner()(hooks, replace(NEWS, run="a\0b"), tmp_path)
    assert [(each.tries, each.problem) for each in said] == [
        (1, "the notification failed (ValueError)")
    ] * 2


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """Signals that come, as whoever told the hooks hears them."""
    numbers = list[int]()
    before = signal.signal(signal.SIGTERM, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


def stop(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_ends_a_command_with_its_children(tmp_path: Path, heard: list[int]) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    os.mkfifo(tmp_path / "begun")
    hook = HookConfig.model_validate("echo $$ > begun; sleep 60 & wait")
    found = list[int]()

    def stop_once_begun() -> None:
        found.append(int((tmp_path / "begun").read_text()))
        stop()

    thread = threading.Thread(target=stop_once_begun)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        HookRunner()([hook, hook], NEWS, tmp_path)
    thread.join()
    assert heard == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is handler
    with pytest.raises(ProcessLookupError):
        os.kill(found[0], 0)


def test_a_signal_ends_a_pause(tmp_path: Path, heard: list[int]) -> None:
    with pytest.raises(KeyboardInterrupt):
        HookRunner(sleep=stop)([HookConfig.model_validate("exit 1")], NEWS, tmp_path)
    assert heard == [signal.SIGTERM]


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path, heard: list[int]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    [said] = HookRunner(sleep=stop)([HookConfig.model_validate("exit 1")], NEWS, tmp_path)
    assert (said.tries, heard) == (3, [])


CRON = "0 3 * * MON"
HOOKED = {"cron": CRON, "hooks": {"success": ["touch ran"], "failure": ["touch ran"]}}


@pytest.fixture
def office(tmp_path: Path) -> FakeSchedule:
    return FakeSchedule(tmp_path / "office", schedule=HOOKED, consent=require_consent)


def accept(office: FakeSchedule) -> None:
    with open_plan(office.config) as plan:
        accept_hooks(plan)


def test_hooks_that_nobody_accepted_are_not_run_and_nothing_else_is_done(
    office: FakeSchedule,
) -> None:
    done = office.check_once()
    assert (done.ending, done.exit_code) == ("failed", 2)
    assert done.trouble and done.trouble.kind == "unaccepted_hooks"
    assert "touch ran" in done.trouble.message
    assert "schedule install" in done.trouble.hint and "--accept-hooks" in done.trouble.hint
    assert (office.did, office.told, office.state.begun) == ([], [], None)


def test_accepted_hooks_are_run_until_they_change(office: FakeSchedule) -> None:
    accept(office)
    assert office.check_once().ending == "released" and len(office.told) == 1
    for changed in (
        {"success": ["touch ran; rm -rf x"], "failure": ["touch ran"]},
        {"success": [{"command": "touch ran", "tries": 4}], "failure": ["touch ran"]},
        {"success": ["touch ran"], "gate": ["touch ran"]},
        {"success": [{"webhook_env": "OTHER"}]},
    ):
        office.schedule = {"cron": "*/5 * * * *", "hooks": changed}
        office.write()
        done = office.check_once()
        assert (done.exit_code, len(office.told)) == (2, 1)
        assert done.trouble and done.trouble.kind == "unaccepted_hooks"


def test_a_schedule_without_hooks_needs_no_consent(office: FakeSchedule) -> None:
    office.schedule = CRON
    office.write()
    assert office.check_once().ending == "released"


def test_a_look_that_finds_nothing_due_asks_for_nothing(office: FakeSchedule) -> None:
    accept(office)
    office.check()
    office.schedule = {**HOOKED, "hooks": {"success": ["another"]}}
    office.write()
    done = office.check_once()
    assert (done.ending, done.exit_code) == ("nothing", 0)


def test_hooks_of_another_name_or_workspace_are_others(
    office: FakeSchedule, tmp_path: Path
) -> None:
    accept(office)
    other = FakeSchedule(tmp_path / "other", schedule=HOOKED, consent=require_consent)
    assert other.check_once().exit_code == 2
    other.workspace.root.mkdir(parents=True, exist_ok=True)
    other.workspace.trust_file.write_bytes(office.workspace.trust_file.read_bytes())
    assert other.check_once().exit_code == 2


def test_hooks_of_another_folder_are_others_in_the_same_workspace(
    office: FakeSchedule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`touch ran`, or `./notify.sh`, is run in the config's folder."""
    monkeypatch.setenv("COREEVAL_HOME", str(tmp_path / "home"))
    accept(office)
    other = FakeSchedule(tmp_path / "other", schedule=HOOKED, consent=require_consent)
    with open_plan(office.config) as first, open_plan(other.config) as second:
        assert first.workspace.root == second.workspace.root
        assert hooks_digest(first) == hooks_digest(second)
    done = other.check_once()
    assert done.exit_code == 2 and other.told == []
    assert done.trouble and done.trouble.kind == "unaccepted_hooks"
    accept(other)
    for each in (other, office):
        with open_plan(each.config) as plan:
            require_consent(plan)


def test_an_endpoint_that_nobody_agreed_to_ends_the_look(
    office: FakeSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_KEY", "k")
    office.schedule = CRON
    office.write()
    model = "{model: 'openai:m', base_url: 'https://x.example/v1', api_key_env: OTHER_KEY}"
    text = office.config.read_text().replace("default: offline", f"default: {model}")
    office.config.write_text(text)
    done = office.check_once()
    assert done.trouble and done.trouble.kind == "untrusted_endpoint" and done.exit_code == 2
    assert office.did == []
    pair = EndpointPair("OTHER_KEY", "https://x.example")
    TrustRecord(office.workspace).trust_endpoints([pair])
    assert office.check_once().ending == "released"


def test_a_stated_digest_stands_for_hooks_and_endpoints(office: FakeSchedule) -> None:
    with open_plan(office.config) as plan:
        digest = consent_digest(plan)
        accept_by_digest(plan, ["0" * 64, hooks_digest(plan)])
    assert office.check_once().exit_code == 2
    with open_plan(office.config) as plan:
        accept_by_digest(plan, [digest])
    assert office.check_once().exit_code == 0
