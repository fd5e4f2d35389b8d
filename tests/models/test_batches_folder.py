"""Batches in a folder, for vLLM's `run-batch`."""

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from coreeval.config import ModelConfig
from coreeval.models.batch_folder import BatchFolder
from coreeval.models.batches import BatchRequest, BatchState
from coreeval.models.failures import CallFailure
from tests.models.batch_kit import (
    answers_of,
    custom_id,
    ids_of,
    just_now,
    make_request,
    read_until_failure,
)

CONFIG = ModelConfig.model_validate({"model": "openai:org/m", "base_url": "http://127.0.0.1:9/v1"})


def requests_of(*texts: object) -> list[BatchRequest]:
    return [
        make_request(text, json.dumps({"model": "org/m", "messages": [{"content": text}]}).encode())
        for text in texts
    ]


def answer_line(text: object) -> str:
    """Return a line as vLLM writes it for an answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": f"a{text}"}}
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    body = {"id": "c", "model": "org/m", "choices": [choice], "usage": usage}
    response = {"status_code": 200, "request_id": "vllm-batch-1", "body": body}
    told = {"id": "vllm-1", "custom_id": custom_id(text), "response": response, "error": None}
    return json.dumps(told) + "\n"


def error_line(text: object, error: object) -> str:
    """Return a line as vLLM writes it for an error: beside a response without a body."""
    response = {"status_code": 400, "request_id": "vllm-batch-1", "body": None}
    told = {"id": "vllm-1", "custom_id": custom_id(text), "response": response, "error": error}
    return json.dumps(told) + "\n"


@pytest.fixture
def batches(tmp_path: Path) -> BatchFolder:
    return BatchFolder(tmp_path / "batches", CONFIG)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "batches" / "b-1.results.jsonl"


async def test_requests_are_written_and_the_status_says_what_to_run(
    batches: BatchFolder, tmp_path: Path
) -> None:
    state = await batches.create("b-1", requests_of(1, 2))
    file = tmp_path / "batches" / "b-1.jsonl"
    assert [path.name for path in file.parent.iterdir()] == ["b-1.jsonl"]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["custom_id"] for one in lines] == [custom_id(1), custom_id(2)]
    assert {one["url"] for one in lines} == {"/v1/chat/completions"}
    assert (state.phase, state.total, state.provider_id) == ("running", 2, "b-1")
    assert f"vllm run-batch -i {file} -o " in state.status
    assert state.status.endswith("--model org/m")


async def test_it_has_ended_when_each_request_has_its_whole_line(
    batches: BatchFolder, results: Path
) -> None:
    await batches.create("b-1", requests_of(1, 2))
    written = answer_line(1) + error_line(2, "it is too long")
    for size in (0, 10, len(answer_line(1)), len(written) - 1):
        results.write_text(written[:size])
        assert (await batches.look("b-1")).phase == "running"
    results.write_text(written)
    state = await batches.look("b-1")
    assert (state.phase, state.total, state.succeeded, state.failed) == ("ended", 2, 1, 1)
    read = await answers_of(batches, state)
    answer = read[custom_id(1)]
    assert isinstance(answer, AIMessage) and answer.text == "a1"
    assert answer.usage_metadata is not None and answer.usage_metadata["input_tokens"] == 7


@pytest.mark.parametrize(
    "error",
    [
        "response_format is not supported",
        {"error": {"message": "response_format is not supported", "code": 400}},
        {"message": "response_format is not supported", "code": 400},
    ],
)
async def test_an_error_is_what_it_is_live(
    batches: BatchFolder, results: Path, error: object
) -> None:
    await batches.create("b-1", requests_of(1))
    results.write_text(error_line(1, error))
    failure = (await answers_of(batches, await batches.look("b-1")))[custom_id(1)]
    assert (failure.kind, failure.refused, failure.billed) == ("unsupported", "method", False)
    assert "response_format is not supported" in failure.message


async def test_a_whole_line_that_is_no_json_hides_none_behind_it(
    batches: BatchFolder, results: Path
) -> None:
    await batches.create("b-1", requests_of(1, 2))
    results.write_text("half\n" + answer_line(1))
    state = await batches.look("b-1")
    assert (state.phase, state.succeeded) == ("ended", 1)
    read, failure = await read_until_failure(batches, state)
    assert [one.custom_id for one in read] == ["", custom_id(1)]
    assert failure is None


async def test_a_batch_is_found_by_its_file(batches: BatchFolder) -> None:
    requests = requests_of(1)
    with pytest.raises(CallFailure, match="the batch folder is missing"):
        await batches.find("b-1", ids_of(requests), since=just_now())
    await batches.create("b-2", requests)
    assert await batches.find("b-1", ids_of(requests), since=just_now()) is None
    made = await batches.create("b-1", requests)
    assert await batches.find("b-1", ids_of(requests), since=just_now()) == made


async def test_cancelling_puts_the_requests_away_and_keeps_whole_results(
    batches: BatchFolder, results: Path
) -> None:
    state = await batches.create("b-1", requests_of(1, 2))
    results.write_text(answer_line(1) + answer_line(2)[:50])
    cancelled = await batches.cancel(state.provider_id)
    assert (cancelled.phase, cancelled.status) == ("ended", "cancelled")
    assert set(await answers_of(batches, cancelled)) == {custom_id(1)}
    assert not (results.parent / "b-1.jsonl").exists()
    assert await batches.look("b-1") == cancelled
    await batches.delete_files(cancelled)
    assert not list(results.parent.iterdir())


async def test_what_has_no_results_is_cancelled_without_any(batches: BatchFolder) -> None:
    await batches.create("b-1", requests_of(1))
    assert await answers_of(batches, await batches.cancel("b-1")) == {}


async def test_files_are_deleted(batches: BatchFolder, results: Path) -> None:
    await batches.create("b-1", requests_of(1))
    results.write_text(answer_line(1))
    state = await batches.look("b-1")
    await batches.delete_files(state)
    assert not list(results.parent.iterdir())
    await batches.delete_files(state)


async def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CallFailure, match="the batch folder cannot be used") as caught:
        await BatchFolder(tmp_path / "file", CONFIG).create("b-1", requests_of(1))
    assert caught.value.kind == "unusable"


@pytest.mark.parametrize("batch_id", ["../b", "a/b", ""])
async def test_an_id_is_no_path(batches: BatchFolder, batch_id: str) -> None:
    with pytest.raises(ValueError, match="not a batch"):
        await batches.look(batch_id)


@pytest.mark.parametrize("leaves_mount_point", [False, True])
async def test_a_folder_that_is_not_there_proves_no_loss(
    batches: BatchFolder, results: Path, leaves_mount_point: bool
) -> None:
    await batches.create("b-1", requests_of(1))
    folder = results.parent
    away = folder.rename(folder.with_name("unmounted"))
    if leaves_mount_point:
        folder.mkdir()
    for act in (batches.look, batches.cancel):
        with pytest.raises(CallFailure, match="mount the folder or move it back") as caught:
            await act("b-1")
        assert caught.value.kind == "unusable"
    if leaves_mount_point:
        (folder / "nothing").touch()
        assert (await batches.look("b-1")).phase == "lost"
        return
    away.rename(folder)
    results.write_text(answer_line(1))
    state = await batches.look("b-1")
    folder.rename(away)
    with pytest.raises(CallFailure, match="is missing"):
        await batches.delete_files(state)
    away.rename(folder)
    await batches.delete_files(state)
    assert not list(folder.iterdir())


# -- what others put into the folder --------------------------------------------------------------


@pytest.mark.parametrize("name", ["b-1.jsonl", "b-1.results.jsonl"])
async def test_a_pipe_in_place_of_a_file_is_told_and_waited_for_by_nobody(
    batches: BatchFolder, results: Path, name: str
) -> None:
    await batches.create("b-1", requests_of(1))
    pipe = results.with_name(name)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    with pytest.raises(CallFailure, match=f"{name} is not a regular file") as caught:
        await batches.look("b-1")
    assert caught.value.kind == "unusable"
    if pipe == results:
        cancelled = BatchState(
            provider_id="b-1", phase="ended", status="cancelled", result_files=(name,)
        )
        read, failure = await read_until_failure(batches, cancelled)
        assert not read and failure is not None and failure.kind == "unusable"


@pytest.mark.parametrize("name", ["b-1.jsonl", "b-1.results.jsonl"])
async def test_a_line_without_end_is_not_held_in_memory(
    batches: BatchFolder, results: Path, name: str
) -> None:
    await batches.create("b-1", requests_of(1))
    with results.with_name(name).open("ab") as file:
        file.truncate(1 << 26)
    tracemalloc.start()
    try:
        assert (await batches.look("b-1")).phase == "running"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 22


async def test_of_repeated_and_foreign_results_each_request_counts_once(
    batches: BatchFolder, results: Path
) -> None:
    await batches.create("b-1", requests_of(1, 2))
    foreign = "".join(answer_line(f"foreign {number}") for number in range(5))
    results.write_text(answer_line(1) * 3 + foreign + error_line(2, "too long") + answer_line(2))
    state = await batches.look("b-1")
    assert (state.phase, state.total, state.succeeded, state.failed) == ("ended", 2, 1, 1)
