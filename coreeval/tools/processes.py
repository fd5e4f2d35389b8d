"""Processes that a command starts for itself: only the command handles stop signals."""

import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from asyncio.subprocess import Process


@contextmanager
def hold_signals() -> Iterator[None]:
    """Block stop signals: here during the block, and permanently in a process started in it.

    A terminal and a service manager send them to all processes; only this process handles them.
    Blocks of one thread may overlap, as those of coroutines do: the last one to end unblocks.
    Windows blocks no signals: there the processes started here must stop by themselves.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    if not _HELD.blocks:
        _HELD.before = before
    _HELD.blocks += 1
    try:
        yield
    finally:
        _HELD.blocks -= 1
        if not _HELD.blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, _HELD.before)


class _HeldSignals(threading.local):
    """How many blocks of this thread hold signals back, and what was blocked before them."""

    blocks = 0
    before: Collection[int | signal.Signals] = ()


_HELD = _HeldSignals()


def start_serving(module: str) -> Popen[bytes]:
    """Start a Python process that runs `serve()` of a module, asked and answering through pipes."""
    with hold_signals():
        return Popen(_serving_command(module), stdin=PIPE, stdout=PIPE)


async def start_serving_async(module: str) -> "Process":
    """Do what `start_serving` does, with streams of the running event loop."""
    from asyncio import create_subprocess_exec  # for few commands

    with hold_signals():
        return await create_subprocess_exec(*_serving_command(module), stdin=PIPE, stdout=PIPE)


def _serving_command(module: str) -> list[str]:
    code = f"import sys; sys.path[:] = sys.argv[1:]; from {module} import serve; serve()"
    return [sys.executable, "-P", "-c", code, *sys.path]


def take_answer_stream() -> BinaryIO:
    """Return the stream for the answers of this process; what else is printed goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def describe_ending(code: int) -> str:
    """Return in words how a process ended, from its `returncode`."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def limit_memory(most: int) -> None:
    """Let this process have at most so many bytes of memory, mapped files not counted; on Linux."""
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
