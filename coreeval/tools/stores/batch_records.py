"""What the call store says of batches: questions that wait, batches that were sent, and answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from coreeval.tools.stores.call_ledger import Reservation

BatchStage = Literal["sending", "sent", "collected", "refused", "lost"]
"""`sending`: it is not known whether the provider has it; `refused`: the provider did not take it;
`lost`: the provider does not know it any more."""
OPEN_STAGES: Sequence[BatchStage] = ("sending", "sent")
TOO_MUCH = "too much was queued"
"""The status of a refused batch that the provider might have taken smaller, or later."""
LIVE = "live"
"""In place of a batch: the question is to be asked without one."""


@dataclass(frozen=True, kw_only=True)
class QueuedRequest:
    """A question that waits for a batch."""

    key: str
    """The key of its call."""
    endpoint: str
    model: str
    """The model as the config spells it: `provider:name`."""
    key_env: str
    """The environment variable of the key that it is asked with."""
    body: bytes
    """The JSON body of the request."""
    size: int
    """Bytes of messages and schema."""
    max_tokens: int
    method: str
    """How structure is asked for."""
    plain_limit: bool
    """Whether the longest answer is called `max_tokens`."""
    most_usd: float | None
    """The most that it can cost in a batch, in US dollars; None if that is not known."""
    tries: Sequence[str] = ()
    """Why it has no answer after earlier batches."""


@dataclass(frozen=True, kw_only=True)
class BatchedRequest:
    """Where a question stands."""

    batch: str
    """The id of its batch; "" while it waits for one, `LIVE` if it is to be asked without one."""
    process: str
    """The process that queued it."""
    method: str
    plain_limit: bool
    tries: Sequence[str]
    reservation: Reservation | None
    answer: bytes | None
    """What came back; None before the batch is collected."""
    usd: float | None
    """What the answer cost, in US dollars; None if that is not known."""

    @property
    def is_sent(self) -> bool:
        """Whether it is part of a batch without results yet."""
        return self.batch not in ("", LIVE) and self.answer is None


@dataclass(frozen=True, kw_only=True)
class SentRequest:
    """A question of a batch, as its answer is to be read."""

    reservation: str
    size: int
    max_tokens: int
    tries: str
    has_answer: bool
    is_unprocessed: bool = False
    """Whether the provider said that it has not processed it."""


@dataclass(frozen=True, kw_only=True)
class CollectedAnswer:
    """What came back for a question, to be kept until the question is asked again."""

    key: str
    reservation: str
    answer: bytes
    usd: float | None
    """What it cost, in US dollars; None if that is not known: its reservation stays as it is."""


@dataclass(frozen=True, kw_only=True)
class QueueLength:
    """The questions of one model that wait for a batch, and are asked with the same key."""

    endpoint: str
    model: str
    key_env: str
    requests: int


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch that was sent, or was about to be."""

    id: str
    payer: str
    endpoint: str
    model: str
    key_env: str
    """The environment variable of the key that it was sent with."""
    state: BatchStage
    provider_id: str
    """The provider's name for it; "" before it is known."""
    status: str
    """The provider's word for where it stands."""
    problem: str
    """Why the provider did not take it; "" if it did."""
    total: int
    succeeded: int
    failed: int
    most_usd: float | None
    """The most that it can cost, in US dollars; None without a budget or a price."""
    usd: float | None
    """What its answers cost, in US dollars, once they are collected."""
    live_usd: float | None
    """What the same answers would have cost without a batch."""
    files: str
    """The provider's names of its files that are to be deleted, one per line."""
    folder: str
    """The folder that it was written into; "" if it was sent to the endpoint."""
    unreadable_at: str
    """When its results could not be read first; "" if they could."""
    made_at: str
    asked_at: str
    """The time by the provider's clock just before it was asked to create it; "" if it was not."""
    sent_at: str
    cancelled_at: str
    """When the provider was last asked to cancel it; "" if it was not."""
    ended_at: str

    @property
    def made(self) -> datetime:
        """When it was made."""
        return datetime.fromisoformat(self.made_at)

    @property
    def asked(self) -> datetime | None:
        """When the provider was asked to create it, by its own clock; None if it was not."""
        return datetime.fromisoformat(self.asked_at) if self.asked_at else None

    @property
    def cancelled(self) -> datetime | None:
        """When the provider was last asked to cancel it; None if it was not."""
        return datetime.fromisoformat(self.cancelled_at) if self.cancelled_at else None
