"""What is sent arrives, and whatever comes back is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreeval.config.remote_news import DocConfig
from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.doc.source import open_doc
from coreeval.tools.gdelt.doc.wire import NoReply, encoded, http
from coreeval.tools.http import MOST_BODY_BYTES
from tests.support.doc_server import NOTICE, DocServer, Fault, always
from tests.support.proxy import Proxy
from tests.tools.gdelt.doc.kit import asked, query, row

PARAMETERS = {"query": '"AT & T" C# 100% "x+y"', "mode": "artlist"}


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("AT&T", '"AT & T"'),
        ("C# language", '"C# language"'),
        ('Dwayne "The Rock" Johnson', '"Dwayne The Rock Johnson"'),
        ("100% Müller", '"100% Müller"'),
    ],
)
async def test_signs_of_names_arrive(name: str, term: str, tmp_path: Path) -> None:
    server = DocServer([row(f"Shares of {name} rise again today")])
    found = await asked(server, tmp_path, query(name))
    assert found.by_query["q"][0].title == f"Shares of {name} rise again today"
    (sent,) = server.asked
    assert sent["query"] == f"sourcelang:english {term}"
    assert (sent["mode"], sent["format"], sent["sort"]) == ("artlist", "json", "datedesc")
    assert (sent["startdatetime"], sent["enddatetime"]) == ("20260601000000", "20260629000000")
    assert sent["maxrecords"] == "250"
    assert server.agents[0].startswith("coreeval ")


@settings(deadline=None, max_examples=30)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_arrives_whole(text: str) -> None:
    server = DocServer([])

    async def send() -> None:
        async with server.running(), http(server.url) as wire:
            await wire.get({"query": text, "format": "json"}, 5)

    asyncio.run(send())
    assert server.asked == [{"query": text, "format": "json"}]


def test_a_gateway_keeps_its_own_parameters() -> None:
    url = encoded("http://gateway.example/doc?key=a%26b", PARAMETERS)
    assert str(url).startswith(
        "http://gateway.example/doc?key=a%26b&query=%22AT%20%26%20T%22%20C%23"
    )


@asynccontextmanager
async def replying(fault: Fault) -> AsyncIterator[DocServer]:
    async with DocServer([], always(fault)).running() as server:
        yield server


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault(hang=True), "no answer within"),
        (Fault(drop=True), "Server"),
    ],
)
async def test_no_reply_is_told(fault: Fault, told: str) -> None:
    async with replying(fault) as server, http(server.url) as wire:
        with pytest.raises(NoReply, match=told):
            await wire.get(PARAMETERS, 0.2)


async def test_nobody_there_is_told() -> None:
    async with DocServer([]).running() as server:
        gone = server.url
    async with http(gone) as wire:
        with pytest.raises(NoReply, match="Cannot connect"):
            await wire.get(PARAMETERS, 5)


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/json"])
async def test_the_reply_is_taken_as_it_is(kind: str) -> None:
    fault = Fault(body=NOTICE, content_type=kind, retry_after="7")
    async with replying(fault) as server, http(server.url) as wire:
        reply = await wire.get(PARAMETERS, 5)
    assert (reply.status, reply.body.decode(), reply.retry_after) == (200, NOTICE, "7")


async def test_an_endless_answer_is_cut_off() -> None:
    async with (
        replying(Fault(body="x" * (MOST_BODY_BYTES + 1))) as server,
        http(server.url) as wire,
    ):
        with pytest.raises(NoReply, match="more than 8 MiB"):
            await wire.get(PARAMETERS, 5)


async def test_requests_take_the_proxy_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Proxy(login="me:secret").running() as proxy, DocServer([]).running() as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
        async with http(server.url) as wire:
            assert (await wire.get(PARAMETERS, 5)).status == 200
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with http(server.url) as wire:
            assert (await wire.get(PARAMETERS, 5)).status == 200
    (request,) = proxy.asked
    assert request.startswith(f"GET {server.url}?query=%22AT%20%26%20T%22%20C%23")


async def test_a_refusing_proxy_is_told_of_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Proxy(login="you:other").running() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
        async with http("https://news.example/doc") as wire:
            with pytest.raises(NoReply, match="the proxy answered HTTP 407") as caught:
                await wire.get(PARAMETERS, 5)
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None


def test_a_proxy_that_cannot_be_spoken_to_is_an_error_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:secret@127.0.0.1:1080")
    with pytest.raises(KnowledgeError, match="socks5") as caught:
        open_doc(DocConfig(), tmp_path)
    assert "secret" not in str(caught.value)
