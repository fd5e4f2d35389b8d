"""Batches through the real SDKs: what both APIs have in common, and what goes wrong with both."""

import asyncio
import logging
import ssl
import traceback
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
import trustme
from langchain_core.messages import AIMessage

from coreeval.models import close_models
from coreeval.models.batches import MOST_BATCH_BYTES, MOST_BATCH_REQUESTS
from coreeval.models.failures import CallFailure
from tests.models.batch_kit import (
    OPTIONS,
    answers_of,
    asked,
    both,
    custom_id,
    echo,
    ids_of,
    just_now,
    live_outcome,
    make_request,
    open_batches,
    open_chat,
    read_until_failure,
    requests_of,
    run,
    told_of,
)
from tests.models.conftest import KEY
from tests.support.batch_server import BatchServer
from tests.support.proxy import Proxy


@pytest.fixture
async def server() -> AsyncIterator[BatchServer]:
    async with BatchServer(echo).running() as server:
        assert isinstance(server, BatchServer)
        yield server
        await close_models()


@both
async def test_a_batch_runs_and_its_answers_come_out_of_order(
    server: BatchServer, speech: str
) -> None:
    server.looks = 2
    batches, requests = open_batches(server, speech), requests_of(server, speech, 1, 2, 3)
    made = await batches.create("b-1", requests)
    assert made.phase == "running" and made.created_at is not None
    looked = await batches.look(made.provider_id)
    assert (looked.phase, looked.total, looked.succeeded) == ("running", 3, 0)
    ended = await batches.look(made.provider_id)
    assert (ended.phase, ended.total, ended.succeeded, ended.failed) == ("ended", 3, 3, 0)
    read, failure = await read_until_failure(batches, ended)
    assert failure is None
    assert [one.custom_id for one in read] == [custom_id(n) for n in (3, 2, 1)]
    assert [one.outcome.text for one in read if isinstance(one.outcome, AIMessage)] == [
        f'{{"label": "{n}"}}' for n in (3, 2, 1)
    ]
    assert server.counts()["most_paid_id"] == 1


@both
async def test_an_outcome_in_a_batch_is_what_it_is_live(server: BatchServer, speech: str) -> None:
    texts = ["a", "unsupported", "throttled", "overdue", "key"]
    batches = open_batches(server, speech)
    state = await run(batches, requests_of(server, speech, *texts))
    assert (state.succeeded, state.failed) == (2, 3)
    read = await answers_of(batches, state)
    chat = open_chat(server, speech)
    for text in texts:
        live = await live_outcome(chat, text)
        assert told_of(read[custom_id(text)]) == told_of(live), text
    assert read[custom_id("unsupported")].refused == "method"
    assert read[custom_id("overdue")].billed
    assert KEY not in read[custom_id("key")].text


@both
async def test_the_body_in_a_batch_is_the_body_sent_live(server: BatchServer, speech: str) -> None:
    await run(open_batches(server, speech), requests_of(server, speech, "same"))
    await open_chat(server, speech).answer(asked("same"), OPTIONS)
    assert list(server.paid_bodies.values()) == [2]


@both
async def test_the_server_may_count_seconds(server: BatchServer, speech: str) -> None:
    now = server.clock()
    server.seconds, server.clock = 60, lambda: now
    batches = open_batches(server, speech)
    state = await run(batches, requests_of(server, speech, 1))
    assert state.phase == "running"
    server.clock = lambda: now + 60
    assert (await batches.look(state.provider_id)).phase == "ended"


# -- what a caller has to see to ----------------------------------------------------------------


@both
@pytest.mark.parametrize("batch_id", ["", "a/b", "..", "x" * 65, "a b"])
async def test_an_id_has_plain_signs(server: BatchServer, speech: str, batch_id: str) -> None:
    with pytest.raises(ValueError, match="not a batch"):
        await open_batches(server, speech).create(batch_id, requests_of(server, speech, 1))


@both
async def test_limits_are_the_callers_to_keep(server: BatchServer, speech: str) -> None:
    batches = open_batches(server, speech)
    assert (batches.most_requests, batches.most_bytes) == (MOST_BATCH_REQUESTS, MOST_BATCH_BYTES)
    one = requests_of(server, speech, 1)[0]
    batches.most_requests = 1
    for requests in ([], requests_of(server, speech, 1, 2)):
        with pytest.raises(ValueError, match="bytes are not a batch"):
            await batches.create("b-1", requests)
    batches.most_requests = 2
    with pytest.raises(ValueError, match="same custom id"):
        await batches.create("b-1", [one, one])
    batches.most_bytes = len(one.body) - 1
    with pytest.raises(ValueError, match="bytes are not a batch"):
        await batches.create("b-1", [one])
    assert not server.seen_paths


@both
async def test_a_batch_of_many_megabytes_is_sent_and_read(server: BatchServer, speech: str) -> None:
    batches = open_batches(server, speech)
    body = open_chat(server, speech).encode_request(asked("x" * 40_000), OPTIONS)
    requests = [make_request(n, body) for n in range(500)]
    state = await run(batches, requests)
    assert state.succeeded == 500
    assert set(await answers_of(batches, state)) == ids_of(requests)


# -- nobody knows whether it was made -----------------------------------------------------------


@both
async def test_a_batch_that_was_made_unseen_is_found_and_paid_once(
    server: BatchServer, speech: str
) -> None:
    server.faults.die_after_create = 1
    batches, requests = open_batches(server, speech), requests_of(server, speech, 1, 2)
    with pytest.raises(CallFailure) as caught:
        await batches.create("b-1", requests)
    assert caught.value.billed and caught.value.retryable
    (made,) = server.batches
    await batches.look(made)
    found = await batches.find("b-1", ids_of(requests), since=just_now())
    assert found is not None and found.provider_id == made
    assert set(await answers_of(batches, found)) == ids_of(requests)
    assert server.counts()["most_paid_id"] == 1


@both
async def test_a_batch_that_was_not_made_is_proved_absent(server: BatchServer, speech: str) -> None:
    batches, requests = open_batches(server, speech), requests_of(server, speech, 1, 2)
    for number in range(5):
        others = requests_of(server, speech, f"{number}a", f"{number}b")
        state = await batches.create(f"other-{number}", others)
        await batches.look(state.provider_id)
    server.faults.die_before_create, server.faults.most_listed = 1, 2
    with pytest.raises(CallFailure) as caught:
        await batches.create("b-1", requests)
    assert caught.value.billed
    kept = len(server.files)
    assert await batches.find("b-1", ids_of(requests), since=just_now()) is None
    assert await batches.find("other-9", {"x"}, since=just_now()) is None
    if speech == "openai":
        assert len(server.files) == kept - 1, "the file without a batch was left"
    assert len(server.batches) == 5


@both
@pytest.mark.parametrize("oldest_first", [False, True])
async def test_no_older_batch_is_read_than_need_be_and_none_is_overlooked(
    server: BatchServer, speech: str, oldest_first: bool
) -> None:
    batches, requests = open_batches(server, speech), requests_of(server, speech, 1, 2)
    now = server.clock()
    for age in range(20, 0, -1):
        server.clock = lambda age=age: now - 3600 * age  # type: ignore[misc]
        old = await batches.create(f"old-{age}", requests_of(server, speech, f"{age}"))
        await batches.look(old.provider_id)
    server.clock = lambda: now
    made = await batches.create("b-1", requests)
    await batches.look(made.provider_id)
    server.faults.most_listed, server.faults.oldest_first = 3, oldest_first
    server.seen_paths.clear()
    found = await batches.find("b-1", ids_of(requests), since=just_now())
    assert found is not None and found.provider_id == made.provider_id
    server.seen_paths.clear()
    assert await batches.find("b-2", {"x"}, since=just_now()) is None
    path = "GET /v1/batches" if speech == "openai" else "GET /v1/messages/batches"
    assert server.seen_paths.count(path) == (7 if oldest_first else 1)


@both
@pytest.mark.parametrize("status", [400, 401, 413, 429])
async def test_a_refused_batch_was_not_made(server: BatchServer, speech: str, status: int) -> None:
    server.faults.create_status = [status]
    with pytest.raises(CallFailure) as caught:
        await open_batches(server, speech).create("b-1", requests_of(server, speech, 1))
    assert not caught.value.billed
    assert not server.batches and not server.files


@both
@pytest.mark.parametrize("status", [500, 502, 503, 408])
async def test_after_a_servers_error_nobody_knows(
    server: BatchServer, speech: str, status: int
) -> None:
    server.faults.create_status = [status]
    with pytest.raises(CallFailure) as caught:
        await open_batches(server, speech).create("b-1", requests_of(server, speech, 1))
    assert caught.value.billed and caught.value.retryable


@both
async def test_after_a_reply_that_is_no_batch_nobody_knows(
    server: BatchServer, speech: str
) -> None:
    server.faults.odd_reply = True
    with pytest.raises(CallFailure, match="the response is not a batch: '<html>") as caught:
        await open_batches(server, speech).create("b-1", requests_of(server, speech, 1))
    assert caught.value.billed and len(server.batches) == 1


@both
async def test_an_endpoint_may_have_no_batches(server: BatchServer, speech: str) -> None:
    server.faults.no_batches = True
    with pytest.raises(CallFailure, match="the endpoint does not support batches") as caught:
        await open_batches(server, speech).create("b-1", requests_of(server, speech, 1))
    assert (caught.value.kind, caught.value.billed) == ("unsupported", False)


@both
async def test_an_endpoint_may_not_be_there(server: BatchServer, speech: str) -> None:
    requests = requests_of(server, speech, 1)
    batches = open_batches(server, speech, base_url="http://127.0.0.1:9")
    with pytest.raises(CallFailure) as caught:
        await batches.create("b-1", requests)
    assert (caught.value.kind, caught.value.billed) == ("unreachable", False)


# -- how a batch may end --------------------------------------------------------------------------


@both
async def test_a_batch_may_never_end(server: BatchServer, speech: str) -> None:
    server.faults.never_ends = True
    state = await run(open_batches(server, speech), requests_of(server, speech, 1), looks=5)
    assert state.phase == "running"


@both
async def test_an_expired_batch_has_what_was_processed(server: BatchServer, speech: str) -> None:
    server.faults.expires_after = 1
    batches = open_batches(server, speech)
    state = await run(batches, requests_of(server, speech, 1, 2, 3))
    assert (state.phase, state.succeeded, state.failed) == ("ended", 1, 2)
    read = await answers_of(batches, state)
    assert read[custom_id(1)].text == '{"label": "1"}'
    assert (read[custom_id(2)], read[custom_id(3)]) == (None, None)
    assert server.paid_ids == {custom_id(1): 1}


@both
async def test_a_cancelled_batch_has_what_was_processed(server: BatchServer, speech: str) -> None:
    server.faults.cancels_after, server.faults.never_ends = 2, True
    batches = open_batches(server, speech)
    state = await run(batches, requests_of(server, speech, 1, 2, 3))
    cancelled = await batches.cancel(state.provider_id)
    assert cancelled.phase == "running"
    ended = await batches.look(state.provider_id)
    assert (ended.phase, ended.succeeded, ended.failed) == ("ended", 2, 1)
    read = await answers_of(batches, ended)
    assert [key for key, outcome in read.items() if outcome is None] == [custom_id(3)]
    again = await batches.cancel(state.provider_id)
    assert again == ended, "what has ended is not cancelled"


@both
async def test_a_batch_may_be_lost(server: BatchServer, speech: str) -> None:
    batches = open_batches(server, speech)
    state = await batches.create("b-1", requests_of(server, speech, 1))
    server.faults.lost = True
    assert (await batches.look(state.provider_id)).phase == "lost"
    assert (await batches.cancel(state.provider_id)).phase == "lost"


@both
@pytest.mark.parametrize(
    ("status", "kind"), [(429, "throttled"), (500, "transient"), (401, "credential")]
)
async def test_a_look_may_fail(server: BatchServer, speech: str, status: int, kind: str) -> None:
    batches = open_batches(server, speech)
    state = await batches.create("b-1", requests_of(server, speech, 1))
    server.faults.look_status = [status]
    with pytest.raises(CallFailure) as caught:
        await batches.look(state.provider_id)
    assert (caught.value.kind, caught.value.billed) == (kind, False)
    assert caught.value.retry_after == 3
    assert server.seen_looks == 1, "it was tried again"
    server.faults.die_on_look = 1
    with pytest.raises(CallFailure, match="the connection failed") as caught:
        await batches.look(state.provider_id)
    assert not caught.value.billed, "a look costs nothing"
    assert (await batches.look(state.provider_id)).phase == "ended"


# -- where the key goes ---------------------------------------------------------------------------


@both
async def test_no_redirect_is_followed(server: BatchServer, speech: str) -> None:
    batches = open_batches(server, speech)
    state = await batches.create("b-1", requests_of(server, speech, 1))
    async with BatchServer(echo).running() as elsewhere:
        assert isinstance(elsewhere, BatchServer)
        server.faults.redirect = elsewhere.anthropic_url
        with pytest.raises(CallFailure, match="it redirects") as caught:
            await batches.look(state.provider_id)
        assert caught.value.kind == "unknown"
        assert not elsewhere.seen_paths


@both
async def test_the_proxy_of_the_environment_is_taken(
    server: BatchServer, speech: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Proxy().running() as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert (await open_batches(server, speech).look("b-1")).phase == "lost"
        assert len(proxy.asked) == 1 and proxy.asked[0].endswith("/batches/b-1")
        await close_models()


@both
@pytest.mark.parametrize("trusted", [True, False])
async def test_certificates_are_checked(speech: str, trusted: bool, tmp_path: Path) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with BatchServer(echo).running(tls=tls) as server:
        assert isinstance(server, BatchServer)
        url = f"https://127.0.0.1:{server.port}/v1"
        ca_file = str(tmp_path / "ca.pem") if trusted else None
        batches = open_batches(server, speech, base_url=url, ca_file=ca_file)
        if trusted:
            assert (await batches.look("b-1")).phase == "lost"
        else:
            with pytest.raises(CallFailure, match="certificate is not trusted") as caught:
                await batches.look("b-1")
            assert caught.value.kind == "blocked"
            assert not server.seen_paths
        await close_models()


@both
async def test_no_failure_holds_the_key(
    server: BatchServer, speech: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.faults.create_status = [401]
    with pytest.raises(CallFailure) as caught:
        await open_batches(server, speech).create("b-1", requests_of(server, speech, 1))
    failure = caught.value
    assert failure.__cause__ is None
    assert "APIStatusError" not in "".join(traceback.format_exception(failure))
    assert KEY not in caplog.text
    assert set(server.keys) == {f"Bearer {KEY}"}


@both
async def test_a_response_takes_no_longer_than_it_may(
    server: BatchServer, speech: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = open_batches(server, speech, timeout_s=0.2)
    state = await run(batches, requests_of(server, speech, 1))

    async def slow(*_args: object) -> None:
        await asyncio.sleep(5)

    monkeypatch.setattr(server, "advance", slow)
    with pytest.raises(CallFailure, match=r"no answer within 0\.2 s|connection failed") as caught:
        await batches.look(state.provider_id)
    assert caught.value.kind == "transient"


@both
async def test_a_large_batch_is_sent_from_the_disk_and_not_held_in_memory(
    server: BatchServer, speech: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transport copies each piece that it is given, so that pieces are small."""
    sizes, lengths = list[int](), list[str | None]()

    async def receive(_transport: object, request: httpx2.Request) -> httpx2.Response:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        lengths.append(request.headers.get("content-length"))
        sizes.extend([len(piece) async for piece in request.stream])
        return httpx2.Response(200, json={"id": "file-1"}, request=request)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", receive)
    size, batches = 1 << 15, open_batches(server, speech)
    requests = [make_request(n, b'{"text": "%b"}' % (b"x" * size)) for n in range(200)]
    tracemalloc.start()
    try:
        with suppress(CallFailure):  # what came back is no batch
            await batches.create("b-1", requests)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) > 200 * size and max(sizes) <= 1 << 16
    assert lengths[0] is not None and int(lengths[0]) > 200 * size, "its length is told"
    assert peak < 0.2 * 200 * size
