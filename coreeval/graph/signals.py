"""Stopping cleanly: the first signal lets what is in flight come to rest, the second ends it."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coreeval.graph.pool import Stop

HEEDED = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def heeding_signals(stop: Stop, noticed: Callable[[], None]) -> Iterator[None]:
    """Let the first SIGINT or SIGTERM stop what goes on and the second cancel this task.

    Who heeded them before does so again afterwards.

    Args:
        stop: What is asked to stop.
        noticed: Called at the first signal.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def heard(name: str) -> None:
        if stop.asked and task:
            task.cancel()
            return
        stop.ask(name)
        noticed()

    before = {number: signal.getsignal(number) for number in HEEDED}
    handled = _handle(loop, heard)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


def _handle(
    loop: asyncio.AbstractEventLoop, heard: Callable[[str], None]
) -> tuple[signal.Signals, ...]:
    """Install the handlers; outside the main thread signals are the caller's own affair."""
    try:
        for number in HEEDED:
            loop.add_signal_handler(number, heard, number.name)
    except (RuntimeError, ValueError, NotImplementedError):
        return ()
    return HEEDED
