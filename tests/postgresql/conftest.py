"""Stores in PostgreSQL, on a server that the tests start: see `make test-extras`."""

import shutil
from collections.abc import Iterator

import pytest

from coreeval.tools.stores.places import URL_VARIABLE
from tests.graph.conftest import finished, make_lab, undisturbed  # noqa: F401 - fixtures
from tests.postgresql.server import Server, find_programs, make_server


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    """Return a running server that nothing happens to, so that it need not flush to the disk."""
    yield from _serve(fsync="off")


@pytest.fixture
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Return a running server that the test may end."""
    for server in _serve():
        monkeypatch.setenv(URL_VARIABLE, server.url)
        yield server


@pytest.fixture
def server(shared_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return the running server, which the environment names."""
    monkeypatch.setenv(URL_VARIABLE, shared_server.url)
    return shared_server


def _serve(**settings: object) -> Iterator[Server]:
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = make_server(programs)
    try:
        server.start(**settings)
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(server.folder)
