"""Rounds of batches: queued requests are sent, results are collected, and the run continues.

In each round, every open request is made over stored answers. Requests without an answer are
queued. When no sample can proceed, the queue is sent, and the run either ends, to be resumed when
the batches are done, or waits for them.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from coreeval.errors import RunError
from coreeval.graph.batch_collector import BatchCollector
from coreeval.graph.batch_models import BatchModels
from coreeval.graph.batch_sender import BatchSender
from coreeval.graph.phases import OnResult, Phase, PhaseResult, PhaseRunner
from coreeval.graph.run_context import RunContext
from coreeval.models import close_models
from coreeval.models.batch_dispatch import Batching
from coreeval.tools.formatting import format_quantity, format_span, plural
from coreeval.tools.stores.call_batches import CallBatches
from coreeval.tools.stores.call_store import open_calls

LONGEST_LOOK_S = 60.0
"""The most seconds between two polls of batches."""
LIVE_PATIENCE_S = 1200.0
"""Seconds to wait for cancelled batches before the remaining requests are sent live: OpenAI takes
up to 10 minutes (https://developers.openai.com/api/docs/guides/batch), and with Anthropic it takes
15 to know whether a batch was created (own choice)."""


async def work_in_rounds(run: RunContext, one_pass: Callable[[], Awaitable[None]]) -> None:
    """Repeat a pass until none of its requests waits for a batch.

    Returns early if the run is stopped, also because it ends here to wait for batches.

    Args:
        run: The run.
        one_pass: Makes all open requests once.

    Raises:
        CoreEvalError: an error that stops the run, such as a refused batch.
    """
    batching = run.batching
    if batching is None:
        await one_pass()
        return
    async with _open_rounds(run, batching) as rounds:
        moves = await rounds.start()
        while moves and not run.stop.asked:
            batching.queued = 0
            await one_pass()
            if not batching.queued:
                return
            moves = not run.stop.asked and await rounds.advance()


class BatchRunner:
    """Runs a phase of samples in rounds of batches.

    Args:
        run: The run.
        inner: Runs a phase once; samples that wait for a batch stay open.
    """

    def __init__(self, run: RunContext, inner: PhaseRunner) -> None:
        self._run, self._inner = run, inner

    async def run(self, phase: Phase, ids: Sequence[str], on_result: OnResult) -> None:
        """Run a phase of samples; see `PhaseRunner`."""
        left = list(ids)

        async def one_pass() -> None:
            nonlocal left
            still_open = list[str]()

            def note(result: PhaseResult) -> None:
                if result.is_open:
                    still_open.append(result.sample_id)
                else:
                    on_result(result)

            await self._inner.run(phase, left, note)
            left = still_open

        await work_in_rounds(self._run, one_pass)


@asynccontextmanager
async def _open_rounds(run: RunContext, batching: Batching) -> AsyncIterator["_Rounds"]:
    calls = await asyncio.to_thread(open_calls, run.workspace.calls, run.payer)
    try:
        yield _Rounds(run, batching, calls.batches)
    finally:
        await close_models()
        await asyncio.to_thread(calls.close)


class _Rounds:
    """The rounds of one stage of a run."""

    def __init__(self, run: RunContext, batching: Batching, batches: CallBatches) -> None:
        self._run, self._batching, self._batches = run, batching, batches
        models = BatchModels(run, batching)
        self._sender = BatchSender(run, batching, batches, models)
        self._collector = BatchCollector(run, batching, batches, models, self._sender)

    async def start(self) -> bool:
        """Collect results; return whether a pass can proceed now."""
        batching = self._batching
        was_waiting, batching.was_waiting = batching.was_waiting, False
        batching.live = batching.always_live
        has_come = await self._collector.collect()
        if batching.always_live and self._batches.open_batches():
            await self._collector.cancel_all()
            return await self._wait()
        if was_waiting and not has_come and self._batches.open_batches():
            return await self._wait_or_leave()
        return True

    async def advance(self) -> bool:
        """Send the queue, unless it is too short; return whether another pass can proceed now."""
        batching, batches = self._batching, self._batches
        if await self._collector.collect():
            return True
        lengths = await asyncio.to_thread(batches.queue_lengths)
        waiting = sum(each.requests for each in lengths)
        opened = batches.open_batches()
        left = waiting + sum(each.total for each in opened)
        calls = await asyncio.to_thread(batches.count_calls)
        if waiting and left <= batching.config.live_below * (calls + left):
            remain = f"{format_quantity(waiting, 'call')} {plural(waiting, 'remains', 'remain')}"
            self._run.tell(self._run.stage, note=f"{remain} and will be sent individually")
            batching.live = True
            return True
        if await self._sender.send(lengths, hold_small=bool(opened)):
            return True
        if not batches.open_batches():
            raise RunError(
                "questions are waiting for a batch, but no batch is open",
                where=str(self._run.workspace.calls),
                hint="coreeval resume RUN --live sends them without batches",
            )
        return await self._wait_or_leave()

    async def _wait_or_leave(self) -> bool:
        """Wait for batches if configured; otherwise end the run here."""
        if self._batching.waits or self._batching.always_live:
            return await self._wait()
        if not self._run.stop.asked:
            self._leave()
        return False

    def _leave(self) -> None:
        """End the run here as waiting for batches."""
        self._batching.waiting = True
        self._run.stop.ask("batches")

    def _end_impatiently(self) -> None:
        """Report that batches cannot be ended, and end the run here."""
        opened = self._batches.open_batches()
        calls = sum(each.total for each in opened)
        told = (
            f"{format_quantity(len(opened), 'open batch', 'open batches')} with "
            f"{format_quantity(calls, 'call')} did not end within "
            f"{format_span(LIVE_PATIENCE_S)}: the answers may be billed, so nothing is sent "
            "again yet. Later, run coreeval resume RUN --live; add --wait to wait for the batches"
        )
        self._run.tell(self._run.stage, note=told)
        self._leave()

    async def _wait(self) -> bool:
        """Wait until a batch has ended; return False if the run is stopped."""
        stopped, pause = asyncio.Event(), self._batching.first_look_s
        until = math.inf if self._batching.waits else time.monotonic() + LIVE_PATIENCE_S
        with self._run.stop.notify(lambda _reason: stopped.set()):
            while not self._run.stop.asked:
                if await self._collector.collect() or not self._batches.open_batches():
                    return True
                if time.monotonic() > until:
                    self._end_impatiently()
                    return False
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopped.wait(), pause)
                pause = min(pause * 1.5, LONGEST_LOOK_S)
        return False
