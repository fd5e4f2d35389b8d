"""The HTTP client of the SDKs: what goes over the wire, and what comes back."""

import gzip
import subprocess
import sys
from collections.abc import AsyncIterator

import httpx2
import pytest
from aiohttp import web

from coreeval.config import ModelConfig
from coreeval.errors import ModelUnusable
from coreeval.models import OutputSchema, Retry
from coreeval.models.http import HttpClient, encode_body
from coreeval.schema import Value
from coreeval.tools.stores.call_store import CallStore
from tests.models.conftest import KEY, Naps
from tests.support.exchanges import exchange
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
        content=encode_body(WORDS),
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


PROVIDERS = ["openai", "anthropic", "deepseek", "azure_openai"]
ASKED = [{"role": "user", "content": "a text of the benchmark"}]


class Answer(Value):
    label: str


async def _ask(config: ModelConfig, store: CallStore, naps: Naps) -> ModelUnusable:
    env = {config.key_variable: KEY}
    client = exchange(store, env=env, retry=Retry(sleep=naps.sleep)).open_client(
        config, "extractor"
    )
    with pytest.raises(ModelUnusable) as caught:
        await client.ask(ASKED, OutputSchema(Answer, name="answer"))
    return caught.value


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_prompt_stays_where_it_was_sent(
    server: LLMServer, store: CallStore, naps: Naps, provider: str, status: int
) -> None:
    async with LLMServer(script('{"label": "joy"}')).running() as other:
        there = {"Location": f"{other.url}/chat/completions"}
        server.answers = script(Reply(status=status, headers=there, body=""))
        url = server.url if provider in ("openai", "deepseek") else server.anthropic_url
        extra = {"api_version": "2026-01-01"} if provider == "azure_openai" else {}
        config = ModelConfig(model=f"{provider}:m", base_url=url, extra=extra, structured="text")
        error = await _ask(config, store, naps)
        assert other.requests == [] and other.keys == []
    assert f"it redirects (status {status}) to 127.0.0.1" in error.message


async def test_so_it_does_where_a_package_has_its_own_client(store: CallStore, naps: Naps) -> None:
    async def redirect(_request: web.Request) -> web.Response:
        headers = {"Location": f"{other.url}/chat/completions", "Connection": "close"}
        return web.Response(status=307, headers=headers)

    app = web.Application()
    app.router.add_post("/api/chat", redirect)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    async with LLMServer(script('{"label": "joy"}')).running() as other:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await _ask(ModelConfig(model="ollama:m", base_url=url, structured="text"), store, naps)
        assert other.requests == []
        await runner.cleanup()


# -- how many connections ------------------------------------------------------------------------

CONNECTIONS_ALLOWED = """
import resource
from coreeval.models.http import connections_allowed
print(connections_allowed(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("ulimit -n 256", "156 256"),
        ("ulimit -Sn 256; ulimit -Hn 1024", "924 1024"),
        ("ulimit -Sn 256", "0 4096"),
        ("ulimit -Sn 64; ulimit -Hn 64", "1 64"),
    ],
)
def test_the_limit_is_raised_and_what_is_left_is_told(limit: str, told: str) -> None:
    command = [
        "bash",
        "-c",
        f'{limit}; exec "$@"',
        "bash",
        sys.executable,
        "-c",
        CONNECTIONS_ALLOWED,
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == told
