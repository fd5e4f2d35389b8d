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

from coreeval.viewer.app import open_server_socket
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
            assert finished.key(finished.first) not in page.read().decode()


def test_what_cannot_be_shown_is_one_message(
    shell: Shell,  # noqa: F811
    finished: Finished,
) -> None:
    nothing = shell("view", "--no-browser")
    assert nothing.code == 2
    assert "there are no runs here" in nothing.err
    assert "coreeval demo" in nothing.err
    (shell.folder / "empty").mkdir()
    no_run = shell("view", "empty", "--json")
    assert (no_run.code, no_run.error["kind"]) == (2, "run_state")
    with closing((taken := open_server_socket("127.0.0.1", 0)).listener):
        port = taken.listener.getsockname()[1]
        in_use = shell("view", finished.first, "--no-browser", "--port", str(port))
    assert in_use.code == 2
    assert in_use.err.startswith(f"error: port {port} is in use")
