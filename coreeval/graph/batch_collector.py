"""Collects the batches of a run: stores answers, and queues the rest for the next round."""

import asyncio
from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from langchain_core.messages import AIMessage

from coreeval.config import PriceConfig
from coreeval.errors import CoreEvalError, ModelUnusable
from coreeval.graph.batch_models import BatchModel, BatchModels
from coreeval.graph.batch_sender import BATCH_STAGE, BatchSender, describe_state
from coreeval.graph.monitor import Progress
from coreeval.graph.run_context import RunContext
from coreeval.models.batch_dispatch import Batching, dump_outcome, find_batch_charge
from coreeval.models.batches import BatchAnswer, BatchState
from coreeval.models.budget import answer_cost
from coreeval.models.dispatch import drop_impossible_count
from coreeval.models.failures import CallFailure
from coreeval.tools.formatting import format_quantity
from coreeval.tools.stores.batch_records import (
    LIVE,
    Batch,
    BatchStage,
    CollectedAnswer,
    SentRequest,
)
from coreeval.tools.stores.call_batches import CallBatches

KEPT_TOGETHER: Final = 200
"""The most answers per commit."""
KEPT_BYTES: Final = 8 << 20
"""The bytes of answers that are enough for a commit: until then they are in memory."""
READ_TRIES: Final = 3
GIVEN_UP_AFTER: Final = timedelta(hours=24)
"""How long unreadable results are read again, at each poll."""
_NOT_PROCESSED: Final = "the batch ended before it was processed"


class BatchCollector:
    """Collects the batches of a run.

    Args:
        run: The run.
        batching: The batch settings and state of the process.
        batches: Its batches in the call store.
        models: Its models.
        sender: Their sender.
    """

    def __init__(
        self,
        run: RunContext,
        batching: Batching,
        batches: CallBatches,
        models: BatchModels,
        sender: BatchSender,
    ) -> None:
        self._run, self._batching, self._batches = run, batching, batches
        self._models, self._sender = models, sender

    async def collect(self) -> bool:
        """Collect the batches that have ended; return whether a request has an answer now.

        Raises:
            CoreEvalError: a provider refused a batch or cannot be reached.
        """
        self._models.begin_look()
        await self._delete_files()
        has_come = await self._sender.settle_sending()
        opened, trouble = self._batches.open_batches(), list[CoreEvalError]()
        self._tell(opened)
        for batch in opened:
            if batch.state != "sent" or self._run.stop.asked:
                continue
            try:
                has_come |= await self._look(batch)
            except CoreEvalError as error:
                trouble.append(error)
        if trouble and not has_come:
            raise trouble[0]
        return has_come

    def _tell(self, opened: Sequence[Batch]) -> None:
        """Report the progress of the open batches at the last poll."""
        if opened:
            done = sum(each.succeeded + each.failed for each in opened)
            total = sum(each.total for each in opened)
            self._run.watch(Progress(stage=BATCH_STAGE, done=done, total=total))

    async def cancel_all(self) -> None:
        """Cancel all open batches, and collect those that ended."""
        for batch in self._batches.open_batches():
            if batch.state == "sent":
                await self._cancel(batch)

    async def _cancel(self, batch: Batch) -> bool:
        """Cancel a batch; return whether it ended and was collected."""
        known = self._models.find(batch)
        state = await self._models.ask(known, partial(known.endpoint.cancel, batch.provider_id))
        now = self._run.now().isoformat(timespec="seconds")
        asked = {"cancelled_at": now, **describe_state(state)}
        batch = await self._batches.update(batch, asked)
        return state.phase == "ended" and await self._collect(batch, known, state)

    async def _look(self, batch: Batch) -> bool:
        """Poll a batch, and collect it if it has ended.

        Raises:
            CoreEvalError: the provider refused the batch or cannot be reached.
        """
        known = self._models.find(batch)
        state = await self._models.ask(known, partial(known.endpoint.look, batch.provider_id))
        batch = await self._batches.update(batch, describe_state(state))
        if state.phase == "running":
            return await self._wait_longer(batch, state)
        if state.phase == "ended":
            return await self._collect(batch, known, state)
        if state.phase == "lost":
            return await self._give_up(batch, state, "the provider no longer knows it")
        wanted = await asyncio.to_thread(self._batches.requests_of, batch)
        if state.is_queue_full and await self._sender.put_off(batch, wanted, state.problem):
            await self._end(batch, state, "refused", state.problem)
            return True
        await self._batches.put_back(batch, wanted, reason="")
        await self._end(batch, state, "refused", state.problem)
        raise ModelUnusable(
            f"{batch.model}: the provider refused a batch: {state.problem or state.status}",
            where=batch.endpoint,
            hint="nothing was billed; correct the config, wait until the account's other batches "
            "end, or send calls without batches: --live",
        )

    async def _wait_longer(self, batch: Batch, state: BatchState) -> bool:
        """Cancel a batch that takes too long; return whether it ended.

        A batch that the provider is still processing is never given up, because its answers are
        billed. If the provider ignores a cancellation, it is sent again after `max_wait`.
        """
        waited = self._run.now() - (batch.cancelled or batch.made)
        if batch.folder or waited.total_seconds() <= self._batching.config.max_wait_s:
            return False
        if not _is_cancelled(state):
            return await self._cancel(batch)
        if batch.id not in self._batching.told_slow:
            self._batching.told_slow.add(batch.id)
            note = (
                f"{batch.model}: the provider has not ended the batch {batch.provider_id}, which "
            )
            note += "was cancelled; its answers may be billed, so its calls are not sent "
            self._run.tell(self._run.stage, note=f"{note}again before it has ended")
        return False

    async def _give_up(self, batch: Batch, state: BatchState, reason: str) -> bool:
        """Queue a batch's calls again; reservations stay spent: it may have been billed."""
        wanted = await asyncio.to_thread(self._batches.requests_of, batch)
        await self._batches.put_back(batch, wanted, reason=reason, is_billed=True)
        told = f"{batch.model}: the batch {batch.provider_id} is lost: {reason}"
        await self._end(batch, replace(state, input_file="", result_files=()), "lost", told)
        self._run.tell(self._run.stage, note=f"{told}; its calls will be sent again")
        return True

    async def _collect(self, batch: Batch, known: BatchModel, state: BatchState) -> bool:
        """Store the answers of an ended batch; return whether there were any."""
        wanted = await asyncio.to_thread(self._batches.requests_of, batch)
        left = {key: each for key, each in wanted.items() if not each.has_answer}
        begun_with, failure = len(left), None
        for number in range(READ_TRIES):
            if number:
                await self._batching.retry.sleep(self._batching.retry.first_s)
            batch, failure = await self._keep_answers(batch, known, state, left, wanted.keys())
            if failure is None:
                break
        if failure is not None:
            return await self._note_unreadable(batch, state, failure) or len(left) < begun_with
        is_whole = not (_is_cancelled(state) or state.status == "expired")
        missing = {key: each for key, each in left.items() if not each.is_unprocessed}
        unprocessed = {key: each for key, each in left.items() if each.is_unprocessed}
        was_cancelled = bool(batch.cancelled) or _is_cancelled(state)
        to = LIVE if was_cancelled or self._batching.always_live else ""
        await self._batches.put_back(batch, unprocessed, reason=_NOT_PROCESSED, to=to)
        await self._batches.put_back(
            batch, missing, reason=_NOT_PROCESSED, to=to, is_billed=is_whole
        )
        await self._end(batch, state, "collected")
        await self._delete_files()
        return True

    async def _note_unreadable(self, batch: Batch, state: BatchState, failure: CallFailure) -> bool:
        """Record that results cannot be read; return whether to give them up."""
        note = f"{batch.model}: cannot read the results of a batch: {failure.message}"
        self._run.tell(self._run.stage, note=note)
        now = self._run.now()
        if not batch.unreadable_at:
            await self._batches.update(batch, {"unreadable_at": now.isoformat(timespec="seconds")})
            return False
        if now - datetime.fromisoformat(batch.unreadable_at) < GIVEN_UP_AFTER:
            return False
        return await self._give_up(batch, state, failure.message)

    async def _keep_answers(
        self,
        batch: Batch,
        known: BatchModel,
        state: BatchState,
        left: dict[str, SentRequest],
        asked: Set[str],
    ) -> tuple[Batch, CallFailure | None]:
        """Store answers to the remaining requests, and remove these from `left`.

        Args:
            batch: The batch.
            known: Its model.
            state: Its state.
            left: The requests without an answer.
            asked: The keys of all its requests.

        Returns:
            The batch, and why its results could not be read to their end; None if they could.
        """
        kept, unknown, failure = list[CollectedAnswer](), 0, None
        kept_before = asked - left.keys()
        usd, live_usd = batch.usd or 0.0, batch.live_usd or 0.0

        async def commit() -> Batch:
            return await self._batches.keep(batch, kept, {"usd": usd, "live_usd": live_usd})

        try:
            async for answer in known.endpoint.read_answers(state):
                request = left.pop(answer.custom_id, None)
                if request is None:
                    unknown += answer.custom_id not in kept_before
                    kept_before.discard(answer.custom_id)
                elif answer.outcome is None:
                    left[answer.custom_id] = replace(request, is_unprocessed=True)
                else:
                    collected, live = _price_answer(answer, request, known.price)
                    kept.append(collected)
                    usd, live_usd = usd + (collected.usd or 0.0), live_usd + live
                if _is_full(kept):
                    batch = await commit()
                    kept.clear()
        except CallFailure as error:
            failure = error
        batch = await commit()
        if unknown and failure is None and not batch.unreadable_at:
            results = format_quantity(unknown, "result")
            note = f"{batch.model}: a batch has {results} with an unknown or repeated id"
            self._run.tell(self._run.stage, note=note)
        return batch, failure

    async def _end(
        self, batch: Batch, state: BatchState, stage: BatchStage, problem: str = ""
    ) -> None:
        ended = {
            "state": stage,
            "problem": problem,
            "files": "\n".join(filter(None, [state.input_file, *state.result_files])),
            "ended_at": self._run.now().isoformat(timespec="seconds"),
        }
        await self._batches.update(batch, ended)

    async def _delete_files(self) -> None:
        """Delete the files of ended batches at their providers, as far as possible."""
        for batch in self._batches.with_files():
            input_file, *results = batch.files.split("\n")
            state = BatchState(
                provider_id=batch.provider_id,
                phase="ended",
                status=batch.status,
                total=batch.total,
                succeeded=batch.succeeded,
                failed=batch.failed,
                input_file=input_file,
                result_files=tuple(results),
            )
            try:
                known = self._models.find(batch)
                await known.endpoint.delete_files(state)
            except (CallFailure, CoreEvalError):
                continue
            await self._batches.update(batch, {"files": ""})


def _is_full(kept: Sequence[CollectedAnswer]) -> bool:
    """Return whether these answers are enough for a commit."""
    return len(kept) == KEPT_TOGETHER or sum(len(each.answer) for each in kept) >= KEPT_BYTES


def _is_cancelled(state: BatchState) -> bool:
    """Return whether a batch was cancelled or is being cancelled, by the provider's status."""
    return state.status.startswith("cancel")


def _price_answer(
    answer: BatchAnswer, request: SentRequest, price: PriceConfig | None
) -> tuple[CollectedAnswer, float]:
    """Return an answer with its cost, and its cost without a batch."""
    outcome, usd, live = answer.outcome, None, 0.0
    assert outcome is not None
    if isinstance(outcome, AIMessage):
        outcome = drop_impossible_count(
            outcome, prompt_bytes=request.size, max_tokens=request.max_tokens
        )
        usd = answer_cost(outcome, find_batch_charge(price))
        live = answer_cost(outcome, price) or 0.0
    elif not outcome.billed:
        usd = 0.0
    collected = CollectedAnswer(
        key=answer.custom_id,
        reservation=request.reservation,
        answer=dump_outcome(outcome),
        usd=usd,
    )
    return collected, live
