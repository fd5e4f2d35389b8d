"""Message batches of Anthropic and compatible endpoints.

A batch is created by one request that contains all others; its results are one JSON Lines file
(https://platform.claude.com/docs/en/build-with-claude/batch-processing). A batch has no metadata,
so a batch whose creation was not confirmed is recognised by the custom ids in its results.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import IO, Any, Final
from urllib.parse import quote

import anthropic
import httpx2
from pydantic import BaseModel

from coreeval.config import ModelConfig
from coreeval.models.anthropic import endpoint_url, read_answer, to_failure
from coreeval.models.batch_http import (
    TRANSFER_S,
    BatchHttpClient,
    BatchWire,
    FileId,
    has_status,
    iter_file,
    make_timeout,
    parse_time,
)
from coreeval.models.batch_results import Outcome, unknown_result
from coreeval.models.batch_search import find_by_results
from coreeval.models.batches import (
    MOST_BATCH_BYTES,
    MOST_BATCH_REQUESTS,
    BatchAnswer,
    BatchRequest,
    BatchState,
    check_requests,
    lost_batch,
)
from coreeval.models.failures import CallFailure, clean_message
from coreeval.models.model import is_count, share_client

_PATH: Final = "/v1/messages/batches"
_STATUS: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status of an error that is reported without one
(https://platform.claude.com/docs/en/api/errors)."""


def write_batch(requests: Iterable[BatchRequest], file: IO[bytes]) -> int:
    """Write the body of the request that creates a batch; return its length in bytes."""
    file.write(b'{"requests":[')
    for number, one in enumerate(requests):
        file.write(b"," if number else b"")
        file.write(b'{"custom_id":"%b","params":%b}' % (one.custom_id.encode(), one.body))
    file.write(b"]}")
    return file.tell()


class _Batch(BaseModel):
    """The parts of a batch that are read."""

    id: FileId
    processing_status: str
    created_at: Any = None
    archived_at: Any = None
    request_counts: dict[str, Any]

    @property
    def made_at(self) -> datetime | None:
        return parse_time(self.created_at)

    def count(self, *names: str) -> int:
        """Return how many requests are in one of some states."""
        said = [self.request_counts.get(name) for name in names]
        return sum(int(one) for one in said if one is not None and is_count(one))

    @property
    def total(self) -> int:
        return self.count("processing", "succeeded", "errored", "canceled", "expired")


class _BatchList(BaseModel):
    data: list[_Batch]
    has_more: bool | None = None


class AnthropicBatches:
    """Batches of one endpoint; see `BatchEndpoint`.

    Args:
        secret: The key.
        config: The model's config.
    """

    most_requests = MOST_BATCH_REQUESTS
    most_bytes = MOST_BATCH_BYTES
    absent_after_s = 900.0

    def __init__(self, secret: str, config: ModelConfig) -> None:
        self._secret = secret
        url = endpoint_url(config)

        def make() -> anthropic.AsyncAnthropic:
            return anthropic.AsyncAnthropic(
                base_url=url,
                api_key=secret,
                max_retries=0,
                http_client=BatchHttpClient(url, config.ca_file),
                default_headers={"x-api-key": secret} if config.base_url else None,
            )

        self._client = share_client((AnthropicBatches, url, secret, config.ca_file), make)
        self._wire = BatchWire(
            self._client,
            secret,
            to_failure,
            config.timeout_s,
            error_type=anthropic.AnthropicError,
            status_error=anthropic.APIStatusError,
        )
        self._timeout = make_timeout(config.timeout_s)

    async def read_clock(self) -> datetime:
        """Return the time by the provider's clock."""
        return await self._wire.read_clock(_PATH)

    async def create(self, batch_id: str, requests: Sequence[BatchRequest]) -> BatchState:
        """Create a batch, without our id; see `BatchEndpoint.create`."""
        check_requests(self, batch_id, requests)
        with tempfile.TemporaryFile() as file:
            size = await asyncio.to_thread(write_batch, requests, file)
            told = await self._wire.create(
                self._client.post(
                    _PATH,
                    cast_to=httpx2.Response,
                    content=iter_file(file),
                    options={
                        "headers": {"Content-Length": str(size)},
                        "timeout": make_timeout(TRANSFER_S),
                    },
                ),
                seconds=TRANSFER_S,
            )
        return self._to_state(self._wire.parse(_Batch, told.content, billed=True))

    async def find(
        self,
        batch_id: str,
        requests: Collection[str],
        *,
        since: datetime,
        total: int | None = None,
        known: Collection[str] = (),
    ) -> BatchState | None:
        """Return the batch whose results are of our requests; see `BatchEndpoint.find`."""
        listed = self._wire.list_back_to(since, self._list_batches, "batches")
        made = [self._to_state(batch) async for batch in listed]
        return await find_by_results(self, made, requests, since=since, total=total, known=known)

    async def _list_batches(self, after: str | None) -> tuple[Sequence[_Batch], bool]:
        told = await self._wire.call(
            self._client.messages.batches.with_raw_response.list(
                after_id=after or anthropic.omit, limit=100, timeout=self._timeout
            )
        )
        page = self._wire.parse(_BatchList, told.http_response.content)
        return page.data, page.has_more is not False

    async def look(self, provider_id: str) -> BatchState:
        """Return the state of a batch; see `BatchEndpoint.look`."""
        batches = self._client.messages.batches.with_raw_response
        try:
            told = await self._wire.call(batches.retrieve(provider_id, timeout=self._timeout))
        except CallFailure as failure:
            if not has_status(failure, 404):
                raise
            return lost_batch(provider_id, failure.message)
        return self._to_state(self._wire.parse(_Batch, told.http_response.content))

    async def cancel(self, provider_id: str) -> BatchState:
        """Cancel a batch; see `BatchEndpoint.cancel`."""
        batches = self._client.messages.batches.with_raw_response
        try:
            told = await self._wire.call(batches.cancel(provider_id, timeout=self._timeout))
        except CallFailure as failure:
            if has_status(failure, 404):
                return lost_batch(provider_id, failure.message)
            if failure.kind in ("rejected", "transient"):  # it has ended already
                state = await self.look(provider_id)
                if state.phase != "running" or state.status.startswith("cancel"):
                    return state
            raise
        return self._to_state(self._wire.parse(_Batch, told.http_response.content))

    async def read_answers(self, state: BatchState) -> AsyncGenerator[BatchAnswer, None]:
        """Yield the answers, from the batch's path: the URL that the server names is not used."""
        read = 0
        answers = self._wire.read_answers(
            f"{_PATH}/{quote(state.provider_id, safe='')}/results", self._read_result
        )
        async with aclosing(answers):
            async for answer in answers:
                read += 1
                yield answer
        if read < state.succeeded:
            told = f"the results file ends early: it has {read} of {state.succeeded} answers"
            raise CallFailure("transient", told)

    async def delete_files(self, state: BatchState) -> None:
        """Do nothing: a batch has no files, and the provider deletes its results after 29 days."""

    def _read_result(self, fields: Mapping[str, Any]) -> Outcome:
        """Return what became of a request, from its line in the results."""
        result = fields.get("result")
        if not isinstance(result, dict):
            return unknown_result(fields, self._secret)
        kind = result.get("type")
        if kind in ("expired", "canceled"):
            return None
        if kind == "succeeded":
            body = json.dumps(result.get("message")).encode()
            return read_answer(body, (), self._secret)
        if kind == "errored":
            return self._read_error(result.get("error"))
        return unknown_result(fields, self._secret)

    def _read_error(self, error: object) -> CallFailure:
        """Return the failure of an error as if it had come by itself, with its status."""
        detail = error.get("error") if isinstance(error, dict) else None
        kind = detail.get("type") if isinstance(detail, dict) else None
        if not isinstance(kind, str):
            return unknown_result(error, self._secret)
        response = httpx2.Response(
            _STATUS.get(kind, 500),
            content=json.dumps(error).encode(),
            request=httpx2.Request("POST", "https://batch/v1/messages"),
        )
        found = self._client._make_status_error_from_response(response)
        return to_failure(found, self._secret)

    def _to_state(self, batch: _Batch) -> BatchState:
        status = clean_message(batch.processing_status, self._secret)
        if batch.archived_at is not None:
            return lost_batch(
                batch.id, "the provider has archived the batch and deleted its results"
            )
        return BatchState(
            provider_id=batch.id,
            phase="ended" if status == "ended" else "running",
            status=status,
            total=batch.total,
            succeeded=batch.count("succeeded"),
            failed=batch.count("errored", "canceled", "expired"),
            created_at=batch.made_at,
        )
