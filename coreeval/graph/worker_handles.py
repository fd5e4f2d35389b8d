"""Workers as seen by the process that deals out samples: what all have, and local processes.

A handle starts its worker, hands messages over in both directions, and ends it.
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
from coreeval.tools.processes import describe_ending, start_serving_async

ENDING_S: Final = 30.0
"""The most seconds that a worker that has nothing more to do may take to end."""


class WorkerDied(Exception):
    """A worker ended without being told to; the message says how."""


class WorkerHandle(ABC):
    """One worker; if it dies, another takes its number.

    Args:
        run: The run.
        number: The worker's number, from 0.
    """

    def __init__(self, run: RunContext, number: int) -> None:
        self._run, self.number = run, number
        self.inbox = asyncio.Queue[FromWorker | WorkerDied | None]()
        """What it says; None if there is a reason to look at the queue and at the worker again."""
        self.is_ready = True
        """Whether it takes samples; one that has not found a place yet takes none."""
        self.ended = 0
        """The samples that it has ended since it was started."""
        self.deaths = 0
        """The deaths in a row without a sample."""

    @abstractmethod
    async def start(self) -> None:
        """Start the worker if there is none."""

    @abstractmethod
    async def send(self, message: ToWorker) -> None:
        """Send a message; one to a dead worker is lost, and its death is in the inbox."""

    @abstractmethod
    async def close(self, *, at_once: bool) -> None:
        """End the worker; unless `at_once`, tell it so and wait until it has ended."""

    def forget(self) -> None:
        """Forget a worker that died."""
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
    """A worker that is a process on this machine, told and heard through pipes."""

    def __init__(self, run: RunContext, number: int) -> None:
        super().__init__(run, number)
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process if there is none."""
        if self._process:
            return
        self.ended = 0
        self._process = await start_serving_async("coreeval.graph.worker")
        self._reader = asyncio.create_task(self._read(self._process))
        await self.send(self._describe_start())

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
        super().forget()

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
            await process.wait()
            self.forget()
            if reader:
                reader.cancel()


def build_processes(run: RunContext) -> list[WorkerProcess]:
    """Return the handles of the processes that `run.workers` asks for; none is started yet."""
    workers = run.config.run.workers
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if cores and workers > cores:
        note = f"{workers} workers on {cores} cores: more workers than cores gain nothing"
        run.tell(run.stage, note=note)
    return [WorkerProcess(run, number) for number in range(workers)]
