"""Sends requests in batches: a request is queued now and answered when it is made again.

A request without an answer is queued and raises `CallQueued`. When its batch has been collected,
the same request returns the answer as if it had just been sent. An interrupted sample reaches the
same place again over stored answers, so nothing has to wait in memory.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from coreeval.config import Method, PriceConfig
from coreeval.config.run import BatchConfig
from coreeval.models.answers import MOST_ANSWER_CHARACTERS
from coreeval.models.batches import MOST_BATCH_BYTES
from coreeval.models.dispatch import DispatchResult, LiveDispatcher, ModelRequest
from coreeval.models.failures import CallFailure
from coreeval.models.model import Model
from coreeval.models.retry import Retry
from coreeval.tools.catalogs import find_batch_price, worst_case_cost
from coreeval.tools.stores.batch_records import LIVE, BatchedRequest, QueuedRequest
from coreeval.tools.stores.call_batches import CallBatches

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


BATCH_TRIES = 3
"""How often a request that failed in a batch is sent in a batch; after that it is sent live."""


class CallQueued(Exception):
    """A request waits for a batch: the caller stops and makes the request again later."""


@dataclass
class Batching:
    """The batch settings and state of a process.

    Args:
        config: The settings of the run's config.
    """

    config: BatchConfig
    live: bool = False
    """Whether requests that are in no batch are sent live: the few that are left at the end."""
    queued: int = 0
    """The number of calls queued since this was last set to 0."""
    always_live: bool = False
    """Whether open batches are cancelled and all remaining requests are sent live."""
    waits: bool = False
    """Whether the process waits for batches; if not, the run ends and is resumed later."""
    was_waiting: bool = False
    """Whether the run ended waiting for batches and no pass has been made since."""
    waiting: bool = False
    """Whether the run ends here and waits for batches."""
    first_look_s: float = 5.0
    """Seconds until the first poll of an open batch; later polls are less frequent."""
    retry: Retry = field(default_factory=Retry)
    """How often a failed request about a batch is sent again."""
    at_full_price: set[str] = field(default_factory=set)
    """Models without a batch price that were reported."""
    told_full: set[str] = field(default_factory=set)
    """Models with a full queue at the provider that were reported."""
    told_slow: set[str] = field(default_factory=set)
    """Cancelled batches that the provider does not end and that were reported."""
    without_batches: set[str] = field(default_factory=set)
    """Endpoints that turned out to have no batches."""

    def covers(self, model: Model) -> bool:
        """Return whether a model's requests are sent in batches."""
        if self.config.models and model.name not in self.config.models:
            return False
        if self.config.files is not None:
            return model.identity.provider == "openai"  # the form that is written
        return model.chat.has_batches


def find_batch_charge(price: PriceConfig | None) -> PriceConfig | None:
    """Return the price of a request in a batch: the ordinary price if no batch price is known."""
    return price and (find_batch_price(price) or price)


@dataclass(frozen=True, kw_only=True)
class BatchDispatcher:
    """Queues requests for batches and returns answers of collected batches.

    Args:
        live: Sends live requests; has the model and its options.
        batches: The queue.
        batching: The batch settings and state of the process.
    """

    live: LiveDispatcher
    batches: CallBatches
    batching: Batching

    async def send(self, request: ModelRequest) -> DispatchResult:
        """Return the answer to one request; see `Dispatcher.send`.

        Raises:
            CallQueued: it waits for a batch.
        """
        found = await asyncio.to_thread(self.batches.find, request.key)
        if found is not None and found.answer is not None:
            return await self._use_answer(request, found, found.answer)
        if found is not None and (found.is_sent or self._waits_here(found)):
            raise self._give_up()
        return await self._queue_or_send(request, found.tries if found else (), found)

    def _waits_here(self, found: BatchedRequest) -> bool:
        return self.batches.is_queued_here(found) and not self._asks_live

    @property
    def _asks_live(self) -> bool:
        endpoint = self.live.model.identity.endpoint
        return self.batching.live or endpoint in self.batching.without_batches

    async def _use_answer(
        self, request: ModelRequest, found: BatchedRequest, answer: bytes
    ) -> DispatchResult:
        """Return a batch's answer; a failed request is sent again if that may help."""
        outcome = load_outcome(answer)
        if not isinstance(outcome, CallFailure):
            return DispatchResult(
                answer=outcome,
                method=cast(Method, found.method),
                tries=found.tries,
                usd=found.usd,
                reservation=found.reservation,
                also=self.batches.forget_writes(request.key),
            )
        tries = [*found.tries, outcome.message]
        options = self.live.choose_options(request)
        sent = replace(options, method=cast(Method, found.method), plain_limit=found.plain_limit)
        if self.live.fall_back(outcome, sent):
            return await self._queue_or_send(request, tries, found)
        if not outcome.retryable:
            await self.batches.forget(request.key)
            raise self.live.to_error(outcome)
        return await self._queue_or_send(request, tries, found)

    async def _queue_or_send(
        self, request: ModelRequest, tries: Sequence[str], found: BatchedRequest | None
    ) -> DispatchResult:
        model = self.live.model
        is_live = found is not None and (found.batch == LIVE or len(tries) >= BATCH_TRIES)
        if self._asks_live or is_live:
            return await self._send_live(request, tries)
        options = self.live.choose_options(request)
        try:
            body = model.chat.encode_request([dict(one) for one in request.messages], options)
        except UnicodeError:  # it says so when it is sent
            return await self._send_live(request, tries)
        if len(body) > MOST_BATCH_BYTES:
            return await self._send_live(request, tries)
        charge = find_batch_charge(self.live.budget.find_price(model))
        await self.batches.queue(
            QueuedRequest(
                key=request.key,
                endpoint=model.identity.endpoint,
                model=model.name,
                key_env=model.config.key_variable,
                body=body,
                size=request.size,
                max_tokens=options.max_tokens,
                method=options.method,
                plain_limit=options.plain_limit,
                most_usd=None
                if charge is None
                else worst_case_cost(
                    charge, prompt_bytes=request.size, max_tokens=options.max_tokens
                ),
                tries=tries,
            )
        )
        raise self._give_up()

    async def _send_live(self, request: ModelRequest, tries: Sequence[str]) -> DispatchResult:
        result = await self.live.send(request)
        also = self.batches.forget_writes(request.key)
        return replace(result, tries=[*tries, *result.tries], also=also)

    def _give_up(self) -> CallQueued:
        self.batching.queued += 1
        return CallQueued("this question is waiting for a batch")


# -- answers as they are kept -------------------------------------------------------------------


def dump_outcome(outcome: "AIMessage | CallFailure") -> bytes:
    """Return the outcome of a request in a batch as JSON, with as much text as of a live answer."""
    if isinstance(outcome, CallFailure):
        names = ("kind", "message", "billed", "refused")
        return _dump({"failure": {name: getattr(outcome, name) for name in names}})
    return _dump(
        {
            "content": str(outcome.text)[:MOST_ANSWER_CHARACTERS],
            "response_metadata": outcome.response_metadata,
            "usage_metadata": outcome.usage_metadata,
        }
    )


def _dump(values: dict[str, object]) -> bytes:
    """Return JSON that keeps every text, including lone surrogates."""
    return json.dumps(values).encode()


def load_outcome(kept: bytes) -> "AIMessage | CallFailure":
    """Return the outcome that `dump_outcome` encoded."""
    from langchain_core.messages import AIMessage

    values: dict[str, Any] = json.loads(kept)
    if failure := values.get("failure"):
        return CallFailure(
            failure["kind"],
            failure["message"],
            billed=failure["billed"],
            refused=failure["refused"],
        )
    return AIMessage(**values)
