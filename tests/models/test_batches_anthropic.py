"""Anthropic's message batches through the real SDK."""

import json
from collections.abc import AsyncIterator

import pytest

from coreeval.models import close_models
from coreeval.models.failures import CallFailure
from tests.models.batch_kit import (
    answers_of,
    custom_id,
    ids_of,
    just_now,
    open_batches,
    requests_of,
    run,
)
from tests.models.conftest import KEY
from tests.support.batch_records import named_error
from tests.support.batch_server import BatchServer
from tests.support.llm_server import empty_objects


@pytest.fixture
async def server() -> AsyncIterator[BatchServer]:
    async with BatchServer(empty_objects).running() as server:
        assert isinstance(server, BatchServer)
        yield server
        await close_models()


async def test_requests_are_sent_with_their_ids(server: BatchServer) -> None:
    requests = requests_of(server, "anthropic", 1, 2)
    state = await open_batches(server, "anthropic").create("b-1", requests)
    sent = server.batches[state.provider_id].items
    assert [(one.custom_id, one.body) for one in sent] == [
        (one.custom_id, json.loads(one.body)) for one in requests
    ]
    assert server.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
async def test_results_come_from_the_configured_origin(server: BatchServer, tail: str) -> None:
    batches = open_batches(server, "anthropic", base_url=f"{server.anthropic_url}{tail}")
    state = await run(batches, requests_of(server, "anthropic", 1))
    server.seen_paths.clear()
    assert set(await answers_of(batches, state)) == {custom_id(1)}
    assert server.seen_paths == [f"GET /v1/messages/batches/{state.provider_id}/results"]


async def test_a_request_that_is_not_valid_is_named(server: BatchServer) -> None:
    server.faults.bad_lines = [2]
    with pytest.raises(CallFailure, match=r"requests\.1\.params\.max_tokens") as caught:
        await open_batches(server, "anthropic").create(
            "b-1", requests_of(server, "anthropic", 1, 2)
        )
    assert (caught.value.kind, caught.value.billed) == ("rejected", False)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "prompt is too long", "too_long"),
        (400, "Your credit balance is too low", "quota"),
        (400, "Output blocked by content filtering policy", "declined"),
        (401, "invalid x-api-key", "credential"),
        (402, "billing", "quota"),
        (404, "model: nothing", "unknown"),
        (413, "too large", "rejected"),
        (429, "slow", "throttled"),
        (500, "broken", "transient"),
        (504, "overdue", "transient"),
        (529, "overloaded", "throttled"),
    ],
)
async def test_an_error_in_a_batch_is_of_the_kind_that_it_is_live(
    server: BatchServer, status: int, message: str, kind: str
) -> None:
    server.answers = lambda _request: named_error(status, message)
    batches = open_batches(server, "anthropic")
    read = await answers_of(batches, await run(batches, requests_of(server, "anthropic", 1)))
    failure = read[custom_id(1)]
    assert (failure.kind, failure.message) == (kind, message)
    assert failure.billed == (status == 504)


# -- a batch that was made unseen -----------------------------------------------------------------


async def test_while_a_batch_of_its_size_runs_nothing_is_told(server: BatchServer) -> None:
    server.faults.die_after_create = 1
    batches, requests = open_batches(server, "anthropic"), requests_of(server, "anthropic", 1, 2)
    with pytest.raises(CallFailure):
        await batches.create("b-1", requests)
    (made,) = server.batches
    with pytest.raises(CallFailure, match=f"may be batch {made}") as caught:
        await batches.find("b-1", ids_of(requests), since=just_now())
    assert (caught.value.kind, caught.value.billed) == ("transient", False)
    await batches.look(made)
    found = await batches.find("b-1", ids_of(requests), since=just_now())
    assert found is not None and found.provider_id == made


async def test_a_batch_of_another_size_is_not_it(server: BatchServer) -> None:
    batches = open_batches(server, "anthropic")
    await batches.create("other", requests_of(server, "anthropic", 1, 2, 3))
    asked = requests_of(server, "anthropic", 4, 5)
    assert await batches.find("b-1", ids_of(asked), since=just_now()) is None


async def test_an_earlier_batch_with_some_of_the_questions_is_not_it(server: BatchServer) -> None:
    batches = open_batches(server, "anthropic")
    await run(batches, requests_of(server, "anthropic", 1, 2, 3))
    server.faults.die_after_create = 1
    requests = requests_of(server, "anthropic", 3, 4, 5)  # 3 failed in the earlier one
    with pytest.raises(CallFailure):
        await batches.create("b-1", requests)
    made = list(server.batches)[-1]
    with pytest.raises(CallFailure, match=f"may be batch {made}"):
        await batches.find("b-1", ids_of(requests), since=just_now())
    await batches.look(made)
    found = await batches.find("b-1", ids_of(requests), since=just_now())
    assert found is not None and found.provider_id == made


@pytest.mark.parametrize("looks", [0, 3])
async def test_a_batch_that_is_recorded_is_not_it(server: BatchServer, looks: int) -> None:
    batches, requests = open_batches(server, "anthropic"), requests_of(server, "anthropic", 1, 2)
    state = await run(batches, requests, looks)
    known = {state.provider_id}
    assert await batches.find("b-2", ids_of(requests), since=just_now(), known=known) is None


@pytest.mark.parametrize(("asked", "total", "is_it"), [((1,), 2, True), ((1, 3), 2, False)])
async def test_requests_that_are_no_longer_known_do_not_hide_a_batch(
    server: BatchServer, asked: tuple[int, ...], total: int, is_it: bool
) -> None:
    batches = open_batches(server, "anthropic")
    await run(batches, requests_of(server, "anthropic", 1, 2))
    ids = ids_of(requests_of(server, "anthropic", *asked))
    found = await batches.find("b-1", ids, since=just_now(), total=total)
    assert (found is not None) == is_it


async def test_strange_results_do_not_hide_a_batch(server: BatchServer) -> None:
    server.faults.unknown_ids = True
    batches, requests = open_batches(server, "anthropic"), requests_of(server, "anthropic", 1, 2)
    state = await run(batches, requests)
    found = await batches.find("b-1", ids_of(requests), since=just_now())
    assert found is not None and found.provider_id == state.provider_id


async def test_there_are_no_files_to_delete(server: BatchServer) -> None:
    batches = open_batches(server, "anthropic")
    state = await run(batches, requests_of(server, "anthropic", 1))
    server.seen_paths.clear()
    await batches.delete_files(state)
    assert not server.seen_paths
