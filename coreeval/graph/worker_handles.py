"""Handles of workers in the process that assigns samples: the interface, and local processes.

A handle starts its worker, passes messages in both directions, and ends it.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Final

from coreeval.graph.run_context import RunContext
from coreeval.graph.worker_messages import (
    HEADER_SIZE,
    Finish,
    FromWorker,
    ToWorker,
    WorkerStart,
    pack,
    unpack_message,
    unpack_size,
)
from coreeval.models.activity import awake_s
from coreeval.tools.processes import describe_ending, start_serving_async

ENDING_S: Final = 30.0
"""The most seconds that an idle worker may take to end."""
SILENT_S: Final = 60.0
"""The seconds without a message after which a worker counts as dead. It sends one each second, and
time for which this process was asleep is not counted."""
STARTING_S: Final = 300.0
"""The same before the first message: starting takes seconds, on a busy machine minutes."""
STOPPING_S: Final = 15.0
"""The same after a stop; a lock of SQLite may block a worker for ten seconds."""


class WorkerDied(Exception):
    """A worker ended unexpectedly; the message says how."""


class WorkerHandle(ABC):
    """A worker; if it dies, another one takes its number.

    Args:
        run: The run.
        number: The worker's number, from 0.
    """

    def __init__(self, run: RunContext, number: int) -> None:
        self._run, self.number = run, number
        self.inbox = asyncio.Queue[FromWorker | WorkerDied | None]()
        """Its messages; None is a signal to check the queue and the worker again."""
        self.is_ready = True
        """Whether it accepts samples; one that Ray has not placed does not."""
        self.ended = 0
        """The number of samples that it has finished since it was started."""
        self.deaths = 0
        """The number of consecutive deaths without a finished sample."""
        self._heard_at: float | None = None
        """The time of its start or last message, on a clock that stops while this process is
        asleep."""
        self._has_spoken = False

    @abstractmethod
    async def start(self) -> None:
        """Start the worker if there is none."""

    @abstractmethod
    async def send(self, message: ToWorker) -> None:
        """Send a message; one to a dead worker is lost, and its death is in the inbox."""

    @abstractmethod
    def kill(self, why: str) -> None:
        """Kill a worker that does not answer; its death is in the inbox at once."""

    def kill_if_silent(self) -> None:
        """Kill a worker that has been silent for too long."""
        if self._heard_at is None:
            return
        most = SILENT_S if self._has_spoken else STARTING_S
        if self._run.stop.asked:
            most = STOPPING_S
        if awake_s() - self._heard_at >= most:
            self._heard_at = None
            self.kill(f"it gave no answer for {most:.0f} s")

    def _expect_words(self) -> None:
        """Record that the worker starts now."""
        self._heard_at, self._has_spoken = awake_s(), False

    def _hear(self, message: FromWorker) -> None:
        """Put a worker's message into the inbox."""
        self._heard_at, self._has_spoken = awake_s(), True
        self.inbox.put_nowait(message)

    @abstractmethod
    async def close(self, *, at_once: bool) -> None:
        """End the worker; unless `at_once`, tell it so and wait until it has ended."""

    def forget(self) -> None:
        """Forget a worker that died."""
        self._heard_at = None
        self._run.monitor.forget_worker(self.number)

    def _describe_start(self) -> WorkerStart:
        run = self._run
        return WorkerStart(
            run_dir=run.files.root.parent if run.before else run.files.root,
            setup=run.setup,
            manifest=run.manifest,
            prices=run.prices,
            stage=run.stage,
            number=self.number,
            of=run.config.run.worker_count,
        )


class WorkerProcess(WorkerHandle):
    """A worker process on this machine, connected by pipes."""

    def __init__(self, run: RunContext, number: int) -> None:
        super().__init__(run, number)
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._endings = set[asyncio.Task[None] | None]()
        """The readers of killed processes, which are ignored."""

    async def start(self) -> None:
        """Start the process if there is none."""
        if self._process:
            return
        self.ended = 0
        self._process = await start_serving_async("coreeval.graph.worker")
        self._reader = asyncio.create_task(self._read(self._process))
        self._expect_words()
        await self.send(self._describe_start())

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        stream = process.stdout
        assert stream
        with suppress(asyncio.IncompleteReadError):
            while True:
                size = unpack_size(await stream.readexactly(HEADER_SIZE))
                message = unpack_message(await stream.readexactly(size))
                if asyncio.current_task() not in self._endings:
                    self._hear(message)
        code = await process.wait()
        if asyncio.current_task() not in self._endings:
            self.inbox.put_nowait(WorkerDied(describe_ending(code)))

    async def send(self, message: ToWorker) -> None:
        """Send a message; one to a dead worker is lost, and its death is in the inbox."""
        assert self._process and self._process.stdin
        with suppress(ConnectionError):
            self._process.stdin.write(pack(message))
            await self._process.stdin.drain()

    def kill(self, why: str) -> None:
        """Kill a process that does not answer; its death is in the inbox at once."""
        assert self._process and self._process.stdin
        self._endings.add(self._reader)
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.stdin.transport.abort()  # wakes a writer that waits for it to read
        self.inbox.put_nowait(WorkerDied(why))

    def forget(self) -> None:
        """Forget a process that died."""
        self._process = None
        super().forget()

    async def close(self, *, at_once: bool) -> None:
        """End the process; unless `at_once`, tell it so and wait until it has ended."""
        if endings := list(filter(None, self._endings)):
            await asyncio.wait(endings, timeout=ENDING_S)
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
            await _wait_briefly(process)
            self.forget()
            if reader:
                reader.cancel()


async def _wait_briefly(process: asyncio.subprocess.Process) -> None:
    """Wait until a killed process has ended; one that waits for a disk may not end."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ENDING_S):
            await process.wait()


def build_processes(run: RunContext) -> list[WorkerProcess]:
    """Return the handles of `run.workers` processes, which are not started yet."""
    workers = run.config.run.workers
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if cores and workers > cores:
        note = f"{workers} workers on {cores} cores: using more workers than cores has no benefit"
        run.tell(run.stage, note=note)
    return [WorkerProcess(run, number) for number in range(workers)]
