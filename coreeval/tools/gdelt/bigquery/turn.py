"""One request's turn: how long it may take, and a way to end it from outside."""

import threading
import time
from collections.abc import Callable

from coreeval.config.remote_news import BigQueryConfig
from coreeval.tools.gdelt.bigquery.outcome import Ended


class Turn:
    """The time of one request; safe to stop from another thread."""

    def __init__(
        self, config: BigQueryConfig, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._end = clock() + config.timeout_s
        self._allowed_s = config.timeout_s
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the turn at its next step."""
        self._stopped.set()

    def wait(self, seconds: float) -> None:
        """Wait, but not beyond the turn."""
        self._stopped.wait(max(0.0, min(seconds, self._end - self._clock())))

    def left_s(self) -> float:
        """Return the seconds that are left.

        Raises:
            Ended: there are none, or somebody stopped it.
        """
        if self._stopped.is_set():
            raise Ended("the request was stopped")
        left = self._end - self._clock()
        if left <= 0:
            raise Ended(f"no answer within {self._allowed_s:g} s (knowledge.bigquery.timeout_s)")
        return left
