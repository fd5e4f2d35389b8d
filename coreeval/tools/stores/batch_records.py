"""The call store's records of batches: queued questions, sent batches, and answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from coreeval.tools.stores.call_ledger import Reservation

BatchStage = Literal["sending", "sent", "collected", "refused", "lost"]
"""`sending`: it is not known whether the provider has it; `refused`: the provider did not accept
it; `lost`: the provider no longer knows it."""
OPEN_STAGES: Sequence[BatchStage] = ("sending", "sent")
TOO_MUCH = "too much was queued"
"""The status of a refused batch that the provider might accept later or if it is smaller."""
LIVE = "live"
"""Instead of a batch's id: the question should be asked without a batch."""


@dataclass(frozen=True, kw_only=True)
class QueuedRequest:
    """A question that waits for a batch."""

    key: str
    """The key of its call."""
    endpoint: str
    model: str
    """The model as the config spells it: `provider:name`."""
    key_env: str
    """The environment variable of the key that the request uses."""
    body: bytes
    """The JSON body of the request."""
    size: int
    """The number of bytes of messages and schema."""
    max_tokens: int
    method: str
    """The method by which the model is asked to follow the schema."""
    plain_limit: bool
    """Whether the limit of the answer's length is named `max_tokens`."""
    most_usd: float | None
    """The most that it can cost in a batch, in US dollars; None if this is not known."""
    tries: Sequence[str] = ()
    """The reasons that earlier batches did not answer it."""


@dataclass(frozen=True, kw_only=True)
class BatchedRequest:
    """The state of a queued or sent question."""

    batch: str
    """The id of its batch; "" while it waits for one, `LIVE` if it should be asked without one."""
    process: str
    """The process that queued it."""
    method: str
    plain_limit: bool
    tries: Sequence[str]
    reservation: Reservation | None
    answer: bytes | None
    """The provider's response; None before the batch is collected."""
    usd: float | None
    """The cost of the answer in US dollars; None if it is not known."""

    @property
    def is_sent(self) -> bool:
        """Whether it is part of a batch without results yet."""
        return self.batch not in ("", LIVE) and self.answer is None


@dataclass(frozen=True, kw_only=True)
class SentRequest:
    """A question of a batch, with what reading its answer needs."""

    reservation: str
    size: int
    max_tokens: int
    tries: str
    has_answer: bool
    is_unprocessed: bool = False
    """Whether the provider reported that it has not processed it."""


@dataclass(frozen=True, kw_only=True)
class CollectedAnswer:
    """The response to a question, stored until the question is asked again."""

    key: str
    reservation: str
    answer: bytes
    usd: float | None
    """The cost in US dollars; None if it is not known: the reservation then stays as it is."""


@dataclass(frozen=True, kw_only=True)
class QueueLength:
    """The questions that wait for a batch with the same model and key."""

    endpoint: str
    model: str
    key_env: str
    requests: int


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch that was sent or is being sent."""

    id: str
    payer: str
    endpoint: str
    model: str
    key_env: str
    """The environment variable of the key that sent it."""
    state: BatchStage
    provider_id: str
    """The provider's id of it; "" before it is known."""
    status: str
    """The status as the provider words it."""
    problem: str
    """The reason that the provider did not accept it; "" if it did."""
    total: int
    succeeded: int
    failed: int
    most_usd: float | None
    """The most that it can cost in US dollars; None without a budget or a price."""
    usd: float | None
    """The cost of its collected answers in US dollars."""
    live_usd: float | None
    """The cost of the same answers without a batch."""
    files: str
    """The provider's names of its files to delete, one per line."""
    folder: str
    """The folder that it was written to, from `Workspace.record_path`; "" if it was sent to the
    endpoint."""
    unreadable_at: str
    """The time at which reading its results first failed; "" if it never failed."""
    made_at: str
    asked_at: str
    """The provider's time just before the request to create it; "" if there was none."""
    sent_at: str
    cancelled_at: str
    """The time of the last request to cancel it; "" if there was none."""
    ended_at: str

    @property
    def made(self) -> datetime:
        """The time at which it was created."""
        return datetime.fromisoformat(self.made_at)

    @property
    def asked(self) -> datetime | None:
        """The time of the request to create it, by the provider's clock; None if there was none."""
        return datetime.fromisoformat(self.asked_at) if self.asked_at else None

    @property
    def cancelled(self) -> datetime | None:
        """The time of the last request to cancel it; None if there was none."""
        return datetime.fromisoformat(self.cancelled_at) if self.cancelled_at else None
