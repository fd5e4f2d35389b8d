"""Child processes of a command, in which only the command handles stop signals."""

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
    """Block stop signals during the block, and permanently in processes started in it.

    Terminals and service managers send signals to all processes; only this process handles them.
    Blocks of one thread may overlap, as those of coroutines do: the last one to end unblocks.
    Windows cannot block signals: there the child processes must stop by themselves.
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
    """The number of this thread's open blocks, and the signals blocked before them."""

    blocks = 0
    before: Collection[int | signal.Signals] = ()


_HELD = _HeldSignals()


def start_serving(module: str) -> Popen[bytes]:
    """Start a Python process that runs `serve()` of a module and communicates through pipes."""
    with hold_signals():
        return Popen(_serving_command(module), stdin=PIPE, stdout=PIPE)


async def start_serving_async(module: str) -> "Process":
    """Start a process as `start_serving` does, with streams of the running event loop."""
    from asyncio import create_subprocess_exec  # needed by few commands

    with hold_signals():
        return await create_subprocess_exec(*_serving_command(module), stdin=PIPE, stdout=PIPE)


def _serving_command(module: str) -> list[str]:
    code = f"import sys; sys.path[:] = sys.argv[1:]; from {module} import serve; serve()"
    return [sys.executable, "-P", "-c", code, *sys.path]


def take_answer_stream() -> BinaryIO:
    """Return the stream for the answers of this process; other output goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def describe_ending(code: int) -> str:
    """Describe how a process ended, given its `returncode`."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def limit_memory(most: int) -> None:
    """Limit this process's memory in bytes, without mapped files; only on Linux."""
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
