"""Sends the queued questions of a run as batches, and collects the answers.

What a batch may cost is reserved, and its questions are noted as being sent, before it is created.
After a kill the provider is asked whether it has the batch, so that no question is paid twice.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from langchain_core.messages import AIMessage

from coreeval.config import ROLES, ModelConfig, PriceConfig
from coreeval.errors import BudgetSpent, CoreEvalError, ModelUnusable
from coreeval.graph.run_context import RunContext
from coreeval.models import close_models, open_model
from coreeval.models.batch_dispatch import Batching, dump_outcome, find_batch_charge
from coreeval.models.batches import BatchAnswer, BatchEndpoint, BatchRequest, BatchState
from coreeval.models.budget import answer_cost
from coreeval.models.dispatch import drop_impossible_count
from coreeval.models.failures import CallFailure, to_final_error
from coreeval.models.model import Model
from coreeval.tools.catalogs import find_price, load_run_prices
from coreeval.tools.stores.batch_records import (
    LIVE,
    Batch,
    CollectedAnswer,
    QueueLength,
    SentRequest,
)
from coreeval.tools.stores.call_batches import CallBatches
from coreeval.tools.trust import load_trusted_endpoints

T = TypeVar("T")
KEPT_TOGETHER: Final = 200
"""Answers that are committed together."""
CREATE_TRIES: Final = 3
CLOCKS_APART: Final = timedelta(minutes=15)
"""How far a provider's clock may be off, when its batches are searched for one that was created."""
_NOT_PROCESSED: Final = "the batch ended before it was processed"
_NOT_SENT: Final = "its batch was not sent"


@dataclass(frozen=True, kw_only=True)
class _BatchModel:
    """A model that is asked through batches."""

    model: Model
    endpoint: BatchEndpoint
    price: PriceConfig | None


class BatchSender:
    """Sends and collects the batches of a run.

    Args:
        run: The run.
        batching: What it asks through batches.
        batches: Its batches in the call store.
    """

    def __init__(self, run: RunContext, batching: Batching, batches: CallBatches) -> None:
        self._run, self._batching, self._batches = run, batching, batches
        self._prices = load_run_prices(run.config)
        self._models: dict[tuple[str, str], _BatchModel] | None = None
        self._retry = batching.retry

    @classmethod
    @asynccontextmanager
    async def open(
        cls, run: RunContext, batching: Batching, batches: CallBatches
    ) -> AsyncIterator["BatchSender"]:
        """Yield a sender, and close the connections of its models afterwards."""
        try:
            yield cls(run, batching, batches)
        finally:
            await close_models()

    # -- what there is ------------------------------------------------------------------------

    def queue_lengths(self) -> list[QueueLength]:
        """Return how many questions wait, by model."""
        return self._batches.queue_lengths()

    def open_batches(self) -> list[Batch]:
        """Return the batches that answers may still come from."""
        return self._batches.open_batches()

    def count_calls(self) -> int:
        """Return how many calls the run has stored."""
        return self._batches.count_calls()

    # -- sending ------------------------------------------------------------------------------

    async def send(self, lengths: Sequence[QueueLength], *, hold_small: bool) -> bool:
        """Send the queued questions of each model; return whether some are to be asked live now.

        Args:
            lengths: The queues.
            hold_small: Whether short queues wait for the next round.

        Raises:
            BudgetSpent: the budget does not cover a single question, and no batch is open.
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
        if too_dear and not self.open_batches():
            raise too_dear
        return asks_live

    async def _send_queue(self, queue: QueueLength) -> bool:
        """Send a queue in as many batches as needed; return whether it is to be asked live.

        Raises:
            BudgetSpent: the budget does not cover what is left of it.
            CoreEvalError: a batch was refused.
        """
        known = self._find_model(queue.endpoint, queue.model)
        while taken := await asyncio.to_thread(self._read_queue, queue, known.endpoint):
            batch = await self._begin(queue, known, [each.custom_id for each in taken])
            wanted = self._batches.requests_of(batch)
            requests = [each for each in taken if each.custom_id in wanted]
            if not await self._create(batch, known, requests, wanted):
                await self._batches.leave_queue(queue)
                return True
        return False

    def _read_queue(self, queue: QueueLength, endpoint: BatchEndpoint) -> list[BatchRequest]:
        read = self._batches.read_queue(
            queue, most=endpoint.most_requests, most_bytes=endpoint.most_bytes
        )
        return [BatchRequest(custom_id=key, body=body) for key, body in read]

    async def _begin(self, queue: QueueLength, known: _BatchModel, keys: Sequence[str]) -> Batch:
        """Make a batch of as many questions as the budget covers.

        Raises:
            BudgetSpent: it covers none.
        """
        budget, number = self._run.config.run.budget_usd, len(keys)
        while number:
            batch = await self._batches.begin(
                queue, keys[:number], made_at=self._run.now(), budget_usd=budget
            )
            if batch:
                return batch
            number //= 2
        most = self._batches.most_usd(keys[:1]) or 0.0
        raise BudgetSpent(
            f"the budget of {budget:.4f} USD does not cover the next call of {queue.model} in a "
            f"batch, which may cost {most:.4f}",
            where="run.budget_usd",
            hint="give a larger one (--budget USD): what was answered is kept",
        )

    async def _create(
        self,
        batch: Batch,
        known: _BatchModel,
        requests: Sequence[BatchRequest],
        wanted: Mapping[str, SentRequest],
    ) -> bool:
        """Create a batch at its provider; return False if the endpoint has no batches.

        Raises:
            CoreEvalError: the provider does not take it; its questions cost nothing.
        """
        failure = CallFailure("transient", _NOT_SENT)
        for number in range(CREATE_TRIES):
            if number:
                await self._retry.sleep(self._retry.first_s * 2**number)
            try:
                state = await known.endpoint.create(batch.id, requests)
            except CallFailure as error:
                failure = error
            else:
                await self._note_sent(batch, state)
                return True
            if not (failure.billed or failure.retryable):
                break
            if found := await self._find(batch, known, wanted):
                await self._note_sent(batch, found)
                return True
        await self._batches.put_back(
            batch, wanted, reason=_NOT_SENT, to=LIVE if failure.kind == "unsupported" else ""
        )
        await self._batches.update(batch, {"state": "refused", "problem": failure.message})
        if failure.kind == "unsupported":
            self._batching.without_batches.add(batch.endpoint)
            told = f"{batch.model}: {failure.message}; it is asked live, at full price"
            self._run.tell(self._run.stage, note=told)
            return False
        raise self._to_error(known, failure)

    async def _note_sent(self, batch: Batch, state: BatchState) -> Batch:
        note = f"{batch.total} calls of {batch.model} sent as a batch"
        self._run.tell(self._run.stage, note=note)
        now = self._run.now().isoformat(timespec="seconds")
        sent = {"state": "sent", "provider_id": state.provider_id, "sent_at": now}
        return await self._batches.update(batch, sent | _describe_state(state))

    async def settle_sending(self) -> None:
        """Find out what became of batches that a killed process was about to send.

        Raises:
            CoreEvalError: the provider cannot be asked.
        """
        for batch in self.open_batches():
            if batch.state != "sending":
                continue
            known = self._find_model(batch.endpoint, batch.model)
            wanted = self._batches.requests_of(batch)
            if state := await self._find(batch, known, wanted):
                await self._note_sent(batch, state)
                continue
            await self._batches.put_back(batch, wanted, reason=_NOT_SENT)
            await self._batches.update(batch, {"state": "refused", "problem": _NOT_SENT})

    async def _find(
        self, batch: Batch, known: _BatchModel, wanted: Mapping[str, SentRequest]
    ) -> BatchState | None:
        """Return the provider's batch; None if it is proved that there is none."""
        since = batch.made - CLOCKS_APART
        find = partial(known.endpoint.find, batch.id, wanted.keys(), since=since)
        return await self._ask(known, find)

    # -- collecting ---------------------------------------------------------------------------

    async def collect(self) -> bool:
        """Collect the batches that have ended; return whether a question can go on now.

        Raises:
            CoreEvalError: a provider refused a batch, or cannot be asked.
        """
        await self._delete_files()
        has_come = False
        for batch in self.open_batches():
            if batch.state == "sent" and not self._run.stop.asked:
                has_come |= await self._look(batch)
        return has_come

    async def cancel_all(self) -> bool:
        """Cancel all open batches; return whether there were any."""
        opened = [batch for batch in self.open_batches() if batch.state == "sent"]
        for batch in opened:
            await self._cancel(batch)
        return bool(opened)

    async def _cancel(self, batch: Batch) -> Batch:
        known = self._find_model(batch.endpoint, batch.model)
        state = await self._ask(known, partial(known.endpoint.cancel, batch.provider_id))
        return await self._batches.update(batch, _describe_state(state))

    async def _look(self, batch: Batch) -> bool:
        """Ask where a batch stands, and collect it if it has ended."""
        known = self._find_model(batch.endpoint, batch.model)
        state = await self._ask(known, partial(known.endpoint.look, batch.provider_id))
        batch = await self._batches.update(batch, _describe_state(state))
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

    async def _collect(self, batch: Batch, known: _BatchModel, state: BatchState) -> bool:
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
        known: _BatchModel,
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
        return batch

    async def _end(self, batch: Batch, state: BatchState, stage: str, problem: str = "") -> None:
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
                known = self._find_model(batch.endpoint, batch.model)
                await known.endpoint.delete_files(state)
            except (CallFailure, CoreEvalError):
                continue
            await self._batches.update(batch, {"files": ""})

    # -- models -------------------------------------------------------------------------------

    async def _ask(self, known: _BatchModel, question: Callable[[], Awaitable[T]]) -> T:
        """Ask a provider about a batch, again if that may help.

        Raises:
            CoreEvalError: it cannot be asked.
        """
        try:
            return await self._retry.run(question)
        except CallFailure as failure:
            error = failure
        raise self._to_error(known, error)

    def _to_error(self, known: _BatchModel, failure: CallFailure) -> CoreEvalError:
        endpoint = known.model.identity.endpoint
        final = to_final_error(
            failure,
            model=known.model.name,
            endpoint=endpoint,
            key_env=known.model.config.key_variable,
        )
        if isinstance(final, CoreEvalError):
            return final
        return ModelUnusable(
            f"{known.model.name}: its batches cannot be used: {failure.message}",
            where=endpoint,
            hint="resume later, or ask without batches: --live; what was answered is kept",
        )

    def _find_model(self, endpoint: str, model: str) -> _BatchModel:
        """Return the model of a batch.

        Raises:
            ModelUnusable: the config does not name it any more.
            CoreEvalError: it cannot be opened.
        """
        if self._models is None:
            self._models = dict(self._open_models())
        if (known := self._models.get((endpoint, model))) is None:
            raise ModelUnusable(
                f"a batch of {model} is open, and the config does not name this model",
                where=endpoint,
                hint="put it back into the config, or start a new run",
            )
        return known

    def _open_models(self) -> Iterator[tuple[tuple[str, str], _BatchModel]]:
        trusted = load_trusted_endpoints(self._run.workspace)
        for config in _list_models(self._run):
            if config.is_rule_based or config.is_on_this_machine or not config.name:
                continue
            model = open_model(config, trusted=trusted)
            if self._batching.covers(model) and (endpoint := self._open_endpoint(model)):
                price = find_price(config, self._prices)
                known = _BatchModel(model=model, endpoint=endpoint, price=price)
                yield (model.identity.endpoint, model.name), known

    def _open_endpoint(self, model: Model) -> BatchEndpoint | None:
        folder = self._batching.config.files
        if folder is None:
            return model.chat.open_batches()
        from coreeval.models.batch_folder import BatchFolder

        return BatchFolder(Path(folder), model.config)


def _list_models(run: RunContext) -> Iterator[ModelConfig]:
    models = run.config.models
    for role in ROLES:
        yield models.for_role(role)
    yield from models.targets
    yield from run.config.detect.judges


def _describe_state(state: BatchState) -> dict[str, object]:
    return {"status": state.status, "succeeded": state.succeeded, "failed": state.failed}


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
