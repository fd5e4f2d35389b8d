"""A worker of a run as a Ray actor; `ray_workers` starts it and receives its messages."""

import asyncio
import os
import queue
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from coreeval.graph.ray_workers import NodeReport, list_versions
from coreeval.graph.worker import Take, run_worker
from coreeval.graph.worker_messages import Failure, Finish, FromWorker, ToWorker, WorkerStart

WAIT_S: Final = 10.0
"""The most seconds that a request for messages waits for one."""
FORGOTTEN_S: Final = 30.0
"""Seconds without a request for messages after which a worker ends, because its driver is gone."""


class SampleActor:
    """A worker, whose process Ray starts on some node.

    Its samples run in a separate event loop, so that it responds while they are busy.
    """

    def __init__(self) -> None:
        self._said = list[FromWorker | None]()
        self._news = asyncio.Event()
        """Set if there are messages."""
        self._told = queue.SimpleQueue[ToWorker]()
        self._asked_at = time.monotonic()

    async def describe(self, paths: Sequence[Path]) -> NodeReport:
        """Return this node's description, and which of the paths are missing."""
        missing = tuple(path for path in paths if not path.exists())
        return NodeReport(host=socket.gethostname(), versions=list_versions(), missing=missing)

    async def begin(self, start: WorkerStart, environment: Mapping[str, str]) -> None:
        """Start working.

        Args:
            start: The run, and this worker's share of it.
            environment: Variables to set, such as keys: Ray does not record arguments in its state.
        """
        os.environ.update(environment)
        self._asked_at = time.monotonic()
        loop = asyncio.get_running_loop()

        def say(message: FromWorker | None) -> None:
            with suppress(RuntimeError):  # this process ends
                loop.call_soon_threadsafe(self._say, message)

        def work() -> None:
            run_worker(start, lambda message: say(_add_host(message)), self._hand_on)
            say(None)

        threading.Thread(target=work, name="sample-work", daemon=True).start()
        self._watch = asyncio.create_task(self._end_if_forgotten())

    async def give(self, message: ToWorker) -> None:
        """Receive a message."""
        self._told.put(message)

    async def take(self) -> Sequence[FromWorker | None]:
        """Wait for messages and return them; None means the end."""
        self._asked_at = time.monotonic()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), WAIT_S)
        said, self._said = self._said, []
        self._news.clear()
        self._asked_at = time.monotonic()
        return said

    def _say(self, message: FromWorker | None) -> None:
        self._said.append(message)
        self._news.set()

    def _hand_on(self, take: Take) -> None:
        message: ToWorker | None = None
        while not isinstance(message, Finish):
            message = self._told.get()
            take(message)

    async def _end_if_forgotten(self) -> None:
        while time.monotonic() - self._asked_at < FORGOTTEN_S:
            await asyncio.sleep(1)
        os._exit(1)


def _add_host(message: FromWorker) -> FromWorker:
    """Return a message; an error in it says on which node it happened."""
    if isinstance(message, Failure):
        error, host = message.error, socket.gethostname()
        error.where = f"{error.where}, on the node {host}" if error.where else f"the node {host}"
    return message
