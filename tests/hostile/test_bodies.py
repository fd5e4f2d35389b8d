"""Bodies without end: every client stops reading at its limit and says so, in bounded memory."""

import asyncio
import json
import socket
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from huggingface_hub import get_session
from langchain_core.messages import AIMessage

from coreeval.config import ModelConfig
from coreeval.config.schedule import HookConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.series import catalogue
from coreeval.models import close_models, open_model
from coreeval.models.failures import CallFailure
from coreeval.models.listing import check_listed
from coreeval.models.model import RequestOptions
from coreeval.releases.exports.hub import bounded_sessions
from coreeval.schedule.hooks import HookEvent, HookRunner
from coreeval.tools.gdelt.doc.replies import NoReply, open_wire
from coreeval.tools.gdelt.sync import downloads as mirrors
from coreeval.tools.http import BoundedClient, ResponseTooLong
from tests.support.endless_server import Kind, endless
from tests.support.llm_server import LLMServer, Reply, script

FORM = RequestOptions(schema={}, name="plain", method="text", max_tokens=9)
MOST_MEMORY = 96 << 20
"""Bytes that a refused response of 8 MiB may take at most, the server's own included."""
KINDS: tuple[Kind, ...] = ("plain", "gzip")


@contextmanager
def bounded_memory(most_bytes: int = MOST_MEMORY) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most_bytes
    finally:
        tracemalloc.stop()


async def asked(provider: str, url: str) -> AIMessage:
    config = ModelConfig(
        model=f"{provider}:m", base_url=f"{url}/v1", api_key_env="KEY", timeout_s=20.0
    )
    try:
        chat = open_model(config, {"KEY": "k"}).chat
        return await chat.ask([{"role": "user", "content": "?"}], FORM)
    finally:
        await close_models()


@pytest.mark.parametrize("kind", [*KINDS, "deflate", "error"])
@pytest.mark.parametrize("provider", ["openai", "anthropic", "deepseek"])
async def test_a_models_endless_answer_is_a_failed_call(provider: str, kind: Kind) -> None:
    with endless(kind) as url, bounded_memory(), pytest.raises(CallFailure) as caught:
        await asked(provider, url)
    assert caught.value.retryable and caught.value.billed
    assert "the response has more than 8 MiB" in caught.value.message


@pytest.mark.parametrize("provider", ["openai", "anthropic", "deepseek"])
@pytest.mark.parametrize("parts", [100_000, 2_700_000])
async def test_a_models_answer_of_many_parts_is_a_failed_call(provider: str, parts: int) -> None:
    lists = ",".join(["[]"] * parts)
    reply = Reply(body=f'{{"choices": [{lists}], "content": [{lists}]}}'[: 8 << 20])
    async with LLMServer(script(reply)).running() as server:
        url = server.url.removesuffix("/v1")
        with bounded_memory(), pytest.raises(CallFailure) as caught:
            await asked(provider, url)
    assert caught.value.retryable


@pytest.mark.parametrize("kind", [*KINDS, "redirect"])
def test_an_endless_list_of_models_tells_nothing(kind: Kind) -> None:
    with endless(kind) as url, bounded_memory():
        check_listed(ModelConfig(model="openai:m", base_url=url), url, "k")


@pytest.mark.parametrize("kind", [*KINDS, "redirect", "packed redirect"])
def test_an_endless_series_is_not_taken(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MOST_BYTES", 8 << 20)
    told = pytest.raises(DatasetError, match="more than 8 MiB")
    with endless(kind) as url, bounded_memory(), told as caught:
        catalogue.fetch(f"{url}/x.csv", hint="h")
    assert caught.value.where == f"{url}/x.csv" and caught.value.hint == "h"


@pytest.mark.parametrize("kind", KINDS)
async def test_an_endless_answer_of_doc_is_none(kind: Kind) -> None:
    with endless(kind) as url, bounded_memory():
        async with open_wire(url) as wire:
            with pytest.raises(NoReply, match="more than 8 MiB"):
                await wire.get({"query": "x"}, 20)


async def test_an_endless_file_of_the_mirror_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "LARGEST", 8 << 20)
    target = tmp_path / "file"
    with endless("plain") as url, bounded_memory():
        async with mirrors.new_session() as session:
            with pytest.raises(mirrors.FetchFailed, match="larger than 8 MB"):
                await mirrors.Mirror(url, session).fetch("x", target)
    assert not target.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_webhook_only_the_status_is_read(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    news = HookEvent(
        outcome="released",
        name="n",
        version="1",
        due_at="",
        run="",
        release="",
        counts={},
        trouble=None,
    )
    with endless(kind) as url, bounded_memory(16 << 20):
        monkeypatch.setenv("HOOK", url)
        [told] = HookRunner()([HookConfig.model_validate({"webhook_env": "HOOK"})], news, tmp_path)
    assert (told.tries, told.problem) == (1, "")


@pytest.mark.parametrize("kind", KINDS)
def test_the_hubs_client_is_bounded_while_it_is_lent(kind: Kind) -> None:
    own = get_session()
    refused = pytest.raises(ResponseTooLong)
    with endless(kind) as url, bounded_memory(), bounded_sessions(url), refused:
        get_session().get(url)
    assert type(get_session()) is type(own)


@pytest.mark.parametrize("kind", ["trickle", "slow head"])
def test_a_response_that_trickles_ends_as_well(kind: Kind) -> None:
    began, refused = time.monotonic(), pytest.raises(ResponseTooLong, match=r"more than 0\.5 s")
    with endless(kind) as url, BoundedClient(most_s=0.5) as client, refused:
        client.get(url)
    assert time.monotonic() - began < 5


def test_headers_that_trickle_through_a_proxy_end_as_well() -> None:
    refused = pytest.raises(ResponseTooLong, match=r"more than 0\.5 s")
    with endless("slow head") as url, BoundedClient(most_s=0.5, proxy=url) as client, refused:
        client.get("https://one.example/")


def test_a_server_that_says_nothing_ends_as_well() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        refused = pytest.raises(ResponseTooLong, match=r"more than 0\.3 s")
        with BoundedClient(most_s=0.3, timeout=None) as client, refused:
            client.get(url)


def test_the_time_that_a_request_takes_to_send_does_not_count() -> None:
    def slowly() -> Iterator[bytes]:
        for _ in range(8):
            time.sleep(0.1)
            yield b"x"

    refused = pytest.raises(ResponseTooLong, match="more than 8 MiB")
    with endless("plain") as url, BoundedClient(most_s=0.5) as client, refused:
        client.post(url, content=slowly())


@pytest.mark.parametrize("codec", ["punycode", "zlib", "bz2", "utf-7", "idna", "unicode_escape"])
@pytest.mark.parametrize("provider", ["openai", "anthropic", "deepseek"])
async def test_a_server_does_not_choose_the_codec(provider: str, codec: str) -> None:
    """60 kB of punycode take 0.26 s, and more than in proportion; zlib is no text."""
    body, kind = b"a-" + b"b" * 1_000_000, f"text/plain; charset={codec}"
    head = f"HTTP/1.1 400 X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    answers = script(Reply(raw=head.encode() + body))
    async with LLMServer(answers).running() as server, asyncio.timeout(10):
        with pytest.raises(CallFailure) as caught:
            await asked(provider, server.url.removesuffix("/v1"))
    assert len(json.dumps(caught.value.message)) < 1000
