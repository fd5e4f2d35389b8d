"""Reads pages in separate processes, with limits on processor time and memory for each page.

A page is untrusted, and lxml is C: a page that takes too long or crashes affects only its process.
A process ends when its input is closed, even if this process is killed.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

from pydantic import ValidationError

from coreeval.errors import RunError
from coreeval.schema import Value
from coreeval.tools.articles.page import MOST_PAGE_BYTES, PageReading, detect_language, read_page

PAGE_LIMIT_S: Final = 10
"""The most seconds of processor time for a page; a usual one takes 0.02 s (own choice)."""
_MEMORY: Final = 2 << 30
"""The most bytes of address space of a process; 5 MiB of links took 1.1 GiB."""
_LONGEST_ANSWER: Final = 8 << 20
_PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from coreeval.tools.articles.extraction import serve; serve()"
)
MOST_PROCESSES: Final = 4


class _Task(Value):
    """The line before a page."""

    url: str
    size: int


class NotExtracted(Exception):
    """The page could not be read within the limits."""


class PageReaders:
    """A pool of processes that read pages; processes are started on demand.

    Args:
        most: The most processes.
        limit_s: The most seconds of processor time for a page.
    """

    def __init__(self, most: int | None = None, limit_s: int = PAGE_LIMIT_S) -> None:
        self._slots = asyncio.Semaphore(most or min(MOST_PROCESSES, os.cpu_count() or 1))
        self._limit_s = limit_s
        self._idle = list[asyncio.subprocess.Process]()

    async def read(self, body: bytes, url: str) -> PageReading:
        """Read one page.

        Raises:
            NotExtracted: it takes too long or too much memory, or the reader fails.
            RunError: no process can be started.
        """
        async with self._slots, self._process() as process:
            return await _ask(process, body[:MOST_PAGE_BYTES], url)

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """Yield a process; end it if the block fails, since its answer may still arrive."""
        process = self._idle.pop() if self._idle else await self._start()
        try:
            yield process
        except BaseException:
            await _end(process)
            raise
        self._idle.append(process)

    async def _start(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-c", _PROGRAM, *sys.path,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                limit=_LONGEST_ANSWER, start_new_session=True,
                env=_environment(self._limit_s),
            )  # fmt: skip
        except OSError as error:
            raise RunError(
                f"cannot start a process to read pages: {error.strerror or error}",
                where=sys.executable,
                hint="raise this user's limits on processes or memory, then run the command again",
            ) from None

    async def close(self) -> None:
        """End the processes."""
        while self._idle:
            await _end(self._idle.pop())


LIMIT_VARIABLE: Final = "COREEVAL_PAGE_LIMIT_S"
"""The environment variable with a process's limit."""


_KEPT_VARIABLES: Final = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR", "LANG")


def _environment(limit_s: int) -> dict[str, str]:
    """Return the environment of a process, without keys."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "OPENBLAS_NUM_THREADS": "1", LIMIT_VARIABLE: str(limit_s)}


async def _ask(process: asyncio.subprocess.Process, body: bytes, url: str) -> PageReading:
    assert process.stdin and process.stdout
    task = _Task(url=url, size=len(body))
    try:
        process.stdin.write(task.model_dump_json().encode() + b"\n" + body)
        await process.stdin.drain()
        line = await process.stdout.readline()
        reading = PageReading.model_validate_json(line)
    except (ConnectionError, ValidationError, ValueError):
        raise NotExtracted(await _describe_end(process)) from None
    if reading.problem:
        raise NotExtracted(reading.problem)
    return reading


async def _describe_end(process: asyncio.subprocess.Process) -> str:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(5):
            code = await process.wait()
            if code == -signal.SIGPROF:
                return "reading the page took too long"
    return "the page cannot be read"


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    if process.stdin:
        process.stdin.close()
    await process.wait()


# -- in the other process -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wire:
    pages: BinaryIO
    answers: BinaryIO


def serve() -> None:
    """Read pages from standard input, and write the results to standard output."""
    import resource  # not on Windows, where importing other modules must work

    wire = _Wire(sys.stdin.buffer, sys.stdout.buffer)
    sys.stdout = sys.stderr
    logging.disable(logging.CRITICAL)
    limit_s = float(os.environ.get(LIMIT_VARIABLE, PAGE_LIMIT_S))
    detect_language("The model is read before the clock runs.")
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    while line := wire.pages.readline():
        task = _Task.model_validate_json(line)
        reading = _read_within(wire.pages.read(task.size), task.url, limit_s)
        wire.answers.write(reading.model_dump_json().encode() + b"\n")
        wire.answers.flush()


def _read_within(body: bytes, url: str, limit_s: float) -> PageReading:
    """Read one page; the system ends this process if that takes too long."""
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        return read_page(body, url)
    except Exception as error:  # noqa: BLE001 - a page that a library cannot read has no text
        return PageReading(problem=f"the page cannot be read: {type(error).__name__}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
