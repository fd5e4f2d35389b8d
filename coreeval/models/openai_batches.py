"""Batches of OpenAI and of compatible endpoints with files and batches.

A file of requests is uploaded, and a batch is created from it; answers and errors are returned in
one file each (https://developers.openai.com/api/docs/guides/batch).
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import IO, Any, Final
from urllib.parse import quote

import httpx2
import openai
from pydantic import BaseModel

from coreeval.config import ModelConfig
from coreeval.models.batch_http import (
    NO_PATH,
    QUEUE_FULL,
    TRANSFER_S,
    BatchHttpClient,
    BatchWire,
    FileId,
    has_status,
    make_timeout,
    parse_time,
)
from coreeval.models.batch_results import Outcome, unknown_result
from coreeval.models.batch_search import find_by_results
from coreeval.models.batches import (
    MOST_BATCH_BYTES,
    MOST_BATCH_REQUESTS,
    BatchAnswer,
    BatchPhase,
    BatchRequest,
    BatchState,
    check_requests,
    lost_batch,
)
from coreeval.models.failures import CallFailure, clean_message, kind_from_codes
from coreeval.models.model import is_count, share_client
from coreeval.models.openai import read_answer, to_failure

_ENDPOINT: Final = "/v1/chat/completions"
_OUR_ID: Final = "coreeval_batch"
"""The key of our own id in a batch's metadata."""
_ENDED: Final = ("completed", "expired", "cancelled")
_NOT_PROCESSED: Final = ("batch_expired", "batch_cancelled", "batch_canceled")
"""Codes of requests that were not processed before the batch ended."""
_MOST_TOLD: Final = 2_000
"""The most characters of validation errors."""


def write_batch_file(requests: Iterable[BatchRequest], file: IO[bytes]) -> None:
    """Write the requests as OpenAI's JSON Lines, which vLLM's `run-batch` also reads."""
    head = b'","method":"POST","url":"%b","body":' % _ENDPOINT.encode()
    for one in requests:
        file.write(b'{"custom_id":"%b%b%b}\n' % (one.custom_id.encode(), head, one.body))
    file.flush()  # the client reads the length from the file system


def read_result(fields: Mapping[str, Any], secret: str) -> Outcome:
    """Return the outcome of a request from its line in a result file.

    vLLM's `run-batch` reports an error beside a response without a body, OpenAI in the body.
    """
    response, error = fields.get("response"), fields.get("error")
    if isinstance(response, dict):
        status, body = response.get("status_code", 200), response.get("body")
        if isinstance(status, bool) or not isinstance(status, int):
            return unknown_result(response, secret)
        if body is None:
            body = error if isinstance(error, dict) and "error" in error else {"error": error}
        return _read_response(status, json.dumps(body).encode(), secret)
    detail = error if isinstance(error, dict) else {"message": error}
    if not detail.get("message") and not detail.get("code"):
        return unknown_result(fields, secret)
    if detail.get("code") in _NOT_PROCESSED:
        return None
    kind = kind_from_codes(detail.get("code"), detail.get("type")) or "transient"
    return CallFailure(kind, clean_message(str(detail.get("message")), secret))


def _read_response(status: int, body: bytes, secret: str) -> Outcome:
    """Parse a response as if it were live."""
    if 200 <= status < 300:
        return read_answer(body, (), secret)
    request = httpx2.Request("POST", f"https://batch{_ENDPOINT}")
    response = httpx2.Response(status, content=body, request=request)
    said = json.loads(body)
    detail = said.get("error", said) if isinstance(said, dict) else said
    message = detail.get("message") if isinstance(detail, dict) else None
    told = f"Error code: {status}"  # the words that the SDK has for it
    if isinstance(message, str) and message:
        told += f" - {message}"
    return to_failure(openai.APIStatusError(told, response=response, body=detail), secret)


class _File(BaseModel):
    id: FileId
    filename: Any = None
    created_at: Any = None

    @property
    def made_at(self) -> datetime | None:
        return parse_time(self.created_at)


class _Batch(BaseModel):
    """The parts of a batch that are read; servers differ in the rest."""

    id: FileId
    status: str
    created_at: Any = None
    input_file_id: FileId | None = None
    output_file_id: FileId | None = None
    error_file_id: FileId | None = None
    request_counts: Any = None
    metadata: Any = None
    errors: Any = None

    @property
    def made_at(self) -> datetime | None:
        return parse_time(self.created_at)


class _FileList(BaseModel):
    data: list[_File]
    has_more: bool | None = None


class _BatchList(BaseModel):
    data: list[_Batch]
    has_more: bool | None = None


class OpenAIBatches:
    """Batches of one endpoint; see `BatchEndpoint`.

    Args:
        url: The endpoint, with its /v1.
        secret: The key.
        config: The model's config.
    """

    most_requests = MOST_BATCH_REQUESTS
    most_bytes = MOST_BATCH_BYTES
    absent_after_s = 0.0

    def __init__(self, url: str, secret: str, config: ModelConfig) -> None:
        self._secret = secret

        def make() -> openai.AsyncOpenAI:
            http = BatchHttpClient(url, config.ca_file)
            return openai.AsyncOpenAI(base_url=url, api_key=secret, max_retries=0, http_client=http)

        self._client = share_client((OpenAIBatches, url, secret, config.ca_file), make)
        self._wire = BatchWire(
            self._client,
            secret,
            to_failure,
            config.timeout_s,
            error_type=openai.OpenAIError,
            status_error=openai.APIStatusError,
        )
        self._timeout = make_timeout(config.timeout_s)

    async def read_clock(self) -> datetime:
        """Return the time by the provider's clock."""
        return await self._wire.read_clock("/batches")

    async def create(self, batch_id: str, requests: Sequence[BatchRequest]) -> BatchState:
        """Upload the requests and create a batch from the file; see `BatchEndpoint.create`."""
        check_requests(self, batch_id, requests)
        with tempfile.TemporaryFile() as file:
            await asyncio.to_thread(write_batch_file, requests, file)
            file_id = await self._upload(_file_name(batch_id), file)
        try:
            told = await self._wire.create(
                self._client.batches.with_raw_response.create(
                    completion_window="24h",
                    endpoint="/v1/chat/completions",
                    input_file_id=file_id,
                    metadata={_OUR_ID: batch_id},
                    timeout=self._timeout,
                )
            )
        except CallFailure as failure:
            if not failure.billed:
                with suppress(CallFailure):  # the provider deletes it in time
                    await self._delete(file_id)
            raise
        batch = self._wire.parse(_Batch, told.content, billed=True)
        return self._to_state(batch)

    async def _upload(self, name: str, content: IO[bytes]) -> str:
        try:
            told = await self._wire.create(
                self._client.files.with_raw_response.create(
                    file=(name, content, "application/jsonl"),
                    purpose="batch",
                    timeout=make_timeout(TRANSFER_S),
                ),
                seconds=TRANSFER_S,
            )
        except CallFailure as failure:
            failure.billed = False  # a file without a batch costs nothing
            raise
        return self._wire.parse(_File, told.content).id

    async def find(
        self,
        batch_id: str,
        requests: Collection[str],
        *,
        since: datetime,
        total: int | None = None,
        known: Collection[str] = (),
    ) -> BatchState | None:
        """Return the batch with our id or from our file; see `BatchEndpoint.find`.

        If the endpoint lists no files, a batch without metadata is recognised by its results.
        """
        files = await self._find_files(_file_name(batch_id), since)
        unnamed = list[BatchState]()
        async for batch in self._wire.list_back_to(since, self._list_batches, "batches"):
            metadata = batch.metadata if isinstance(batch.metadata, dict) else {}
            if metadata.get(_OUR_ID) == batch_id or batch.input_file_id in (files or ()):
                return self._to_state(batch)
            if files is None and not metadata:
                unnamed.append(self._to_state(batch))
        for file_id in files or ():
            await self._delete(file_id)
        return await find_by_results(self, unnamed, requests, since=since, total=total, known=known)

    async def _find_files(self, name: str, since: datetime) -> set[str] | None:
        """Return the ids of the files with a name; None if the endpoint lists no files."""
        listed = self._wire.list_back_to(since, self._list_files, "files")
        try:
            return {one.id async for one in listed if one.filename == name}
        except CallFailure as failure:
            if has_status(failure, *NO_PATH):
                return None
            raise

    async def _list_files(self, after: str | None) -> tuple[Sequence[_File], bool]:
        told = await self._wire.call(
            self._client.files.with_raw_response.list(
                after=after or openai.omit,
                limit=1000,
                order="desc",
                purpose="batch",
                timeout=self._timeout,
            )
        )
        page = self._wire.parse(_FileList, told.content)
        return page.data, page.has_more is not False

    async def _list_batches(self, after: str | None) -> tuple[Sequence[_Batch], bool]:
        told = await self._wire.call(
            self._client.batches.with_raw_response.list(
                after=after or openai.omit, limit=100, timeout=self._timeout
            )
        )
        page = self._wire.parse(_BatchList, told.content)
        return page.data, page.has_more is not False

    async def look(self, provider_id: str) -> BatchState:
        """Return the state of a batch; see `BatchEndpoint.look`."""
        batches = self._client.batches.with_raw_response
        try:
            told = await self._wire.call(batches.retrieve(provider_id, timeout=self._timeout))
        except CallFailure as failure:
            if not has_status(failure, 404):
                raise
            return lost_batch(provider_id, failure.message)
        return self._to_state(self._wire.parse(_Batch, told.content))

    async def cancel(self, provider_id: str) -> BatchState:
        """Cancel a batch; see `BatchEndpoint.cancel`."""
        batches = self._client.batches.with_raw_response
        try:
            told = await self._wire.call(batches.cancel(provider_id, timeout=self._timeout))
        except CallFailure as failure:
            if has_status(failure, 404):
                return lost_batch(provider_id, failure.message)
            if failure.kind in ("rejected", "transient"):  # 409, 400: it has ended already
                state = await self.look(provider_id)
                if state.phase != "running" or state.status.startswith("cancel"):
                    return state
            raise
        return self._to_state(self._wire.parse(_Batch, told.content))

    async def read_answers(self, state: BatchState) -> AsyncGenerator[BatchAnswer, None]:
        """Yield the answers, and then the errors; see `BatchEndpoint.read_answers`."""
        read = 0
        for file_id in state.result_files:
            path = f"/files/{quote(file_id, safe='')}/content"
            async for answer in self._wire.read_answers(
                path, lambda fields: read_result(fields, self._secret)
            ):
                read += 1
                yield answer
        if read < state.succeeded:
            told = f"the results file ends early: it has {read} of {state.succeeded} answers"
            raise CallFailure("transient", told)

    async def delete_files(self, state: BatchState) -> None:
        """Delete the request, answer and error files; see `BatchEndpoint.delete_files`."""
        for file_id in (state.input_file, *state.result_files):
            if file_id:
                await self._delete(file_id)

    async def _delete(self, file_id: str) -> None:
        files = self._client.files.with_raw_response
        try:
            await self._wire.call(files.delete(file_id, timeout=self._timeout))
        except CallFailure as failure:
            if not has_status(failure, 404):
                raise

    def _to_state(self, batch: _Batch) -> BatchState:
        counts = batch.request_counts if isinstance(batch.request_counts, dict) else {}
        total, succeeded, failed = (
            int(counts[name]) if is_count(counts.get(name)) else 0
            for name in ("total", "completed", "failed")
        )
        files = tuple(one for one in (batch.output_file_id, batch.error_file_id) if one)
        return BatchState(
            provider_id=batch.id,
            phase=_find_phase(batch.status, files),
            status=clean_message(batch.status, self._secret),
            total=total,
            succeeded=succeeded,
            failed=failed,
            input_file=batch.input_file_id or "",
            result_files=files,
            problem=_describe_errors(batch.errors, self._secret),
            is_queue_full=any(one.get("code") == QUEUE_FULL for one in _list_errors(batch.errors)),
            created_at=batch.made_at,
        )


def _file_name(batch_id: str) -> str:
    return f"coreeval-{batch_id}.jsonl"


def _find_phase(status: str, files: tuple[str, ...]) -> BatchPhase:
    """Return the phase: a batch that failed after some answers counts as ended."""
    if status in _ENDED or (status == "failed" and files):
        return "ended"
    return "failed" if status == "failed" else "running"


def _list_errors(errors: object) -> list[dict[str, Any]]:
    """Return the validation errors in any of the servers' forms."""
    found = errors.get("data") if isinstance(errors, dict) else errors
    listed = found if isinstance(found, list) else []
    return [error if isinstance(error, dict) else {"message": error} for error in listed]


def _describe_errors(errors: object, secret: str) -> str:
    """Return the validation errors, each with its line."""
    listed, told = _list_errors(errors), ""
    for number, detail in enumerate(listed):
        said = clean_message(str(detail.get("message") or detail.get("code")), secret)
        line = detail.get("line")
        part = f"line {line}: {said}" if isinstance(line, int) else said
        if len(told) + len(part) > _MOST_TOLD:
            return f"{told}; and {len(listed) - number:,} more"
        told = f"{told}; {part}" if told else part
    return told
