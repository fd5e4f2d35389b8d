"""Limits requests to hosts: pauses between pages, requested longer pauses, and a daily cap.

Each host has a small file, which all processes of a workspace share. Its name is a hash, since a
host may be named after a person.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from coreeval.config.user_files import read_bytes
from coreeval.errors import KnowledgeError
from coreeval.schema import Value
from coreeval.tools.articles.article_text import WhyNoText
from coreeval.tools.files import special_kind, write_text

PATIENCE_S: Final = 60.0
"""The longest pause that a request waits for; hosts that ask for longer ones are skipped."""
LONGEST_PAUSE_S: Final = 24 * 3600.0
"""The longest pause that is obeyed."""
_LOCK_S: Final = 10.0
_DAY_S: Final = 24 * 3600


class HostRecord(Value):
    """The record of a host; times are seconds since 1970."""

    next_at: float = 0.0
    """The time of the next request."""
    paused_until: float = 0.0
    """The end of the pause that the host asked for."""
    day: int = 0
    """The day that `pages` counts."""
    pages: int = 0


@dataclass(frozen=True, kw_only=True)
class HostPaces:
    """The paces of all hosts.

    Args:
        folder: The folder of the hosts' files.
        most_a_day: The most pages of a host on one day (UTC).
        busy_s: The seconds for which a request may occupy a host.
        clock: Returns the seconds since 1970.
        sleep: Waits.
    """

    folder: Path
    most_a_day: int
    busy_s: float
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def turn(self, host: str, left_s: float) -> WhyNoText | None:
        """Wait for a turn and take it; return the reason if there is none in the time left.

        The host counts as occupied until `note_end`.

        Raises:
            KnowledgeError: the host's file cannot be written.
        """
        while True:
            with self._locked(host) as file:
                record, now = self._read(file), self.clock()
                wait_s = max(record.next_at, record.paused_until) - now
                reason = self._refusal(record, now, wait_s, left_s)
                if reason:
                    return reason
                if wait_s <= 0:
                    self._write(file, self._taken(record, now))
                    return None
            await self.sleep(wait_s)
            left_s -= wait_s

    def _refusal(
        self, record: HostRecord, now: float, wait_s: float, left_s: float
    ) -> WhyNoText | None:
        if record.day == int(now // _DAY_S) and record.pages >= self.most_a_day:
            return "daily_cap"
        if record.paused_until - now > min(PATIENCE_S, left_s):
            return "host_busy"
        return "out_of_time" if wait_s > left_s else None

    def _taken(self, record: HostRecord, now: float) -> HostRecord:
        day = int(now // _DAY_S)
        pages = record.pages + 1 if record.day == day else 1
        update = {"next_at": now + self.busy_s, "day": day, "pages": pages}
        return record.model_copy(update=update)

    def note_end(self, host: str, delay_s: float, pause_s: float = 0.0) -> None:
        """Record the end of a request.

        Args:
            host: The host.
            delay_s: The seconds until the next request.
            pause_s: The seconds of a pause that the host asks for.
        """
        with self._locked(host) as file:
            now = self.clock()
            paused_until = now + min(pause_s, LONGEST_PAUSE_S) if pause_s else 0.0
            update = {"next_at": now + delay_s, "paused_until": paused_until}
            self._write(file, self._read(file).model_copy(update=update))

    @contextmanager
    def _locked(self, host: str) -> Iterator[Path]:
        file = self.folder / f"{hashlib.sha256(host.encode()).hexdigest()[:24]}.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(file.with_suffix(".lock"), timeout=_LOCK_S):
                yield file
        except (OSError, Timeout) as error:
            raise KnowledgeError(
                f"the time of the last request to a host cannot be stored: {error}",
                where=str(self.folder),
                hint="make this folder writable; CoreEval coordinates its requests there",
            ) from error

    def _read(self, file: Path) -> HostRecord:
        """Read a file; discard times too far ahead, written before the clock was set back."""
        if special_kind(file):  # the workspace may come from elsewhere
            return HostRecord()
        try:
            record = HostRecord.model_validate_json(read_bytes(file))
        except (FileNotFoundError, ValueError):
            return HostRecord()
        now = self.clock()
        sound = max(record.next_at, record.paused_until) <= now + LONGEST_PAUSE_S
        return record if sound else HostRecord()

    def _write(self, file: Path, record: HostRecord) -> None:
        write_text(file, record.model_dump_json())
