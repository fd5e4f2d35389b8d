"""`coreeval view`: what it serves and prints, and what it says if it cannot."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from starlette.testclient import TestClient

from coreeval.errors import UsageError
from coreeval.viewer.app import COOKIE, create_app, open_server_socket
from tests.cli.conftest import shell  # noqa: F401 - a fixture
from tests.cli.kit import Shell
from tests.viewer.kit import PATIENCE_S, Finished


@contextmanager
def viewing(folder: Path, arguments: Sequence[str | Path]) -> Iterator[subprocess.Popen[str]]:
    """Start the command in a folder for the block, and end it by Ctrl-C."""
    command = [sys.executable, "-m", "coreeval", "view", "--no-browser", "--port", "0"]
    with subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, rest, errors) == (0, "", "")


def test_the_runs_of_a_workspace_are_served_until_ctrl_c(finished: Finished) -> None:
    with viewing(finished.workspace.root.parent, []) as process:
        assert process.stdout
        address = re.fullmatch(r"pages: +(http://127\.0\.0\.1:\d+/)\n", process.stdout.readline())
        assert address
        assert process.stdout.readline() == "end:     Ctrl-C\n"
        with urlopen(address[1], timeout=PATIENCE_S) as page:
            assert finished.key(finished.first) in page.read().decode()


def test_one_run_is_served_and_told_as_a_document(finished: Finished, tmp_path: Path) -> None:
    with viewing(tmp_path, [finished.second, "--json"]) as process:
        assert process.stdout
        lines = iter(process.stdout.readline, "}\n")
        document = json.loads("".join(lines) + "}")
        assert document["runs"] == [str(finished.second)]
        with urlopen(document["address"], timeout=PATIENCE_S) as page:
            assert f'/run/{finished.key(finished.first)}"' not in page.read().decode()


def test_what_cannot_be_shown_is_one_message(
    shell: Shell,  # noqa: F811
    finished: Finished,
) -> None:
    nothing = shell("view", "--no-browser")
    assert nothing.code == 2
    assert "no runs found" in nothing.err
    assert "coreeval demo" in nothing.err
    (shell.folder / "empty").mkdir()
    no_run = shell("view", "empty", "--json")
    assert (no_run.code, no_run.error["kind"]) == (2, "run_state")
    with closing((taken := open_server_socket("127.0.0.1", 0)).listener):
        port = taken.listener.getsockname()[1]
        in_use = shell("view", finished.first, "--no-browser", "--port", str(port))
    assert in_use.code == 2
    assert in_use.err.startswith(f"error: port {port} is in use")


TOKEN = "a-long-token"
HERE = "http://127.0.0.1:7317"
STATIC = "/static/pages.css"


def client(**options: object) -> TestClient:
    """Return a client of an app without runs; nothing is followed unasked."""
    return TestClient(create_app([], **options), base_url=HERE, follow_redirects=False)  # type: ignore[arg-type]


@pytest.fixture
def guarded() -> Iterator[TestClient]:
    """Return a client of an app that asks for a token, as beyond loopback."""
    yield client(token=TOKEN, allowed_hosts={"pages.example", "*"})


@pytest.mark.parametrize("path", ["/", "/run/none", STATIC, "/static/none.css"])
def test_every_answer_lets_a_browser_do_nothing_inline_or_elsewhere(path: str) -> None:
    headers = client().get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"


def test_an_unknown_address_is_told_in_words() -> None:
    answer = client().get("/nothing")
    assert answer.status_code == 404
    assert "There is no such page." in answer.text


def test_no_page_has_anything_inline() -> None:
    text = client().get("/").text
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)
    assert re.findall(r'(?:src|href)="(?!/|#)', text) == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_but_reading_is_answered(method: str) -> None:
    answer = client().request(method, "/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("host", ["127.0.0.1:7317", "localhost", "LOCALHOST:1", "[::1]:7317"])
def test_loopback_is_served_by_its_names(host: str) -> None:
    assert client().get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.7", "", "[::2]"]
)
def test_another_name_for_this_machine_is_refused(host: str) -> None:
    assert client().get("/", headers={"host": host}).status_code == 421


def test_beyond_loopback_bare_addresses_are_served_and_strange_names_are_not(
    guarded: TestClient,
) -> None:
    known = {"cookie": f"{COOKIE}={TOKEN}"}
    answers = {
        host: guarded.get("/", headers={"host": host, **known}).status_code
        for host in ("10.0.0.7:80", "[fe80::1]", "pages.example", "evil.example")
    }
    assert answers.pop("evil.example") == 421
    assert set(answers.values()) == {200}


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", f"?token={TOKEN}x", "?token=é"])
def test_without_the_token_nothing_is_told(guarded: TestClient, query: str) -> None:
    for path in ("/", STATIC):
        answer = guarded.get(path + query)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers


def test_the_token_goes_from_the_address_into_a_cookie(guarded: TestClient) -> None:
    answer = guarded.get(f"/run/x/samples?sort=-usd&token={TOKEN}&text=a%26b")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/run/x/samples?sort=-usd&text=a%26b"
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert guarded.get("/").status_code == 200


def test_the_token_cannot_send_a_reader_elsewhere(guarded: TestClient) -> None:
    answer = guarded.get(f"http://10.0.0.7//evil.example/?token={TOKEN}")
    assert answer.headers["location"] == "/evil.example/"


def test_loopback_asks_for_no_token_and_other_addresses_do() -> None:
    with closing((here := open_server_socket("127.0.0.1", 0)).listener):
        assert here.token is None
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", here.address)
    with closing((there := open_server_socket("127.0.0.2", 0)).listener):
        assert len(there.token or "") >= 32
        assert f"?token={there.token}" in there.address
        assert "*" in there.allowed_hosts


def test_a_port_in_use_is_told_with_what_to_do() -> None:
    with closing((taken := open_server_socket("127.0.0.1", 0)).listener):
        port = taken.listener.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} is in use") as told:
            open_server_socket("127.0.0.1", port)
    assert "--port" in told.value.hint


def test_a_directory_without_a_run_is_told_of_and_the_others_are_shown(tmp_path: Path) -> None:
    reader = TestClient(create_app([tmp_path / "run"]), base_url=HERE)
    assert "not readable" in reader.get("/").text
    assert reader.get(f"/run/{tmp_path.name}.run").status_code == 404
