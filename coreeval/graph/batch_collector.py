"""Collects the batches of a run: answers are kept, and what has none waits for the next round."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from langchain_core.messages import AIMessage

from coreeval.config import PriceConfig
from coreeval.errors import CoreEvalError, ModelUnusable
from coreeval.graph.batch_models import BatchModel, BatchModels
from coreeval.graph.batch_sender import BatchSender, describe_state
from coreeval.graph.monitor import Progress
from coreeval.graph.run_context import RunContext
from coreeval.models.batch_dispatch import Batching, dump_outcome, find_batch_charge
from coreeval.models.batches import BatchAnswer, BatchState
from coreeval.models.budget import answer_cost
from coreeval.models.dispatch import drop_impossible_count
from coreeval.models.failures import CallFailure
from coreeval.tools.stores.batch_records import (
    LIVE,
    Batch,
    BatchStage,
    CollectedAnswer,
    SentRequest,
)
from coreeval.tools.stores.call_batches import CallBatches

BATCH_STAGE: Final = "batches"
KEPT_TOGETHER: Final = 200
"""Answers that are committed together."""
_NOT_PROCESSED: Final = "the batch ended before it was processed"


class BatchCollector:
    """Collects the batches of a run.

    Args:
        run: The run.
        batching: What it asks through batches.
        batches: Its batches in the call store.
        models: Its models.
        sender: What has sent them.
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
        """Collect the batches that have ended; return whether a question can go on now.

        Raises:
            CoreEvalError: a provider refused a batch, or cannot be asked.
        """
        await self._delete_files()
        has_come = await self._sender.settle_sending()
        opened = self._batches.open_batches()
        self._tell(opened)
        for batch in opened:
            if batch.state == "sent" and not self._run.stop.asked:
                has_come |= await self._look(batch)
        return has_come

    def _tell(self, opened: Sequence[Batch]) -> None:
        """Report how far the open batches were when they were last looked at."""
        if opened:
            done = sum(each.succeeded + each.failed for each in opened)
            total = sum(each.total for each in opened)
            self._run.watch(Progress(stage=BATCH_STAGE, done=done, total=total))

    async def cancel_all(self) -> bool:
        """Cancel all open batches; return whether there were any."""
        opened = [batch for batch in self._batches.open_batches() if batch.state == "sent"]
        for batch in opened:
            await self._cancel(batch)
        return bool(opened)

    async def _cancel(self, batch: Batch) -> Batch:
        known = self._models.find(batch.endpoint, batch.model)
        state = await self._models.ask(known, partial(known.endpoint.cancel, batch.provider_id))
        return await self._batches.update(batch, describe_state(state))

    async def _look(self, batch: Batch) -> bool:
        """Ask where a batch stands, and collect it if it has ended."""
        known = self._models.find(batch.endpoint, batch.model)
        state = await self._models.ask(known, partial(known.endpoint.look, batch.provider_id))
        batch = await self._batches.update(batch, describe_state(state))
        if state.phase == "running":
            if self._is_overdue(batch) and not state.status.startswith("cancel"):
                await self._cancel(batch)
            return False
        if state.phase == "ended":
            return await self._collect(batch, known, state)
        wanted = await asyncio.to_thread(self._batches.requests_of, batch)
        if state.phase == "lost":
            told = (
                f"{batch.model}: the provider does not know the batch {batch.provider_id} any more"
            )
            await self._batches.put_back(batch, wanted, reason="its batch is lost", is_billed=True)
            await self._end(batch, state, "lost", told)
            self._run.tell(self._run.stage, note=f"{told}; its calls are sent again")
            return True
        await self._batches.put_back(batch, wanted, reason="its batch was refused")
        await self._end(batch, state, "refused", state.problem)
        raise ModelUnusable(
            f"{batch.model}: the provider refused a batch: {state.problem or state.status}",
            where=batch.endpoint,
            hint="nothing of it was billed; correct the config, or ask without batches: --live",
        )

    def _is_overdue(self, batch: Batch) -> bool:
        waited = self._run.now() - batch.made
        return waited.total_seconds() > self._batching.config.max_wait_s

    async def _collect(self, batch: Batch, known: BatchModel, state: BatchState) -> bool:
        """Keep the answers of an ended batch."""
        wanted = await asyncio.to_thread(self._batches.requests_of, batch)
        left = {key: each for key, each in wanted.items() if not each.has_answer}
        try:
            batch = await self._keep_answers(batch, known, state, left)
        except CallFailure as failure:
            note = f"{batch.model}: the results of a batch cannot be read: {failure.message}"
            self._run.tell(self._run.stage, note=note)
            if not self._is_overdue(batch):
                return len(left) < len(wanted)
            await self._batches.put_back(batch, left, reason=failure.message, is_billed=True)
        else:
            goes_live = self._is_overdue(batch) or self._batching.always_live
            to = LIVE if goes_live else ""
            await self._batches.put_back(batch, left, reason=_NOT_PROCESSED, to=to)
        await self._end(batch, state, "collected")
        await self._delete_files()
        return True

    async def _keep_answers(
        self,
        batch: Batch,
        known: BatchModel,
        state: BatchState,
        left: dict[str, SentRequest],
    ) -> Batch:
        """Keep the answers of the questions that are left, and take these out of `left`."""
        kept, unknown = list[CollectedAnswer](), 0
        usd, live_usd = batch.usd or 0.0, batch.live_usd or 0.0
        try:
            async for answer in known.endpoint.read_answers(state):
                request = left.pop(answer.custom_id, None)
                if request is None:
                    unknown += 1
                    continue
                if answer.outcome is None:
                    left[answer.custom_id] = request
                    continue
                collected, live = _price_answer(answer, request, known.price)
                kept.append(collected)
                usd, live_usd = usd + (collected.usd or 0.0), live_usd + live
                if len(kept) == KEPT_TOGETHER:
                    batch = await self._batches.keep(
                        batch, kept, {"usd": usd, "live_usd": live_usd}
                    )
                    kept.clear()
        finally:
            batch = await self._batches.keep(batch, kept, {"usd": usd, "live_usd": live_usd})
        if unknown:
            told = f"{batch.model}: {unknown} results of a batch answer no question, or one twice"
            self._run.tell(self._run.stage, note=told)
        return batch

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
        """Delete the files of ended batches at their providers; what cannot be deleted stays."""
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
                known = self._models.find(batch.endpoint, batch.model)
                await known.endpoint.delete_files(state)
            except (CallFailure, CoreEvalError):
                continue
            await self._batches.update(batch, {"files": ""})


def _price_answer(
    answer: BatchAnswer, request: SentRequest, price: PriceConfig | None
) -> tuple[CollectedAnswer, float]:
    """Return an answer with its cost, and what it would have cost without a batch."""
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
