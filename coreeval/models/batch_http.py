"""Batches over HTTP: a client for files and lists, and the meaning of failures.

The SDKs use a plain httpx2 client, because they upload forms and stream long responses.
"""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeVar

import httpx2
from pydantic import AfterValidator, BaseModel, Field, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from coreeval.models.batch_results import Outcome, read_in_thread
from coreeval.models.batches import NO_BATCHES, BatchAnswer, QueueFull
from coreeval.models.failures import CallFailure, clean_message
from coreeval.models.http import find_proxy, load_trusted_certificates, to_connection_failure
from coreeval.tools.http import read_bounded, to_same_host

if TYPE_CHECKING:
    import anthropic
    import openai

TRANSFER_S: Final = 600.0
"""The longest time to send a batch or fetch its results: 32 MiB at 0.5 Mbit/s (own choice)."""
MOST_RESULT_BYTES: Final = 2 << 30
"""The most bytes of a result file: 2 GiB on disk (own choice), 80 KiB for each of 25,000."""
MOST_PAGES: Final = 1_000
"""The most pages of a list that are read, each of 100 entries or more (own choice)."""
CLOCK_SLACK: Final = timedelta(minutes=10)
"""The largest difference between the clocks of a provider's machines (own choice)."""
_CONNECT_S: Final = 10.0
_PIECE_BYTES: Final = 1 << 16
NO_PATH: Final = (404, 405, 501)
"""How an endpoint says that a path does not exist."""
QUEUE_FULL: Final = "token_limit_exceeded"
"""OpenAI's code for more tokens in the open batches of a model than the account may have
(https://developers.openai.com/api/docs/guides/batch)."""

_HOLDS_KEY: Final = "holds_key"
_SHORTEST_KEY: Final = 8
"""The fewest characters of a key that is masked in ids: shorter keys are placeholders."""


def _refuse_key(told: str, info: ValidationInfo) -> str:
    secret = (info.context or {}).get("secret", "")
    if len(secret) >= _SHORTEST_KEY and secret in told:
        raise PydanticCustomError(_HOLDS_KEY, "it contains the key")
    return told


FileId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][!-~]{0,511}$"), AfterValidator(_refuse_key)]
"""A provider's id of a file or batch; it becomes part of a path and is stored and shown."""
Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")


class BatchHttpClient(httpx2.AsyncClient):
    """Sends requests to one origin, does not follow redirects, and limits the size of responses.

    Args:
        url: The endpoint.
        ca_file: PEM file of trusted certificate authorities; None for the system's.

    Raises:
        ConfigError: the named proxy or certificates cannot be used.
    """

    def __init__(self, url: str, ca_file: str | None) -> None:
        super().__init__(
            verify=load_trusted_certificates(ca_file), proxy=find_proxy(url), trust_env=False
        )
        self._check_origin = to_same_host(url)

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **_options: object
    ) -> httpx2.Response:
        """Return a response with its body; a successful streamed response is returned unread.

        Raises:
            httpx2.RequestError: there is no response, or its body is invalid or too long.
        """
        self._check_origin(request)
        if isinstance(request.stream, httpx2.AsyncByteStream):
            request.stream = _InPieces(request.stream)
        response = await super().send(request, stream=True, follow_redirects=False)
        return response if stream and response.is_success else await read_bounded(response)


class _InPieces(httpx2.AsyncByteStream):
    """A body in small pieces, because the transport would copy the unsent rest of a whole batch."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._body:
            for start in range(0, len(part), _PIECE_BYTES):
                yield part[start : start + _PIECE_BYTES]

    async def aclose(self) -> None:
        await self._body.aclose()


class Listed(Protocol):
    """An entry of a provider's list."""

    @property
    def id(self) -> str:
        """The provider's id."""
        ...

    @property
    def made_at(self) -> datetime | None:
        """When it was created."""
        ...


Entry = TypeVar("Entry", bound=Listed)
FetchPage = Callable[[str | None], Awaitable[tuple[Sequence[Entry], bool]]]
"""Returns the entries after the one with an id, and whether there may be more."""


class BatchWire:
    """Sends each of an SDK's requests once and converts errors to failures.

    Args:
        client: The SDK's client.
        secret: The key, which is masked in messages.
        to_failure: Returns the failure of an SDK's error.
        seconds: The longest time of a request without batch content.
        error_type: The base class of the SDK's errors.
        status_error: The SDK's error for a response that is not a success.
    """

    def __init__(
        self,
        client: "openai.AsyncOpenAI | anthropic.AsyncAnthropic",
        secret: str,
        to_failure: Callable[[Any, str], CallFailure],
        seconds: float,
        *,
        error_type: "type[openai.OpenAIError] | type[anthropic.AnthropicError]",
        status_error: "type[openai.APIStatusError] | type[anthropic.APIStatusError]",
    ) -> None:
        self._client, self._secret, self._to_failure = client, secret, to_failure
        self.seconds = seconds
        self._error_type, self._status_error = error_type, status_error

    async def call(self, request: Awaitable[T], *, seconds: float | None = None) -> T:
        """Return the response of a free request.

        Raises:
            CallFailure: it failed; never `billed`.
        """
        outcome = await self._attempt(request, seconds or self.seconds)
        if isinstance(outcome, CallFailure):
            raise _as_billed(outcome, billed=False)
        return outcome

    async def create(self, request: Awaitable[T], *, seconds: float | None = None) -> T:
        """Return the response of a request that creates a batch.

        Raises:
            CallFailure: it failed; `billed` if the batch may have been created anyway,
                `unsupported` if the endpoint does not support batches, and `QueueFull` if the
                account has reached its queue limit.
        """
        outcome = await self._attempt(request, seconds or self.seconds)
        if isinstance(outcome, CallFailure):
            raise _as_creation(outcome)
        return outcome

    async def _attempt(self, request: Awaitable[T], seconds: float) -> T | CallFailure:
        """Return the response or the failure, with no reference to the SDK's error."""
        try:
            async with asyncio.timeout(seconds):
                return await request
        except TimeoutError:
            return CallFailure("transient", f"no answer within {seconds:g} s", billed=True)
        except self._status_error as error:
            code = getattr(error, "code", None)
            date = error.response.headers.get("date")
            failure = self._to_failure(error, self._secret)
            return _StatusFailure(error.status_code, failure, code=code, date=date)
        except self._error_type as error:
            return self._to_failure(error, self._secret)
        except (httpx2.HTTPError, UnicodeError) as error:
            return to_connection_failure(error, self._secret)

    async def read_clock(self, path: str) -> datetime:
        """Return the time by the provider's clock: the Date header of any response.

        A server with a clock sends it (RFC 9110, 6.6.1); without one, this machine's time is used.

        Args:
            path: The path of the list of batches, below the client's base_url.

        Raises:
            CallFailure: there is no answer.
        """
        options: Any = {"params": {"limit": 1}, "timeout": make_timeout(self.seconds)}
        try:
            told = await self.call(self._client.get(path, cast_to=httpx2.Response, options=options))
            date = told.headers.get("date")
        except _StatusFailure as failure:
            date = failure.date
        return parse_time(date) or datetime.now(UTC)

    def parse(self, model: type[Model], body: bytes, *, billed: bool = False) -> Model:
        """Return a response's body as a model.

        Raises:
            CallFailure: it has another form, or it uses the key as an id (`unknown`).
        """
        try:
            return model.model_validate_json(body, context={"secret": self._secret})
        except ValidationError as error:
            holds_key = any(each["type"] == _HOLDS_KEY for each in error.errors())
        if holds_key:
            told = "the endpoint used the key as the name of a batch or file"
            raise CallFailure("unknown", told, billed=billed)
        start = clean_message(body.decode(errors="replace"), self._secret)[:80]
        told = f"the response is not a {model.__name__.strip('_').lower()}: {start!r}"
        raise CallFailure("transient", told, billed=billed)

    async def list_back_to(
        self, since: datetime, fetch: FetchPage[Entry], what: str
    ) -> AsyncIterator[Entry]:
        """Yield the entries of a list, back to a time or to its end.

        It ends at that time only if the list was seen to have the newest entries first.

        Raises:
            CallFailure: a request failed, or the list does not end.
        """
        after, last, falls, rises = None, None, False, False
        for _ in range(MOST_PAGES):
            entries, more = await fetch(after)
            for entry in entries:
                made = entry.made_at
                if last and made:
                    falls, rises = falls or made < last, rises or made > last
                last = made or last
                yield entry
            passed = last is not None and last < since - CLOCK_SLACK
            if not entries or not more or (passed and falls and not rises):
                return
            if entries[-1].id == after:
                break
            after = entries[-1].id
        raise CallFailure("transient", f"the endpoint's list of {what} does not end")

    async def read_answers(
        self, path: str, read: Callable[[dict[str, object]], Outcome]
    ) -> AsyncGenerator[BatchAnswer, None]:
        """Yield the answers in a result file, which is downloaded to disk first.

        Args:
            path: Its path below the client's base_url.
            read: Returns the outcome of a request from its line.

        Raises:
            CallFailure: it cannot be downloaded, it is truncated, or it has too many lines; the
                complete lines before that were yielded.
        """
        with tempfile.TemporaryFile() as file:
            broken = await self._download(path, file)
            file.seek(0)
            async for answer in read_in_thread(file, read, self._secret):
                yield answer
        if broken is not None:
            told = f"the results file ends early: {broken.message}"
            raise CallFailure("transient", clean_message(told, self._secret))

    async def _download(self, path: str, file: IO[bytes]) -> CallFailure | None:
        """Write a response to a file; return the failure if it is truncated."""
        response = await self.call(
            self._client.get(
                path,
                cast_to=httpx2.Response,
                options={
                    "headers": {"X-Stainless-Raw-Response": "stream", "Accept": "*/*"},
                    "timeout": make_timeout(TRANSFER_S),
                },
            ),
            seconds=TRANSFER_S,
        )
        try:
            return await self._attempt(_copy(response, file), TRANSFER_S)
        finally:
            await response.aclose()


class _StatusFailure(CallFailure):
    """A failure with an HTTP status."""

    def __init__(
        self, status: int, failure: CallFailure, *, code: object, date: str | None
    ) -> None:
        super().__init__(
            failure.kind,
            failure.message,
            retry_after=failure.retry_after,
            billed=failure.billed,
            refused=failure.refused,
        )
        self.status, self.code, self.date = status, code, date


def has_status(failure: CallFailure, *statuses: int) -> bool:
    """Return whether a failure has one of some HTTP statuses."""
    return isinstance(failure, _StatusFailure) and failure.status in statuses


def _as_billed(failure: CallFailure, *, billed: bool) -> CallFailure:
    if not isinstance(failure, _StatusFailure):
        return CallFailure(
            failure.kind, failure.message, retry_after=failure.retry_after, billed=billed
        )
    failure.billed = billed
    return failure


def _as_creation(failure: CallFailure) -> CallFailure:
    if has_status(failure, *NO_PATH):
        return CallFailure("unsupported", NO_BATCHES)
    if isinstance(failure, _StatusFailure) and failure.code == QUEUE_FULL:
        return QueueFull(failure.message)
    if isinstance(failure, _StatusFailure):
        return _as_billed(failure, billed=failure.status >= 500 or failure.status == 408)
    return failure


async def iter_file(file: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield a file's content from its beginning, in small pieces."""
    file.seek(0)
    while piece := file.read(_PIECE_BYTES):
        yield piece


async def _copy(response: httpx2.Response, file: IO[bytes]) -> None:
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > MOST_RESULT_BYTES:
            told = f"it has more than {MOST_RESULT_BYTES >> 30} GiB"
            raise httpx2.TransportError(told, request=response.request)
        file.write(piece)


def make_timeout(seconds: float) -> httpx2.Timeout:
    """Return the timeouts of the steps of a request with a total time limit."""
    return httpx2.Timeout(seconds, connect=min(_CONNECT_S, seconds))


_YEARS: Final = range(1970, 9999)
"""The years of usable times: outside them, adding a time zone or span could overflow."""


def parse_time(told: object) -> datetime | None:
    """Return a provider's time in UTC; None if it is invalid.

    Args:
        told: Seconds since 1970, ISO 8601 with an offset, or an HTTP date.
    """
    moment = None
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(told, str) and told.endswith("GMT"):
            moment = parsedate_to_datetime(told)
        elif isinstance(told, str):
            moment = datetime.fromisoformat(told)
        elif isinstance(told, int | float) and not isinstance(told, bool):
            moment = datetime.fromtimestamp(told, UTC)
    if moment is None or moment.tzinfo is None or moment.year not in _YEARS:
        return None
    return moment.astimezone(UTC)
