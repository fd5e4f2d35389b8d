"""Batches of requests, as a dispatcher holds them: what is sent, where a batch stands, its answers.

The providers' own kinds are in `openai_batches`, `anthropic_batches` and `batch_folder`.
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
"""`running` is validating, in progress, finalizing or being cancelled; `ended` is completed,
expired or cancelled, with whatever has results in them; `failed` is refused as a whole by the
provider's validation, with nothing billed; `lost` is not known to the provider, or no longer."""
MOST_BATCH_REQUESTS: Final = 25_000
"""Requests of one batch (own choice). The providers take more: OpenAI 50,000
(https://developers.openai.com/api/docs/guides/batch), Anthropic 100,000
(https://platform.claude.com/docs/en/build-with-claude/batch-processing)."""
MOST_BATCH_BYTES: Final = 32 << 20
"""Bytes of the bodies of one batch: 32 MiB, so that it fits into memory compressed (own choice);
each takes fewer than 200 more in a batch. The providers take more: OpenAI 200 MB, Anthropic 256 MB
(the same pages)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchRequest:
    """One request of a batch, held compressed: a batch has many, and their prompts share much."""

    custom_id: str
    """The key of its call: 64 hexadecimal digits."""
    packed: bytes
    """Its body, compressed with zlib."""

    @property
    def body(self) -> bytes:
        """JSON, as the body of a live request: `ChatModel.encode_request`."""
        return zlib.decompress(self.packed)


@dataclass(frozen=True, kw_only=True)
class BatchState:
    """Where a batch stands."""

    provider_id: str
    """What the provider calls the batch."""
    phase: BatchPhase
    status: str
    """The provider's own word for it."""
    total: int = 0
    """Requests in the batch; 0 while the provider has not counted them."""
    succeeded: int = 0
    failed: int = 0
    """Requests that ended without an answer: with an error, or by expiry or cancellation."""
    input_file: str = ""
    result_files: tuple[str, ...] = ()
    problem: str = ""
    """Why it failed: every error of the validation with its line, as far as there is room."""
    is_queue_full: bool = False
    """Whether it failed because the account has too much queued: see `QueueFull`."""
    created_at: datetime | None = None


class QueueFull(CallFailure):
    """The account has too much queued at the provider, which takes a smaller batch, or one later.

    Args:
        message: What the provider says.
    """

    def __init__(self, message: str) -> None:
        super().__init__("throttled", message)

    @property
    def retryable(self) -> bool:
        """False: the same batch is not taken before others have ended."""
        return False


def lost_batch(provider_id: str, problem: str) -> BatchState:
    """Return the state of a batch that the provider does not know."""
    return BatchState(provider_id=provider_id, phase="lost", status="not found", problem=problem)


@dataclass(frozen=True, kw_only=True)
class BatchAnswer:
    """What became of one request."""

    custom_id: str
    outcome: "AIMessage | CallFailure | None"
    """None if it was not processed, since the batch expired or was cancelled: nothing is billed."""


class BatchEndpoint(Protocol):
    """Sends batches to one endpoint; sends no request twice by itself.

    Every method raises `CallFailure` for what goes wrong on the wire, of the same kinds as a live
    request. No redirect is followed, and the key goes to no other origin.
    """

    most_requests: int
    """Most requests of one batch."""
    most_bytes: int
    """Most bytes of one batch: the sum of the bodies of its requests."""
    absent_after_s: float
    """Seconds after a `create` that did not return until a list without its batch proves that there
    is none; 0 where `find` rules out that one is made later."""

    async def read_clock(self) -> datetime:
        """Return the time by the provider's clock, with which its own times are compared."""
        ...

    async def create(self, batch_id: str, requests: Sequence[BatchRequest]) -> BatchState:
        """Send a batch.

        Args:
            batch_id: Our own id of it, by which `find` finds it: letters, digits, `-` and `_`,
                64 at most.
            requests: Within the limits above, each `custom_id` once.

        Raises:
            CallFailure: it was not sent, or nobody knows whether it was (`billed`: ask `find`);
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
    ) -> BatchState | None:
        """Return the batch that a `create` which did not return has made; None if it made none.

        None is a proof: all that the provider lists back to `since` was read. What a `create` left
        half done, such as a file without a batch, is deleted.

        Args:
            batch_id: The id given to `create`.
            requests: The custom ids given to it.
            since: When it was called, by the provider's clock (`read_clock`).
            total: How many there were, if some of them are not known any more.

        Raises:
            CallFailure: the request failed; or it cannot be told yet which batch it is.
        """
        ...

    async def look(self, provider_id: str) -> BatchState:
        """Return where a batch stands; `lost` if the provider does not know it."""
        ...

    async def cancel(self, provider_id: str) -> BatchState:
        """Cancel a batch, and return where it stands: what was processed until then has results."""
        ...

    def read_answers(self, state: BatchState) -> AsyncIterator[BatchAnswer]:
        """Yield the answers of an ended batch one by one, in whatever order the provider has them.

        They may hold custom ids that were not sent, or the same one twice; requests of an expired
        or cancelled batch may be missing.

        Raises:
            CallFailure: the results cannot be read; or they end in the middle, after the whole
                lines before were yielded.
        """
        ...

    async def delete_files(self, state: BatchState) -> None:
        """Delete the files that the batch left at the provider; missing ones are no failure."""
        ...


NO_BATCHES: Final = "the endpoint does not support batches"
_BATCH_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_requests(
    endpoint: BatchEndpoint, batch_id: str, requests: Sequence[BatchRequest]
) -> None:
    """Check what a caller of `create` has to see to.

    Raises:
        ValueError: the id has other signs or is too long; there are no requests, too many or too
            large ones, or two of the same id.
    """
    check_batch_id(batch_id)
    size = sum(len(one.body) for one in requests)
    if not 0 < len(requests) <= endpoint.most_requests or size > endpoint.most_bytes:
        raise ValueError(f"{len(requests)} requests of {size} bytes are not a batch")
    if len({one.custom_id for one in requests}) < len(requests):
        raise ValueError("two requests of a batch have the same custom id")


def check_batch_id(batch_id: str) -> None:
    """Check an id of our own, which becomes a part of names of files.

    Raises:
        ValueError: it has other signs than letters, digits, `-` and `_`, or more than 64.
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
