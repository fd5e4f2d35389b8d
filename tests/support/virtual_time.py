"""An event loop in which time passes only where everything waits, and then at once."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumps(selectors.SelectSelector):
    """Waits no real time for a timer."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            self.now += timeout
            timeout = 0
        return super().select(timeout)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at second 0."""

    def __init__(self) -> None:
        self._jumps = _Jumps()
        super().__init__(self._jumps)

    def time(self) -> float:
        return self._jumps.now

    def pass_over(self, seconds: float) -> None:
        """Let time pass at once, whatever falls due meanwhile."""
        self._jumps.now += seconds


def in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end what may take virtual hours."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def now() -> float:
    """Return the second of the running loop."""
    return asyncio.get_running_loop().time()


def fall_asleep(seconds: float) -> None:
    """Let so much time pass in which the loop does nothing: its process is stopped."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.pass_over(seconds)
