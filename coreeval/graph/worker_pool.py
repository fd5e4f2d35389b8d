"""Several processes that refresh the samples of one run.

This process deals out samples and watches; each worker (`worker`) runs sample threads of its own
over the same run.db and calls.db, with its share of the pace. What a dead worker was dealt is dealt
again: its answers are stored, so that only its calls in flight are paid for once more.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Final, Self

from coreeval.errors import RunError
from coreeval.graph.monitor import WorkerReport
from coreeval.graph.phases import OnResult, Phase, PhaseResult
from coreeval.graph.pool import max_open_samples
from coreeval.graph.run_context import RunContext
from coreeval.graph.sample_groups import GroupQueue
from coreeval.graph.worker_messages import (
    HEADER_SIZE,
    Assignment,
    Failure,
    Finish,
    FromWorker,
    Note,
    StopRequest,
    ToWorker,
    WorkerStart,
    pack,
    unpack_message,
    unpack_size,
)
from coreeval.tools.processes import describe_ending, start_serving_async

MOST_DEATHS: Final = 3
"""The deaths of a worker in a row, none of which ended a sample before, that end the run."""
AHEAD: Final = 4
"""The samples that a worker has beyond those it may open, so that it need not wait for more."""
ENDING_S: Final = 30.0
"""The most seconds that a worker that has nothing more to do may take to end."""


class WorkerDied(Exception):
    """A worker ended without being told to; the message says how."""


class _Worker:
    """One worker process, as this process sees it; if it dies, another takes its number."""

    def __init__(self, run: RunContext, number: int) -> None:
        self._run, self.number = run, number
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self.inbox = asyncio.Queue[FromWorker | WorkerDied | None]()
        """What it says; None if there is a reason to look at the queue again."""
        self.ended = 0
        """The samples that it has ended since it was started."""
        self.deaths = 0
        """The deaths in a row without a sample."""

    async def start(self) -> None:
        """Start the process if there is none."""
        if self._process:
            return
        self.ended = 0
        self._process = await start_serving_async("coreeval.graph.worker")
        self._reader = asyncio.create_task(self._read(self._process))
        run = self._run
        await self.send(
            WorkerStart(
                run_dir=run.files.root.parent if run.before else run.files.root,
                stage=run.stage,
                number=self.number,
                of=run.config.run.workers,
            )
        )

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        stream = process.stdout
        assert stream
        with suppress(asyncio.IncompleteReadError):
            while True:
                size = unpack_size(await stream.readexactly(HEADER_SIZE))
                self.inbox.put_nowait(unpack_message(await stream.readexactly(size)))
        code = await process.wait()
        self.inbox.put_nowait(WorkerDied(describe_ending(code)))

    async def send(self, message: ToWorker) -> None:
        """Send a message; one to a dead worker is lost, and its death is in the inbox."""
        assert self._process and self._process.stdin
        with suppress(ConnectionError):
            self._process.stdin.write(pack(message))
            await self._process.stdin.drain()

    def forget(self) -> None:
        """Forget a process that died."""
        self._process = None
        self._run.monitor.forget_worker(self.number)

    async def close(self, *, at_once: bool) -> None:
        """End the process; unless `at_once`, tell it so and wait until it has ended."""
        if not self._process:
            return
        process, reader = self._process, self._reader
        try:
            if not at_once:
                await self.send(Finish())
                async with asyncio.timeout(ENDING_S):
                    await process.wait()
        except TimeoutError:
            pass
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            self.forget()
            if reader:
                reader.cancel()


class WorkerPool:
    """Takes samples through a phase in several processes; see `PhaseRunner`.

    Args:
        run: The run.
        groups: The number of each sample's group.
    """

    def __init__(self, run: RunContext, groups: Mapping[str, int]) -> None:
        self._run, self._groups = run, groups
        self._owners = dict[int, int]()
        self._workers = [_Worker(run, number) for number in range(run.config.run.workers)]
        each = -(-run.config.run.concurrency // run.config.run.workers)
        self._most_dealt = max_open_samples(each) + AHEAD
        self._notes = set[str]()
        self._stage = run.stage

    async def __aenter__(self) -> Self:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if cores and len(self._workers) > cores:
            each = f"{len(self._workers)} workers on {cores} cores"
            self._run.tell(self._stage, note=f"{each}: more workers than cores gain nothing")
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
        """Take samples through a phase.

        Raises:
            CoreEvalError: something that no sample could survive, such as a refused key.
            RunError: a worker dies whenever it is started.
        """
        self._stage = self._run.stage if phase == "finish" else "extract"
        dealt = GroupQueue(ids, self._groups, self._owners)
        stop = self._run.stop
        with stop.notify(self._wake):
            async with asyncio.TaskGroup() as group:
                for worker in self._workers:
                    group.create_task(self._serve(worker, phase, dealt, on_result))
        if stop.error:
            raise stop.error

    def _wake(self, _: str = "") -> None:
        for worker in self._workers:
            worker.inbox.put_nowait(None)

    async def _serve(
        self, worker: _Worker, phase: Phase, dealt: GroupQueue, on_result: OnResult
    ) -> None:
        """Deal samples to one worker until all samples of the phase have ended, or all stop."""
        while not (dealt.is_done or self._run.stop.asked):
            try:
                await worker.start()
                await self._exchange(worker, phase, dealt, on_result)
            except WorkerDied as death:
                self._bury(worker, dealt, death)

    async def _exchange(
        self, worker: _Worker, phase: Phase, dealt: GroupQueue, on_result: OnResult
    ) -> None:
        """Talk to a worker until the phase is done.

        Raises:
            WorkerDied: it died.
        """
        open_ids, told = set[str](), False
        while not dealt.is_done:
            if self._run.stop.asked and not told:
                told = True
                await worker.send(StopRequest("stop"))
            while len(open_ids) < self._most_dealt and not told:
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
        worker: _Worker,
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

    def _bury(self, worker: _Worker, dealt: GroupQueue, death: WorkerDied) -> None:
        """Take back what a dead worker was dealt; end the run if its like die again and again."""
        worker.forget()
        lost = dealt.take_back(worker.number)
        stop = self._run.stop
        if stop.asked:
            return
        worker.deaths += 1
        self._run.tell(
            self._stage,
            note=f"worker {worker.number + 1} died ({death}); {len(lost)} samples are begun again",
        )
        if worker.deaths >= MOST_DEATHS:
            stop.fail(
                RunError(
                    f"worker {worker.number + 1} died {MOST_DEATHS} times in a row ({death})",
                    where="run.workers",
                    hint="see what it said above; if the machine has too little memory, use fewer "
                    "workers",
                )
            )
