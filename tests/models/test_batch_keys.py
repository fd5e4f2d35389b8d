"""A server of batches that repeats the key: nothing of it is told, stored or shown."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from coreeval.models import close_models
from coreeval.models.batch_results import unknown_result
from coreeval.models.failures import CallFailure
from tests.models.batch_kit import both, echo, ids_of, just_now, open_batches, requests_of
from tests.models.conftest import KEY
from tests.support import batch_server
from tests.support.batch_server import BatchServer


@pytest.fixture
async def server() -> AsyncIterator[BatchServer]:
    async with BatchServer(echo).running() as server:
        assert isinstance(server, BatchServer)
        yield server
        await close_models()


@both
async def test_no_part_of_the_key_is_left_where_a_message_is_cut(
    server: BatchServer, speech: str
) -> None:
    batches = open_batches(server, speech)
    for cut in range(401 - len(KEY), 400):
        server.faults.page = " " * cut + KEY
        with pytest.raises(CallFailure) as caught:
            await batches.look("b-1")
        assert caught.value.message == "the response is not a batch: '***'"
        told = unknown_result(" " * cut + KEY, KEY)
        assert told.message == "the result is of an unknown kind: '***'"


@both
async def test_an_id_that_holds_the_key_is_not_taken(
    server: BatchServer, speech: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, requests = open_batches(server, speech), requests_of(server, speech, 1)
    original = getattr(batch_server, f"{speech}_batch")
    named = {"id": f"batch_{KEY}"}
    monkeypatch.setattr(batch_server, f"{speech}_batch", lambda batch: original(batch) | named)
    questions: list[Callable[[], Awaitable[object]]] = [
        lambda: batches.create("b-1", requests),
        lambda: batches.find("b-1", ids_of(requests), since=just_now()),
        lambda: batches.look(next(iter(server.batches))),
    ]
    for question in questions:
        with pytest.raises(
            CallFailure, match="the endpoint used the key as the name of a batch or file"
        ) as caught:
            await question()
        assert caught.value.kind == "unknown" and KEY not in str(vars(caught.value))
