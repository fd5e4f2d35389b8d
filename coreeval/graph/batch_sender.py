"""Sends the queued requests of a run as batches.

Before a batch is created, its maximum cost is reserved and its requests are recorded as being sent.
After a kill, the provider is asked whether it has the batch, so that no request is paid for twice.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from coreeval.errors import BudgetSpent, ModelUnusable
from coreeval.graph.batch_models import BatchModel, BatchModels
from coreeval.graph.run_context import RunContext
from coreeval.models.batch_dispatch import Batching
from coreeval.models.batches import BatchEndpoint, BatchRequest, BatchState, QueueFull
from coreeval.models.failures import CallFailure
from coreeval.runs.own_config import record_batches
from coreeval.tools.catalogs import find_batch_price
from coreeval.tools.endpoints import is_at_provider
from coreeval.tools.formatting import format_quantity
from coreeval.tools.stores.batch_records import (
    LIVE,
    TOO_MUCH,
    Batch,
    QueueLength,
    SentRequest,
)
from coreeval.tools.stores.call_batches import CallBatches

BATCH_STAGE: Final = "batches"
CREATE_TRIES: Final = 3
FULL_FOR: Final = timedelta(hours=24)
"""How long smaller batches are sent after a batch exceeded the queue limit."""
_NOT_SENT: Final = "its batch was not sent"


class BatchSender:
    """Sends the batches of a run.

    Args:
        run: The run.
        batching: The batch settings and state of the process.
        batches: Its batches in the call store.
        models: Its models.
    """

    def __init__(
        self, run: RunContext, batching: Batching, batches: CallBatches, models: BatchModels
    ) -> None:
        self._run, self._batching, self._batches = run, batching, batches
        self._models = models

    async def send(self, lengths: Sequence[QueueLength], *, hold_small: bool) -> bool:
        """Send the queued requests of each model; return whether some are to be sent live now.

        Args:
            lengths: The queues.
            hold_small: Whether short queues wait for the next round.

        Raises:
            BudgetSpent: the budget does not cover a single request, and no batch is open.
            CoreEvalError: a batch was refused.
        """
        await self._batches.drop_stale()
        asks_live, too_dear = False, None
        for queue in lengths:
            if hold_small and queue.requests < self._batching.config.min_batch:
                continue
            try:
                asks_live |= await self._send_queue(queue)
            except BudgetSpent as error:
                too_dear = error
        if too_dear and not self._batches.open_batches():
            raise too_dear
        return asks_live

    async def _send_queue(self, queue: QueueLength) -> bool:
        """Send a queue in as many batches as needed; return whether it is to be sent live.

        Requests that the provider does not accept now stay queued.

        Raises:
            BudgetSpent: the budget does not cover the rest.
            CoreEvalError: a batch was refused.
        """
        known = self._models.find(queue)
        self._tell_full_price(known)
        while most := self._find_most_calls(queue, known.endpoint):
            taken = await asyncio.to_thread(self._read_queue, queue, known.endpoint, most)
            if not taken:
                return False
            batch = await self._begin(queue, known, [each.custom_id for each in taken])
            wanted = self._batches.requests_of(batch)
            requests = [each for each in taken if each.custom_id in wanted]
            outcome = await self._create(batch, known, requests, wanted)
            if outcome == "unsupported":
                await self._batches.leave_queue(queue)
                return True
            if outcome == "later":
                return False
            del taken, requests  # otherwise the next ones are in memory, too
        return False

    def _find_most_calls(self, queue: QueueLength, endpoint: BatchEndpoint) -> int:
        """Return how many calls of a queue may be sent in a batch now; 0 if the queue has to wait.

        For a day after a batch exceeded the queue limit, only one batch is open at a time, with at
        most half the calls of the smallest refused one.
        """
        since = self._run.now() - FULL_FOR
        refused = [one for one in self._batches.too_large_batches(queue) if one.made > since]
        if not refused:
            return endpoint.most_requests
        if self._has_open(queue):
            return 0
        return max(1, min(one.total for one in refused) // 2)

    def _has_open(self, about: QueueLength | Batch) -> bool:
        """Return whether a batch of a model is open, other than the one given."""
        own_id = about.id if isinstance(about, Batch) else ""
        account = about.endpoint, about.model, about.key_env
        return any(
            (one.endpoint, one.model, one.key_env) == account
            for one in self._batches.open_batches()
            if one.id != own_id
        )

    async def put_off(
        self,
        batch: Batch,
        wanted: Mapping[str, SentRequest],
        problem: str,
        *,
        is_full: bool = True,
        stays_queued: bool = False,
    ) -> bool:
        """Put back the requests of a batch that its provider does not accept now.

        Args:
            batch: The batch.
            wanted: Its requests.
            problem: The provider's message.
            is_full: Whether a smaller batch may be accepted.
            stays_queued: Whether this process has just queued the requests.

        Returns:
            Whether they can be sent later; not if it was refused with a single question, while no
            other batch of its model is open.
        """
        await self._batches.put_back(batch, wanted, reason="", stays_queued=stays_queued)
        status = {"status": TOO_MUCH} if is_full else {}
        await self._batches.update(batch, {"state": "refused", "problem": problem, **status})
        if batch.model not in self._batching.told_full:
            self._batching.told_full.add(batch.model)
            note = f"{batch.model}: the provider accepts no more batches for now: {problem}"
            how = "in smaller batches, one after the other" if is_full else "later"
            self._run.tell(self._run.stage, note=f"{note}; the remaining calls will be sent {how}")
        return (is_full and batch.total > 1) or self._has_open(batch)

    def _tell_full_price(self, known: BatchModel) -> None:
        """Report once that a model's batches cost its full price."""
        name = known.model.name
        if (
            known.price
            and find_batch_price(known.price) is None
            and name not in self._batching.at_full_price
        ):
            self._batching.at_full_price.add(name)
            note = f"{name}: its batch price is unknown, so batches are counted at full price"
            self._run.tell(self._run.stage, note=note)

    def _read_queue(
        self, queue: QueueLength, endpoint: BatchEndpoint, most: int
    ) -> list[BatchRequest]:
        read = self._batches.read_queue(
            queue, most=min(most, endpoint.most_requests), most_bytes=endpoint.most_bytes
        )
        return [BatchRequest(custom_id=key, packed=packed) for key, packed in read]

    async def _begin(self, queue: QueueLength, known: BatchModel, keys: Sequence[str]) -> Batch:
        """Prepare a batch of as many requests as the budget covers.

        Raises:
            BudgetSpent: it covers none.
        """
        budget, number = self._run.config.run.budget_usd, len(keys)
        while number:
            batch = await self._batches.begin(
                queue,
                keys[:number],
                made_at=self._run.now(),
                budget_usd=budget,
                folder=record_batches(self._run.manifest, known.folder),
            )
            if batch:
                return batch
            number //= 2
        most = self._batches.most_usd(keys[:1]) or 0.0
        raise BudgetSpent(
            f"the budget of {budget:.4f} USD does not cover the next call of {queue.model} in a "
            f"batch, which may cost {most:.4f} USD",
            where="run.budget_usd",
            hint="set a larger budget (--budget USD); answers are kept",
        )

    async def _create(
        self,
        batch: Batch,
        known: BatchModel,
        requests: Sequence[BatchRequest],
        wanted: Mapping[str, SentRequest],
    ) -> Literal["sent", "refused", "later", "unsupported"]:
        """Create a batch at its provider.

        Returns:
            What came of it: `refused` if a smaller one may be taken, `later` if none is for now,
            `unsupported` if the endpoint has no batches. A provider is known to have them: what is
            missing there is not asked at twice the price before the user has said so.

        Raises:
            CoreEvalError: the provider does not take it; its questions cost nothing.
        """
        failure = await self._try_to_create(batch, known, requests, wanted)
        if failure is None:
            return "sent"
        is_full = isinstance(failure, QueueFull)
        if is_full or (failure.kind == "throttled" and self._has_open(batch)):
            told = failure.message
            if not await self.put_off(batch, wanted, told, is_full=is_full, stays_queued=True):
                raise known.to_error(failure)
            return "refused" if is_full else "later"
        has_none = failure.kind == "unsupported" and not is_at_provider(known.model.config)
        await self._batches.put_back(batch, wanted, reason="", to=LIVE if has_none else "")
        await self._batches.update(batch, {"state": "refused", "problem": failure.message})
        if has_none:
            self._batching.without_batches.add(batch.endpoint)
            told = f"{batch.model}: {failure.message}; calls are sent individually, at full price"
            self._run.tell(self._run.stage, note=told)
            return "unsupported"
        if failure.kind == "unsupported":
            raise ModelUnusable(
                f"{batch.model}: the provider supports batches, but none can be created: "
                f"{failure.message}",
                where=batch.endpoint,
                hint=f"check that the account, project and region of {known.key_env} support "
                "batches, then resume; coreeval resume RUN --live sends the calls at full price",
            )
        raise known.to_error(failure)

    async def _try_to_create(
        self,
        batch: Batch,
        known: BatchModel,
        requests: Sequence[BatchRequest],
        wanted: Mapping[str, SentRequest],
    ) -> CallFailure | None:
        """Create a batch; retry if the provider certainly does not have it.

        Returns:
            Why the provider does not have it; None if it has, or may have.
        """
        retry, failure = self._batching.retry, CallFailure("transient", _NOT_SENT)
        for number in range(CREATE_TRIES):
            if number:
                await retry.sleep(retry.first_s * 2**number)
            try:
                asked = (await known.endpoint.read_clock()).isoformat()
                batch = await self._batches.update(batch, {"asked_at": asked})
                state = await known.endpoint.create(batch.id, requests)
            except CallFailure as error:
                failure = error
            else:
                await self._note_sent(batch, state)
                return None
            if failure.billed:  # it is unknown whether it was created
                if await self._settle(batch, known, wanted) != "absent":
                    return None
            elif not failure.retryable:
                break
        return failure

    async def _note_sent(self, batch: Batch, state: BatchState) -> Batch:
        note = f"{format_quantity(batch.total, 'call')} of {batch.model} sent in a batch"
        self._run.tell(BATCH_STAGE, note=note)
        now = self._run.now().isoformat(timespec="seconds")
        sent = {"state": "sent", "provider_id": state.provider_id, "sent_at": now}
        return await self._batches.update(batch, sent | describe_state(state))

    async def settle_sending(self) -> bool:
        """Find out whether batches that a killed process was sending exist.

        Returns:
            Whether a request can be made again now, because it is in no batch.

        Raises:
            CoreEvalError: the provider cannot be reached.
        """
        goes_on = False
        for batch in self._batches.open_batches():
            if batch.state != "sending":
                continue
            known = self._models.find(batch)
            wanted = await asyncio.to_thread(self._batches.requests_of, batch)
            if await self._settle(batch, known, wanted) == "absent":
                await self._batches.put_back(batch, wanted, reason="")
                await self._batches.update(batch, {"state": "refused", "problem": _NOT_SENT})
                goes_on = True
        return goes_on

    async def _settle(
        self, batch: Batch, known: BatchModel, wanted: Mapping[str, SentRequest]
    ) -> Literal["found", "absent", "unknown"]:
        """Find out whether the provider has a batch; `absent` is proof.

        All times are the provider's: this machine's clock may be wrong or have been set.

        Raises:
            CoreEvalError: it cannot be asked.
        """
        if batch.asked is None:
            return "absent"
        endpoint, waited_s = known.endpoint, 0.0
        try:
            found = await endpoint.find(
                batch.id,
                wanted.keys(),
                since=batch.asked,
                total=batch.total,
                known=self._batches.provider_ids(batch.endpoint),
            )
            if found is None and endpoint.absent_after_s:
                waited_s = await self._waited_s(batch, batch.asked, known)
        except CallFailure as failure:
            if not failure.retryable:
                raise known.to_error(failure) from None
            told = f"{batch.model}: it is unknown whether a batch was sent: {failure.message}"
            self._run.tell(self._run.stage, note=told)
            return "unknown"
        if found is None:
            return "absent" if waited_s >= endpoint.absent_after_s else "unknown"
        await self._note_sent(batch, found)
        return "found"

    async def _waited_s(self, batch: Batch, asked: datetime, known: BatchModel) -> float:
        """Return the seconds since the request to create a batch.

        The count restarts if the provider's clock was set back.
        """
        now = await known.endpoint.read_clock()
        if now < asked:
            await self._batches.update(batch, {"asked_at": now.isoformat()})
        return (now - asked).total_seconds()


def describe_state(state: BatchState) -> dict[str, object]:
    """Return the stored state of a batch at its provider."""
    return {"status": state.status, "succeeded": state.succeeded, "failed": state.failed}
