"""The time that a sample may take, of which waiting for its turn at a model is no part.

Nor is the time for which the process was stopped, or its machine asleep. More samples are open than
may ask at a time, and those begun first are served first: how long one waits says how busy a model
is, and nothing about the sample.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from coreeval.tools.awake import told_of_sleep


class SampleClock:
    """Runs while a sample is worked on; as long as one of its requests waits, it rests."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._waits = 0
        self._left_s = 0.0
        self.over = False
        """Set when the sample is left: a request may outlive it."""

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Take the time inside the block as none."""
        self._waits += 1
        if self._waits == 1 and self._runs:
            self._left_s = (self._timeout.when() or 0.0) - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits and self._runs:
                self._timeout.reschedule(asyncio.get_running_loop().time() + self._left_s)

    def slept(self, seconds: float) -> None:
        """Give the sample the seconds back in which the process was asleep."""
        when = self._timeout.when()
        if self._runs and when is not None:
            self._timeout.reschedule(when + seconds)

    @property
    def _runs(self) -> bool:
        return not (self.over or self._timeout.expired())


_CLOCK: ContextVar[SampleClock | None] = ContextVar("sample_clock", default=None)


@asynccontextmanager
async def bounded(seconds: float) -> AsyncIterator[None]:
    """Bound the time that the sample of this block takes.

    Raises:
        TimeoutError: it took longer.
    """
    async with asyncio.timeout(seconds) as timeout:
        clock = SampleClock(timeout)
        token = _CLOCK.set(clock)
        try:
            with told_of_sleep(clock.slept):
                yield
        finally:
            clock.over = True
            _CLOCK.reset(token)


@contextmanager
def waiting() -> Iterator[None]:
    """Let the clock of whoever asks rest inside the block, if there is one."""
    clock = _CLOCK.get()
    if clock is None:
        yield
        return
    with clock.resting():
        yield
