"""Responses without an end, over the sessions that SDKs are given."""

import pytest
import requests

from coreeval.tools.bounded_session import (
    BoundedAdapter,
    ResponseRejected,
    StraightSession,
    limit_request_time,
)
from tests.support.endless_server import Kind, endless
from tests.support.lures import bystander


def bounded(most_bytes: int = 1 << 20, most_parts: int = 9) -> StraightSession:
    session = StraightSession()
    adapter = BoundedAdapter(most_bytes=most_bytes, most_parts=most_parts, silent_s=20, most_s=20)
    session.mount("http://", adapter)
    return session


@pytest.mark.parametrize("kind", ["plain", "gzip", "deflate", "redirect", "error"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_response_without_end_is_not_read_on(kind: Kind, stream: bool) -> None:
    with (
        endless(kind) as url,
        bounded() as session,
        pytest.raises(ResponseRejected, match="more than 1 MiB"),
    ):
        session.post(url, data=b"x", stream=stream)


@pytest.mark.parametrize("kind", ["trickle", "slow head"])
def test_a_response_that_trickles_is_not_waited_for(kind: Kind) -> None:
    with (
        endless(kind) as url,
        bounded() as session,
        limit_request_time(0.3),
        pytest.raises(requests.ReadTimeout, match=r"more than 0\.3 s"),
    ):
        session.get(url, timeout=20)


def test_a_response_of_many_parts_is_rejected() -> None:
    class Answer(requests.Response):
        def iter_content(self, *_: object, **__: object) -> list[bytes]:  # type: ignore[override]
            return [b"[" + b"[]," * 10 + b"[]]"]

        def close(self) -> None:
            pass

    adapter = BoundedAdapter(most_bytes=99, most_parts=9, silent_s=1, most_s=1)
    with pytest.raises(ResponseRejected, match="more than 9 parts"):
        adapter._read(Answer())


def test_connections_are_used_again_and_answers_arrive() -> None:
    with bystander() as server, bounded() as session:
        for _ in range(3):
            answer = session.post(server.url, data=b"x", timeout=5)
            assert (answer.json(), answer.content) == ({}, b"{}")
        assert len(server.asked) == 3
