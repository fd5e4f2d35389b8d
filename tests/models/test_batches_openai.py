"""OpenAI's batches through the real SDK: files, validation, metadata, and odd results."""

import json
from collections.abc import AsyncIterator

import pytest
from langchain_core.messages import AIMessage

from coreeval.models import close_models
from coreeval.models.batches import BatchState, QueueFull
from coreeval.models.failures import CallFailure
from coreeval.models.openai_batches import read_result
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


# -- the files ------------------------------------------------------------------------------------


async def test_the_file_is_in_the_documented_format(server: BatchServer) -> None:
    requests = requests_of(server, "openai", 1, 2)
    state = await open_batches(server, "openai").create("b-1", requests)
    file = server.files[state.input_file]
    assert (file.name, file.purpose) == ("coreeval-b-1.jsonl", "batch")
    lines = [json.loads(line) for line in file.content.decode().splitlines()]
    assert lines == [
        {
            "custom_id": one.custom_id,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": json.loads(one.body),
        }
        for one in requests
    ]
    assert server.batches[state.provider_id].metadata == {"coreeval_batch": "b-1"}


async def test_answers_and_errors_are_files_that_can_be_deleted(server: BatchServer) -> None:
    server.answers = lambda request: (
        named_error(400) if "bad" in json.dumps(request["messages"]) else "{}"
    )
    batches = open_batches(server, "openai")
    state = await run(batches, requests_of(server, "openai", 1, "bad", 2))
    assert len(state.result_files) == 2
    assert set(server.files) == {state.input_file, *state.result_files}
    read = await answers_of(batches, state)
    assert isinstance(read[custom_id(1)], AIMessage)
    assert read[custom_id("bad")].kind == "rejected"
    await batches.delete_files(state)
    assert not server.files
    await batches.delete_files(state)  # missing ones are fine


async def test_a_batch_of_errors_alone_has_one_file(server: BatchServer) -> None:
    server.answers = lambda _request: named_error(400)
    batches = open_batches(server, "openai")
    state = await run(batches, requests_of(server, "openai", 1, 2))
    assert (state.phase, state.failed, len(state.result_files)) == ("ended", 2, 1)
    assert len(await answers_of(batches, state)) == 2


async def test_an_upload_that_breaks_costs_nothing_and_its_file_is_found(
    server: BatchServer,
) -> None:
    batches, requests = open_batches(server, "openai"), requests_of(server, "openai", 1)
    await batches.create("other", requests)
    server.faults.die_after_upload = 1
    with pytest.raises(CallFailure) as caught:
        await batches.create("b-1", requests)
    assert not caught.value.billed and caught.value.retryable
    assert len(server.files) == 2
    assert await batches.find("b-1", ids_of(requests), since=just_now()) is None
    assert [one.name for one in server.files.values()] == ["coreeval-other.jsonl"]


# -- a batch that was made unseen -----------------------------------------------------------------


@pytest.mark.parametrize("no_metadata", [False, True])
async def test_it_is_found_by_metadata_or_by_its_file(
    server: BatchServer, no_metadata: bool
) -> None:
    server.faults.no_metadata, server.faults.die_after_create = no_metadata, 1
    batches, requests = open_batches(server, "openai"), requests_of(server, "openai", 1)
    with pytest.raises(CallFailure):
        await batches.create("b-1", requests)
    await batches.create("b-2", requests)
    found = await batches.find("b-1", ids_of(requests), since=just_now())
    assert found is not None and found.provider_id == next(iter(server.batches))
    assert found.phase == "running" and len(server.files) == 2


async def test_without_metadata_and_a_list_of_files_it_is_found_by_its_results(
    server: BatchServer,
) -> None:
    server.faults.no_metadata = server.faults.no_file_list = True
    batches, requests = open_batches(server, "openai"), requests_of(server, "openai", 1, 2)
    await run(batches, requests_of(server, "openai", 2, 3))
    assert await batches.find("b-1", ids_of(requests), since=just_now()) is None
    server.faults.die_after_create = 1
    with pytest.raises(CallFailure):
        await batches.create("b-1", requests)
    made = list(server.batches)[-1]
    with pytest.raises(CallFailure, match=f"may be batch {made}") as caught:
        await batches.find("b-1", ids_of(requests), since=just_now())
    assert (caught.value.kind, caught.value.billed) == ("transient", False)
    await batches.look(made)
    found = await batches.find("b-1", ids_of(requests), since=just_now())
    assert found is not None and found.provider_id == made


async def test_without_a_list_of_files_the_metadata_are_enough(server: BatchServer) -> None:
    server.faults.no_file_list = True
    batches, requests = open_batches(server, "openai"), requests_of(server, "openai", 1, 2)
    state = await batches.create("b-1", requests)
    found = await batches.find("b-1", ids_of(requests), since=just_now())
    assert found is not None and found.provider_id == state.provider_id
    assert await batches.find("b-2", ids_of(requests), since=just_now()) is None


# -- validation -----------------------------------------------------------------------------------


async def test_a_validation_that_fails_names_the_lines(server: BatchServer) -> None:
    server.faults.bad_lines = [2, 3]
    state = await run(open_batches(server, "openai"), requests_of(server, "openai", 1, 2, 3))
    assert (state.phase, state.status, state.result_files) == ("failed", "failed", ())
    assert state.problem == (
        "line 2: the request is refused: invalid_request; "
        "line 3: the request is refused: invalid_request"
    )
    assert not server.paid_ids


async def test_a_batch_that_is_too_much_for_the_queue_is_told_as_such(server: BatchServer) -> None:
    batches, requests = open_batches(server, "openai"), requests_of(server, "openai", 1, 2)
    server.faults.queue_full = "created"
    with pytest.raises(QueueFull, match="Enqueued token limit reached"):
        await batches.create("b-1", requests)
    assert not server.batches and not server.files
    server.faults.queue_full = "validated"
    state = await run(batches, requests)
    assert (state.phase, state.is_queue_full) == ("failed", True)
    assert state.problem.startswith("Enqueued token limit reached")


async def test_of_many_errors_as_many_are_told_as_there_is_room(server: BatchServer) -> None:
    server.faults.bad_lines = list(range(1, 101))
    requests = requests_of(server, "openai", *range(100))
    state = await run(open_batches(server, "openai"), requests)
    assert len(state.problem) < 2100
    told = state.problem.count("line ")
    assert state.problem.endswith(f"; and {100 - told} more")


# -- a line of results ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ({"code": "server_error", "message": "broken"}, "transient", "broken"),
        ({"code": "insufficient_quota", "message": "no credit"}, "quota", "no credit"),
        ({"code": 429, "message": f"slow, {KEY}"}, "throttled", "slow, ***"),
        ("a text", "transient", "a text"),
    ],
)
def test_an_error_without_a_response(error: object, kind: str, message: str) -> None:
    outcome = read_result({"custom_id": "a", "response": None, "error": error}, KEY)
    assert isinstance(outcome, CallFailure)
    assert (outcome.kind, outcome.message, outcome.billed) == (kind, message, False)


@pytest.mark.parametrize("code", ["batch_expired", "batch_cancelled"])
def test_what_was_not_processed_is_no_failure(code: str) -> None:
    error = {"code": code, "message": "This request could not be executed."}
    assert read_result({"response": None, "error": error}, KEY) is None


async def test_a_batch_that_failed_after_it_had_answered_has_ended(server: BatchServer) -> None:
    batches = open_batches(server, "openai")
    state = await run(batches, requests_of(server, "openai", 1))
    server.batches[state.provider_id].state = "failed"
    looked = await batches.look(state.provider_id)
    assert (looked.phase, looked.status) == ("ended", "failed")
    assert len(await answers_of(batches, looked)) == 1


async def test_the_id_of_a_file_is_no_path(server: BatchServer) -> None:
    state = BatchState(
        provider_id="b", phase="ended", status="completed", result_files=("x/../../v1/batches?",)
    )
    with pytest.raises(CallFailure):
        await answers_of(open_batches(server, "openai"), state)
    assert server.seen_paths == ["GET /v1/files/x/../../v1/batches?/content"]  # it was quoted
