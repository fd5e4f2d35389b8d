"""The HTTP client of the SDKs: what goes over the wire, and what comes back."""

import gzip
from collections.abc import AsyncIterator

import httpx2
import pytest

from coreeval.models.http_client import HttpClient, body_of
from tests.support.llm_server import LLMServer, Reply, script

HEADERS = httpx2.Headers({"Authorization": "Bearer k", "Content-Type": "application/json"})
WORDS = {"model": "stub", "messages": [{"role": "user", "content": "fünf"}]}


@pytest.fixture
async def client(server: LLMServer) -> AsyncIterator[HttpClient]:
    client = HttpClient(server.url, None)
    yield client
    await client.aclose()


async def sent(client: HttpClient, server: LLMServer, **how: object) -> httpx2.Response:
    request = client.build_request(
        "POST",
        f"{server.url}/chat/completions",
        headers=HEADERS,
        content=body_of(WORDS),
        timeout=httpx2.Timeout(60, connect=9),
    )
    return await client.send(request, **how)


async def test_a_request_arrives_as_it_was_made(client: HttpClient, server: LLMServer) -> None:
    response = await sent(client, server)
    assert (response.status_code, response.headers["content-type"][:16]) == (
        200,
        "application/json",
    )
    assert server.requests == [WORDS] and server.keys == ["Bearer k"]
    assert "gzip" in server.headers[0]["accept-encoding"]


async def test_a_packed_answer_is_unpacked(client: HttpClient, server: LLMServer) -> None:
    packed = gzip.compress(b"the answer")
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    server.answers = script(Reply(raw=head + packed))
    assert (await sent(client, server)).content == b"the answer"


@pytest.mark.parametrize("asked", [{}, {"follow_redirects": True}, {"follow_redirects": False}])
async def test_no_redirect_is_followed(
    client: HttpClient, server: LLMServer, asked: dict[str, object]
) -> None:
    async with LLMServer(script("{}")).running() as other:
        there = {"Location": f"{other.url}/chat/completions"}
        server.answers = script(Reply(status=307, headers=there, body=""))
        assert (await sent(client, server, **asked)).status_code == 307
        assert other.requests == []


async def test_what_breaks_is_told_in_the_words_of_the_sdks(
    client: HttpClient, server: LLMServer
) -> None:
    server.answers = script(Reply(drop=True))
    with pytest.raises(httpx2.TransportError) as caught:
        await sent(client, server)
    assert caught.value.request.url.path == "/v1/chat/completions"
