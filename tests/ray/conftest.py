"""Tests that need the extra ray: collected where it is installed (tests/conftest.py)."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.graph.conftest import lab, make_lab, undisturbed  # noqa: F401 - fixtures

CPUS = 2
STARTING_S = 90


@pytest.fixture(scope="session")
def ray_folder() -> Iterator[Path]:
    """Return the folder that Ray writes everything into; paths of sockets have to be short."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def cluster(home: Path, ray_folder: Path) -> Iterator[str]:
    """Start a Ray cluster of this machine alone, as a user would, and return its address.

    Ray gives its own processes a few seconds to answer each other, which a busy machine can miss.
    """
    for last in (False, False, True):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
            *(f"--num-cpus={CPUS}", f"--port={port}", f"--temp-dir={ray_folder}"),
            *("--include-dashboard=false", "--object-store-memory=100000000"),
        ]
        with (ray_folder / "said").open("w+") as said:
            head = subprocess.Popen(command, stdout=said, stderr=said, env=os.environ | MODES)
            try:
                problem = _wait_until_started(head, Path(said.name))
                assert not (problem and last), problem
                if not problem:
                    yield f"127.0.0.1:{port}"
                    return
            finally:
                head.send_signal(signal.SIGTERM)
                head.wait(30)


MODES = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYTHONPATH": str(Path(__file__).parents[2]),
}
"""Ray's own processes talk to this machine by its address, so that they go without the guard."""


def _wait_until_started(head: "subprocess.Popen[bytes]", said: Path) -> str:
    """Return why it did not start; empty if it did."""
    end = time.monotonic() + STARTING_S
    while time.monotonic() < end and head.poll() is None:
        if "Ray runtime started" in said.read_text():
            return ""
        time.sleep(0.2)
    return f"Ray did not start: {said.read_text()[-2000:]}"
