"""Several processes that refresh the samples of one run.

This process assigns samples and monitors; each worker (`worker`), here or on a Ray cluster,
processes samples over the same stores, with its share of the rate limits. Samples of a dead worker
are assigned again: its answers are stored, so only its calls in flight are paid for twice.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self

from coreeval.errors import CoreEvalError, RunError
from coreeval.graph.monitor import WorkerReport
from coreeval.graph.phases import OnResult, Phase, PhaseResult
from coreeval.graph.pool import max_open_samples
from coreeval.graph.run_context import RunContext
from coreeval.graph.sample_groups import GroupQueue
from coreeval.graph.worker_handles import WorkerDied, WorkerHandle
from coreeval.graph.worker_messages import Assignment, Failure, FromWorker, Note, StopRequest
from coreeval.tools.formatting import format_quantity

MOST_DEATHS: Final = 3
"""The number of consecutive deaths of a worker without a finished sample that end the run."""
AHEAD: Final = 4
"""The number of extra samples assigned to a worker, so that it does not wait for more."""


LOOK_EVERY_S: Final = 1.0
"""The seconds between two checks for silent workers."""


class WorkerPool:
    """Runs a phase of samples in several processes; see `PhaseRunner`.

    Args:
        run: The run.
        groups: The number of each sample's group.
        workers: The workers; the pool starts and ends them.
    """

    def __init__(
        self, run: RunContext, groups: Mapping[str, int], workers: Sequence[WorkerHandle]
    ) -> None:
        self._run, self._groups, self._workers = run, groups, workers
        self._owners = dict[int, int]()
        each = -(-run.config.run.concurrency // len(workers))
        self._most_dealt = max_open_samples(each) + AHEAD
        self._notes = set[str]()
        self._stage = run.stage

    async def __aenter__(self) -> Self:
        """Start the workers; errors show when they are assigned samples."""
        for worker in self._workers:
            await self._start(worker)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the workers; after an error, at once."""
        async with AsyncExitStack() as stack:
            for worker in self._workers:
                stack.push_async_callback(worker.close, at_once=error is not None)

    async def run(self, phase: Phase, ids: Sequence[str], on_result: OnResult) -> None:
        """Run a phase of samples.

        Raises:
            CoreEvalError: an error that stops the run, such as a refused key.
            RunError: a worker dies each time it is started.
        """
        self._stage = self._run.stage if phase == "finish" else "extract"
        dealt = GroupQueue(ids, self._groups, self._owners)
        stop = self._run.stop
        with stop.notify(self._wake):
            watch = asyncio.create_task(self._watch_silence())
            try:
                async with asyncio.TaskGroup() as group:
                    for worker in self._workers:
                        group.create_task(self._serve(worker, phase, dealt, on_result))
            finally:
                watch.cancel()
        if stop.error:
            raise stop.error

    async def _watch_silence(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            for worker in self._workers:
                worker.kill_if_silent()

    def _wake(self, _: str = "") -> None:
        for worker in self._workers:
            worker.inbox.put_nowait(None)

    async def _serve(
        self, worker: WorkerHandle, phase: Phase, dealt: GroupQueue, on_result: OnResult
    ) -> None:
        """Deal samples to one worker until all samples of the phase have ended, or all stop."""
        while not (dealt.is_done or self._run.stop.asked):
            if not await self._start(worker):
                return
            try:
                await self._exchange(worker, phase, dealt, on_result)
            except WorkerDied as death:
                self._bury(worker, dealt, death)
            except CoreEvalError as error:
                self._run.stop.fail(error)

    async def _start(self, worker: WorkerHandle) -> bool:
        """Start a worker if it is not running; stop the run and return False if that fails."""
        try:
            await worker.start()
            return True
        except CoreEvalError as error:
            self._run.stop.fail(error)
            return False
        except OSError as error:
            why = f"cannot start a worker: {error.strerror or error}"
            hint = "use fewer workers, or raise this user's limits on processes and open files"
            where = self._run.config.run.workers_key
            self._run.stop.fail(RunError(why, where=where, hint=hint))
            return False

    async def _exchange(
        self, worker: WorkerHandle, phase: Phase, dealt: GroupQueue, on_result: OnResult
    ) -> None:
        """Exchange messages with a worker until the phase is done.

        Raises:
            WorkerDied: it died.
        """
        open_ids, told = set[str](), False
        while not dealt.is_done:
            if self._run.stop.asked and not told:
                told = True
                await worker.send(StopRequest("stop"))
            while worker.is_ready and len(open_ids) < self._most_dealt and not told:
                samples = dealt.take(worker.number)
                if not samples:
                    break
                open_ids.update(sample_id for sample_id, _ in samples)
                await worker.send(Assignment(phase, samples))
            message = await worker.inbox.get()
            if isinstance(message, PhaseResult):
                open_ids.discard(message.sample_id)
            self._hear(worker, message, dealt, on_result)

    def _hear(
        self,
        worker: WorkerHandle,
        message: FromWorker | WorkerDied | None,
        dealt: GroupQueue,
        on_result: OnResult,
    ) -> None:
        match message:
            case WorkerDied():
                raise message
            case PhaseResult():
                worker.ended += 1
                worker.deaths = 0
                dealt.end(message.sample_id)
                on_result(message)
                if dealt.is_done:
                    self._wake()
            case WorkerReport():
                self._run.monitor.update_worker(worker.number, worker.ended, message)
            case Note():
                if message.text not in self._notes:
                    self._notes.add(message.text)
                    self._run.tell(self._stage, note=message.text)
            case Failure():
                self._run.stop.fail(message.error)

    def _bury(self, worker: WorkerHandle, dealt: GroupQueue, death: WorkerDied) -> None:
        """Take back a dead worker's samples; end the run if workers keep dying."""
        worker.forget()
        lost = dealt.take_back(worker.number)
        stop = self._run.stop
        if stop.asked:
            return
        worker.deaths += 1
        self._run.tell(
            self._stage,
            note=f"worker {worker.number + 1} died ({death}); "
            f"{format_quantity(len(lost), 'sample is', 'samples are')} restarted",
        )
        if worker.deaths >= MOST_DEATHS:
            stop.fail(
                RunError(
                    f"worker {worker.number + 1} died {MOST_DEATHS} times in a row ({death})",
                    where=self._run.config.run.workers_key,
                    hint="see its messages above; if memory ran out, use fewer workers",
                )
            )
