"""A bounded pool of sample threads that can be stopped cleanly.

`Stop` lets samples in flight finish their step. The first signal requests this; the second one
cancels.
"""

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import TypeVar

from langgraph.runtime import RunControl

from coreeval.errors import CoreEvalError

Item = TypeVar("Item")
OBJECTS_BETWEEN_ROUNDS = 20_000
"""The fewest new objects between two garbage collections. Sixty-four samples in flight create and
release ten thousand objects, almost none of them garbage; Python's default of 700 would collect
every four calls."""
ASKING_PER_EXTRA_SAMPLE = 4
"""One extra sample is opened for this many requests in flight: while a sample is between two calls,
another one uses its place at the endpoint."""
BETWEEN_STARTS_S = 0.003
"""Seconds between two starts, a little more than the CPU time of a call: samples that start
together stay synchronised, and each waits for all others at every step
(benchmarks/trivial_nodes.py)."""


class Stop:
    """A request to stop everything in flight at its next step boundary."""

    def __init__(self) -> None:
        self.asked = False
        self.error: CoreEvalError | None = None
        """The error that ended the run, such as a refused key; None if there is none."""
        self._listeners = dict[int, Callable[[str], None]]()

    def ask(self, reason: str) -> None:
        """Start no new samples and let those in flight stop at their next step."""
        self.asked = True
        for listener in list(self._listeners.values()):
            listener(reason)

    def fail(self, error: CoreEvalError) -> None:
        """Stop because of an error that prevents any further work; the first error is reported."""
        self.error = self.error or error
        self.ask(error.kind)

    @contextmanager
    def control(self) -> Iterator[RunControl]:
        """Yield a handle by which one thread can be drained."""
        control = RunControl()
        with self.notify(control.request_drain):
            yield control

    @contextmanager
    def notify(self, listener: Callable[[str], None]) -> Iterator[None]:
        """Call a listener with the reason if the stop is requested during the block."""
        self._listeners[id(listener)] = listener
        try:
            yield
        finally:
            del self._listeners[id(listener)]


async def run_pool(
    ids: Iterable[Item] | AsyncIterator[Item],
    work: Callable[[Item], Awaitable[None]],
    *,
    concurrency: int,
    stop: Stop,
    context: Context | None = None,
) -> None:
    """Work on samples so that `concurrency` of them ask at a time; finishing comes before starting.

    Args:
        ids: The ids of the samples; may be asynchronous.
        work: Processes one sample.
        concurrency: The number of requests in flight; see `max_open_samples`.
        stop: Once it is set, no further samples are started.
        context: The context of the work; the caller's by default.

    Raises:
        CoreEvalError: the error that stopped the pool, once all samples in flight have stopped.
    """
    waiting = ids if isinstance(ids, AsyncIterator) else _AsyncItems(ids)
    all_begun = False

    async def worker() -> None:
        nonlocal all_begun
        async for sample_id in waiting:
            if stop.asked:
                break
            try:
                await work(sample_id)
            except CoreEvalError as error:
                stop.fail(error)
        all_begun = True

    with _freeze_heap():
        async with asyncio.TaskGroup() as group:
            for _ in range(max_open_samples(concurrency)):
                group.create_task(worker(), context=context and context.copy())
                await asyncio.sleep(BETWEEN_STARTS_S)
                if all_begun:
                    break
    if stop.error:
        raise stop.error


class _AsyncItems(AsyncIterator[Item]):
    """An asynchronous iterator over items that exist already."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)

    async def __anext__(self) -> Item:
        try:
            return next(self._items)
        except StopIteration:
            raise StopAsyncIteration from None


def max_open_samples(concurrency: int) -> int:
    """Return the number of samples to keep open for `concurrency` requests in flight."""
    return concurrency + concurrency // ASKING_PER_EXTRA_SAMPLE


@contextmanager
def _freeze_heap() -> Iterator[None]:
    """Exclude the objects that exist now, mainly imports, from garbage collection.

    They are never freed, and scanning them repeatedly takes a fifteenth of a run's computing time;
    scanning the objects in flight takes an eighth, so collections are made rare.
    """
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(max(OBJECTS_BETWEEN_ROUNDS, usual[0]), *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def handle_signals(stop: Stop, noticed: Callable[[], None]) -> Iterator[None]:
    """Stop the work on the first SIGINT or SIGTERM and cancel this task on the second.

    The previous handlers are restored afterwards.

    Args:
        stop: The stop to request.
        noticed: Called at the first signal.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def on_signal(name: str) -> None:
        if stop.asked and task:
            task.cancel()
            return
        stop.ask(name)
        noticed()

    before = {number: signal.getsignal(number) for number in HANDLED_SIGNALS}
    handled = _install_handlers(loop, on_signal)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


def _install_handlers(
    loop: asyncio.AbstractEventLoop, heard: Callable[[str], None]
) -> tuple[signal.Signals, ...]:
    """Install the handlers; outside the main thread, signals are left to the caller."""
    try:
        for number in HANDLED_SIGNALS:
            loop.add_signal_handler(number, heard, number.name)
    except (RuntimeError, ValueError, NotImplementedError):
        return ()
    return HANDLED_SIGNALS
