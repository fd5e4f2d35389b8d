"""The interface for batches of requests: what is sent, the state of a batch, and its answers.

The providers' implementations are in `openai_batches`, `anthropic_batches` and `batch_folder`.
"""

import re
import zlib
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, Protocol

from coreeval.models.failures import CallFailure

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


BatchPhase = Literal["running", "ended", "failed", "lost"]
"""`running`: validating, in progress, finalizing or being cancelled. `ended`: completed, expired or
cancelled, with results for all, some or none of the requests. `failed`: rejected as a whole by the
provider's validation, and not billed. `lost`: unknown to the provider."""
MOST_BATCH_REQUESTS: Final = 25_000
"""The most requests of one batch (own choice). The providers accept more: OpenAI 50,000
(https://developers.openai.com/api/docs/guides/batch), Anthropic 100,000
(https://platform.claude.com/docs/en/build-with-claude/batch-processing)."""
MOST_BATCH_BYTES: Final = 32 << 20
"""The most bytes of all request bodies in one batch: 32 MiB, so that it fits into memory compressed
(own choice). Each request adds fewer than 200 bytes. The providers accept more: OpenAI 200 MB,
Anthropic 256 MB (same pages)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchRequest:
    """One request of a batch, compressed, because a batch has many similar prompts."""

    custom_id: str
    """The call key: 64 hexadecimal digits."""
    packed: bytes
    """Its body, compressed with zlib."""

    @property
    def body(self) -> bytes:
        """The request body as JSON, the same as of a live request: `ChatModel.encode_request`."""
        return zlib.decompress(self.packed)


@dataclass(frozen=True, kw_only=True)
class BatchState:
    """The state of a batch."""

    provider_id: str
    """The provider's id of the batch."""
    phase: BatchPhase
    status: str
    """The provider's own name for the state."""
    total: int = 0
    """The number of requests; 0 until the provider has counted them."""
    succeeded: int = 0
    failed: int = 0
    """The number of requests that ended without an answer: by error, expiry or cancellation."""
    input_file: str = ""
    result_files: tuple[str, ...] = ()
    problem: str = ""
    """Why it failed: the validation errors with their lines, truncated if there are many."""
    is_queue_full: bool = False
    """Whether it failed because the account has reached its queue limit: see `QueueFull`."""
    created_at: datetime | None = None


class QueueFull(CallFailure):
    """The account has reached the provider's queue limit; a smaller or later batch may fit.

    Args:
        message: What the provider says.
    """

    def __init__(self, message: str) -> None:
        super().__init__("throttled", message)

    @property
    def retryable(self) -> bool:
        """False: the same batch is not accepted before others have ended."""
        return False


def lost_batch(provider_id: str, problem: str) -> BatchState:
    """Return the state of a batch that the provider does not know."""
    return BatchState(provider_id=provider_id, phase="lost", status="not found", problem=problem)


@dataclass(frozen=True, kw_only=True)
class BatchAnswer:
    """The outcome of one request."""

    custom_id: str
    outcome: "AIMessage | CallFailure | None"
    """None if it was not processed because the batch expired or was cancelled; it is not billed."""


class BatchEndpoint(Protocol):
    """Sends batches to one endpoint and never retries by itself.

    Every method raises `CallFailure` if a request fails, of the same kinds as a live request.
    Redirects are not followed, so the key is not sent to another origin.
    """

    most_requests: int
    """The most requests of one batch."""
    most_bytes: int
    """The most bytes of one batch: the sum of its request bodies."""
    absent_after_s: float
    """Seconds after an unconfirmed `create` from which a list without its batch proves that there
    is none; 0 if `find` rules out that it appears later."""

    async def read_clock(self) -> datetime:
        """Return the time by the provider's clock, to compare with its timestamps."""
        ...

    async def create(self, batch_id: str, requests: Sequence[BatchRequest]) -> BatchState:
        """Send a batch.

        Args:
            batch_id: Our own id of it, by which `find` finds it: letters, digits, `-` and `_`,
                64 at most.
            requests: Within the limits above, each `custom_id` once.

        Raises:
            CallFailure: it was not sent, or it is not known whether it was (`billed`: call `find`);
                `unsupported` if the endpoint does not support batches.
        """
        ...

    async def find(
        self,
        batch_id: str,
        requests: Collection[str],
        *,
        since: datetime,
        total: int | None = None,
        known: Collection[str] = (),
    ) -> BatchState | None:
        """Return the batch that an unconfirmed `create` made; None if it made none.

        None is proof: everything that the provider lists since `since` was read. Remains of an
        incomplete `create`, such as a file without a batch, are deleted.

        Args:
            batch_id: The id given to `create`.
            requests: The custom ids given to it.
            since: When it was called, by the provider's clock (`read_clock`).
            total: The original number of requests, if some are no longer known.
            known: Provider ids of recorded batches, which are not it.

        Raises:
            CallFailure: the request failed, or the batch cannot be identified yet.
        """
        ...

    async def look(self, provider_id: str) -> BatchState:
        """Return the state of a batch; `lost` if the provider does not know it."""
        ...

    async def cancel(self, provider_id: str) -> BatchState:
        """Cancel a batch and return its state; requests processed until then have results."""
        ...

    def read_answers(self, state: BatchState) -> AsyncIterator[BatchAnswer]:
        """Yield the answers of an ended batch in the provider's order.

        They may contain custom ids that were not sent, or the same id twice; requests of an expired
        or cancelled batch may be missing.

        Raises:
            CallFailure: the results cannot be read, or they are truncated; complete lines before
                that were yielded.
        """
        ...

    async def delete_files(self, state: BatchState) -> None:
        """Delete the batch's files at the provider; missing files are ignored."""
        ...


NO_BATCHES: Final = "the endpoint does not support batches"
_BATCH_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_requests(
    endpoint: BatchEndpoint, batch_id: str, requests: Sequence[BatchRequest]
) -> None:
    """Check the arguments of `create`.

    Raises:
        ValueError: the id has other characters or is too long; or there are no requests, too many,
            too large ones, or two with the same id.
    """
    check_batch_id(batch_id)
    size = sum(len(one.body) for one in requests)
    if not 0 < len(requests) <= endpoint.most_requests or size > endpoint.most_bytes:
        raise ValueError(f"{len(requests)} requests of {size} bytes are not a batch")
    if len({one.custom_id for one in requests}) < len(requests):
        raise ValueError("two requests of a batch have the same custom id")


def check_batch_id(batch_id: str) -> None:
    """Check a batch id of our own, which becomes part of file names.

    Raises:
        ValueError: it has characters other than letters, digits, `-` and `_`, or more than 64.
    """
    if not _BATCH_ID.fullmatch(batch_id):
        raise ValueError(f"{batch_id!r} is not a batch id")


def name_batch_files(batch_id: str) -> tuple[str, str, str]:
    """Return the names of a batch's files in a folder: requests, cancelled requests, results.

    Raises:
        ValueError: it is not a batch id.
    """
    check_batch_id(batch_id)
    return f"{batch_id}.jsonl", f"{batch_id}.cancelled.jsonl", f"{batch_id}.results.jsonl"
