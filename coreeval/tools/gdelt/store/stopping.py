"""Stopping at a signal: the first asks for a clean end, the second is a KeyboardInterrupt."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether somebody asked to stop, and whom to tell."""

    def __init__(self) -> None:
        self.asked = False
        self._listeners: list[Callable[[], None]] = []

    def ask(self) -> None:
        """Ask for an end after the files in hand."""
        self.asked = True
        for listener in self._listeners:
            listener()

    @contextmanager
    def telling(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call somebody, too, when an end is asked for inside the block."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Ask at SIGINT and SIGTERM; outside the main thread they are the caller's own affair."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._handle)
                  for number in (signal.SIGINT, signal.SIGTERM)}  # fmt: skip
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.ask()
