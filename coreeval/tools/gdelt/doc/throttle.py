"""Asking slowly, all processes of a user together: spacing, and a circuit breaker.

GDELT counts requests by address, and repeated violations extend the penalty for minutes (research:
gdelt §1). So the time of the last request and the run of failures are kept in one small file.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from coreeval.errors import KnowledgeError
from coreeval.schema import NoEvidence, Value

IN_A_ROW = 3
"""Requests that come to nothing one after the other before the service is left alone."""
MOST_DOUBLINGS = 2
"""Of the first pause: one minute, two, then four."""
LONGEST_PAUSE_S = 600.0
"""Longest pause, be it ours or one that a Retry-After header asks for."""
SHORTEST_SLEEP_S = 0.001
LOCK_S = 10.0
"""Longest wait for the file, which nobody holds for more than a moment."""


class ThrottleRecord(Value):
    """What the file holds; times are seconds since 1970."""

    last: float = 0.0
    """When the last request was sent."""
    failures: int = 0
    """Requests in a row that were throttled or came to nothing."""
    trouble: NoEvidence = "throttled"
    """What became of the last one of them."""
    shut_until: float = 0.0
    """Nobody asks before."""


@dataclass(frozen=True, kw_only=True)
class RequestThrottle:
    """Gives turns to ask; processes with the same file take turns with one another."""

    file: Path
    spacing_s: float
    pause_s: float
    """First pause after `IN_A_ROW` failures; it doubles `MOST_DOUBLINGS` times."""
    probe_s: float
    """How long one request may try the service after a pause, while the others wait."""
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random
    """From 0 to 1; pauses are up to a tenth longer, so that processes do not return at once."""

    async def turn(self, left_s: float) -> bool:
        """Wait for a turn and take it; False, at once, if none comes in the time left.

        What was waited counts against it, not the time of day, which may be set meanwhile.

        Raises:
            KnowledgeError: the file cannot be written.
        """
        while True:
            with self._lock_record() as record:
                now = self.clock()
                wait_s = max(0.0, self._ready(record) - now)
                if wait_s > left_s:
                    return False
                if not wait_s:
                    self._write(self._next_record(record, now))
                    return True
            await self.sleep(max(wait_s, SHORTEST_SLEEP_S))
            left_s -= wait_s

    def note_answer(self) -> None:
        """Note that the service answered, whatever it said about the question."""
        with self._lock_record() as record:
            self._write(record.model_copy(update={"failures": 0, "shut_until": 0.0}))

    def note_failure(self, trouble: NoEvidence, retry_after_s: float | None = None) -> None:
        """Note a request that was throttled or came to nothing; the third in a row pauses all."""
        with self._lock_record() as record:
            failures = record.failures + 1
            pause_s = max(retry_after_s or 0.0, self._pause_s(failures))
            shut_until = self.clock() + min(pause_s, LONGEST_PAUSE_S)
            if failures < IN_A_ROW:
                shut_until = max(shut_until, record.shut_until)
            self._write(
                record.model_copy(
                    update={"failures": failures, "trouble": trouble, "shut_until": shut_until}
                )
            )

    def trouble(self) -> NoEvidence:
        """Return what became of the last request that was not answered, whoever sent it."""
        with self._lock_record() as record:
            return record.trouble

    def shut_until(self) -> float | None:
        """Return when the service may be asked again, if it is left alone now."""
        with self._lock_record() as record:
            return record.shut_until if self.clock() < record.shut_until else None

    def _ready(self, record: ThrottleRecord) -> float:
        """Return when the next turn is."""
        return max(record.last + self.spacing_s, record.shut_until)

    def _next_record(self, record: ThrottleRecord, now: float) -> ThrottleRecord:
        """Note a turn; after a pause it is a trial, and the others wait for what comes of it."""
        trial = record.failures >= IN_A_ROW
        shut_until = now + self.probe_s if trial else record.shut_until
        return record.model_copy(update={"last": now, "shut_until": shut_until})

    def _pause_s(self, failures: int) -> float:
        if failures < IN_A_ROW:
            return 0.0
        doubled = self.pause_s * 2.0 ** min(failures - IN_A_ROW, MOST_DOUBLINGS)
        return doubled * (1 + self.jitter() / 10)

    @contextmanager
    def _lock_record(self) -> Iterator[ThrottleRecord]:
        """Hold the file, and give what it says; one that says nothing sensible is a new one."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.file.with_suffix(".lock"), timeout=LOCK_S):
                yield self._read()
        except (OSError, Timeout) as error:
            raise KnowledgeError(
                f"the time of the last request to DOC 2.0 cannot be kept: {error}",
                where=str(self.file),
                hint="make this file's folder writable; processes agree there on when to ask",
            ) from error

    def _read(self) -> ThrottleRecord:
        """Read the file; times too far ahead were written before the clock was set back."""
        try:
            record = ThrottleRecord.model_validate_json(self.file.read_bytes())
        except (FileNotFoundError, ValueError):
            return ThrottleRecord()
        now = self.clock()
        sound = record.last <= now and record.shut_until <= now + LONGEST_PAUSE_S
        return record if sound else ThrottleRecord()

    def _write(self, record: ThrottleRecord) -> None:
        """Write beside the file and rename, so that a kill leaves the old one."""
        beside = self.file.with_suffix(".new")
        beside.write_text(record.model_dump_json(), encoding="utf-8")
        beside.replace(self.file)
