"""One of several processes that refresh the samples of a run; `worker_pool` controls it.

A local worker process receives samples and their phase on standard input and replies on standard
output; `ray_actor` does the same through Ray. A worker has its own models, news and connections to
the run's stores. If the process that started it is gone, it ends immediately.
"""

import asyncio
import os
import socket
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import BinaryIO, Final

from coreeval.errors import CoreEvalError, to_coreeval_error
from coreeval.graph.execute import RunHooks, build_run_context
from coreeval.graph.monitor import Progress, WorkerReport
from coreeval.graph.phases import Phase, open_sample_work
from coreeval.graph.pool import Stop, run_pool
from coreeval.graph.refresh import open_node_context
from coreeval.graph.run import open_workspace
from coreeval.graph.run_context import RunContext
from coreeval.graph.spans import observe_run
from coreeval.graph.worker_messages import (
    Assignment,
    Failure,
    Finish,
    FromWorker,
    Note,
    StopRequest,
    ToWorker,
    WorkerStart,
    pack,
    read_message,
)
from coreeval.graph.worker_shares import share_pace
from coreeval.models.tracing import TRACING
from coreeval.tools.env_file import read_env_file
from coreeval.tools.plugins import adopt_plugins
from coreeval.tools.processes import take_answer_stream
from coreeval.tools.workspace import RunFiles

REPORT_EVERY_S: Final = 1.0
Tell = Callable[[FromWorker], None]
Take = Callable[[ToWorker], None]
Read = Callable[[Take], None]
_Task = tuple[Phase, str, int]


def serve() -> None:
    """Process the samples received on standard input until its end."""
    answers = take_answer_stream()

    def tell(message: FromWorker) -> None:
        answers.write(pack(message))
        answers.flush()

    start = read_message(sys.stdin.buffer)
    code = 0
    if isinstance(start, WorkerStart):
        code = run_worker(start, tell, partial(_read_forever, sys.stdin.buffer))
    os._exit(code)  # threads of packages may still be running


def run_worker(start: WorkerStart, tell: Tell, read: Read) -> int:
    """Process samples until told to stop, and report an error that ended the work.

    The arguments are those of `work`. Return the exit code of a process that does nothing else.
    """
    code = 0
    try:
        asyncio.run(work(start, tell, read))
    except BrokenPipeError:
        code = 1
    except BaseException as error:  # noqa: BLE001 - this process ends, and the other tells why
        found = _unwrap(error)
        if not isinstance(found, CoreEvalError | OSError):
            traceback.print_exc()
        tell(Failure(to_coreeval_error(found)))
    if unsent := TRACING.close():
        tell(Note(unsent))
    return code


def _unwrap(error: BaseException) -> BaseException:
    """Return the only error in a group, or the error itself."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _read_forever(stream: BinaryIO, take: Take) -> None:
    """Pass on every message; end the process if its parent is gone."""
    while True:
        message = read_message(stream)
        if message is None:
            os._exit(1)
        take(message)
        if isinstance(message, Finish):
            return


class Inbox(AsyncIterator[_Task]):
    """The samples assigned to this worker, in order.

    Args:
        stop: Stops the work.
    """

    def __init__(self, stop: Stop) -> None:
        self._tasks = asyncio.Queue[_Task | None]()
        self._stop = stop

    def take(self, message: ToWorker) -> None:
        """Receive a message; called in the event loop."""
        match message:
            case Assignment(phase, samples):
                for sample_id, rank in samples:
                    self._tasks.put_nowait((phase, sample_id, rank))
            case StopRequest(reason):
                self._stop.ask(reason)
            case Finish():
                self.close()

    def close(self, _: str = "") -> None:
        """End the iteration after the samples that have arrived."""
        self._tasks.put_nowait(None)

    async def __anext__(self) -> _Task:
        task = await self._tasks.get()
        if task is None:
            self._tasks.put_nowait(None)  # for other waiting tasks
            raise StopAsyncIteration
        return task


async def work(start: WorkerStart, tell: Tell, read: Read) -> None:
    """Run phases of samples until told to stop.

    Args:
        start: The run, and this worker's share of it.
        tell: Sends a message; called in the event loop.
        read: Calls its argument with every message; runs in a thread.

    Raises:
        CoreEvalError: an error that stops the run.
    """
    loop = asyncio.get_running_loop()
    TRACING.open()

    def watch(progress: Progress) -> None:
        if progress.note:
            loop.call_soon_threadsafe(tell, Note(progress.note))

    reporting = asyncio.create_task(_say_alive(tell))
    try:
        run = await asyncio.to_thread(open_share, start, watch)
    finally:
        reporting.cancel()
    reporting = asyncio.create_task(_report_regularly(run, tell))
    try:
        inbox = Inbox(run.stop)

        def take(message: ToWorker) -> None:
            with suppress(RuntimeError):  # the loop has ended, and this process will
                loop.call_soon_threadsafe(inbox.take, message)

        threading.Thread(target=read, args=(take,), daemon=True).start()
        with observe_run(run) as heard:
            await _work_on(heard, inbox, tell)
    finally:
        await asyncio.to_thread(run.close)
        reporting.cancel()


async def _work_on(run: RunContext, inbox: Inbox, tell: Tell) -> None:
    async with AsyncExitStack() as stack:
        context = await asyncio.to_thread(open_node_context, run, stack)
        samples = await open_sample_work(run, context, stack)

        async def do(task: _Task) -> None:
            tell(await samples.do(*task))

        at_once = run.config.run.concurrency
        with run.stop.notify(inbox.close):
            if run.stop.asked:  # while this worker was starting
                inbox.close()
            await run_pool(inbox, do, concurrency=at_once, stop=run.stop, context=run.context)


async def _say_alive(tell: Tell) -> None:
    """Report regularly while the run is being opened."""
    while True:
        tell(WorkerReport(pid=os.getpid(), host=socket.gethostname()))
        await asyncio.sleep(REPORT_EVERY_S)


async def _report_regularly(run: RunContext, tell: Tell) -> None:
    host, pid = socket.gethostname(), os.getpid()
    while True:
        found = run.monitor.pulse()
        tell(
            WorkerReport(
                pid=pid,
                host=host,
                idle_s=found.idle_s,
                sent=found.sent,
                roles=found.roles,
                waits=found.waits,
                positions=run.monitor.in_flight.positions(),
            )
        )
        await asyncio.sleep(REPORT_EVERY_S)


def open_share(start: WorkerStart, watch: Callable[[Progress], None]) -> RunContext:
    """Return the run, or its second pass, with this worker's share of its pace.

    Raises:
        CoreEvalError: the run cannot be opened.
    """
    files, manifest = RunFiles(start.run_dir), start.manifest
    read_env_file(manifest.config_folder, start.setup.config)  # another machine may read
    shared = replace(start.setup, config=share_pace(start.setup.config, start.number, start.of))
    around, workspace = RunHooks(watch=watch), open_workspace(manifest)
    if start.setup.plugins:
        adopt_plugins(start.setup.plugins)
    run = build_run_context(shared, manifest, files, workspace, around, prices=start.prices)
    if start.stage == run.stage:
        return replace(run, is_worker=True)
    assert run.control
    return replace(run.control, is_worker=True)
