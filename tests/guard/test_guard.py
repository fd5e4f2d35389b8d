"""The guard holds in this process and in those that tests start."""

import socket
import subprocess
import sys

import pytest

REFUSED = RuntimeError
"""Base of the guard's error: a test worker loads the guard under two names, with a class each."""
FAR = "192.0.2.1"
"""An address that is kept for documentation: nothing is there."""
ATTEMPT = f"import socket; socket.create_connection(('{FAR}', 80), timeout=30)"


def test_a_connection_beyond_this_machine_is_refused_at_once() -> None:
    with pytest.raises(REFUSED, match=rf"{FAR}.*stay on loopback"), socket.socket() as tcp:
        tcp.connect((FAR, 80))


def test_so_are_names_and_datagrams() -> None:
    with pytest.raises(REFUSED, match=r"example.*stay on loopback"):
        socket.getaddrinfo("api.example.com", 443)
    with pytest.raises(REFUSED, match=r"127.*stay on loopback"):
        socket.getaddrinfo("127.example.com", 443)
    with (
        pytest.raises(REFUSED, match=rf"{FAR}.*stay on loopback"),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.sendto(b"x", (FAR, 53))


def test_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname(), timeout=5) as client:
            assert client.getpeername() == server.getsockname()
        assert socket.getaddrinfo("localhost", 80)


def test_a_process_that_a_test_starts_is_guarded_too() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ATTEMPT], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 1
    assert "NetworkRefused" in done.stderr
