"""The time that a process was awake: not stopped, nor put to sleep with its machine.

What comes in meanwhile, such as an answer, waits to be read. Whoever gives up after so many seconds
must not count those in which nobody could look.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

TICK_S = 1.0
ASLEEP_S = 5.0
"""The delay in seconds after which a tick shows that the process slept; no callback takes that
long."""
Told = Callable[[float], None]


class _Ticker:
    """A ticker in one event loop; late ticks show how long the process was asleep."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.told: list[Told] = []
        self._time = loop.time
        self._call_at = loop.call_at
        self._slept_s = 0.0
        self._wind()

    def _wind(self) -> None:
        self._due = self._time() + TICK_S
        self._call_at(self._due, self._tick)

    def _tick(self) -> None:
        late = self._late_s()
        self._slept_s += late
        self._wind()
        for told in list(self.told) if late else ():
            told(late)

    def _late_s(self) -> float:
        late = self._time() - self._due
        return late if late > ASLEEP_S else 0.0

    def now(self) -> float:
        return self._time() - self._slept_s - self._late_s()


_TICKERS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Ticker] = WeakKeyDictionary()


def _ticker() -> _Ticker:
    loop = asyncio.get_running_loop()
    if loop not in _TICKERS:
        _TICKERS[loop] = _Ticker(loop)
    return _TICKERS[loop]


def awake_s() -> float:
    """Return the running loop's clock in seconds, without the time that the process was asleep."""
    return _ticker().now()


@contextmanager
def told_of_sleep(told: Told) -> Iterator[None]:
    """Notify a listener, inside the block, of the seconds that the process was asleep.

    It is called on waking, before the callbacks that fell due in the meantime.
    """
    ticker = _ticker()
    ticker.told.append(told)
    try:
        yield
    finally:
        ticker.told.remove(told)
