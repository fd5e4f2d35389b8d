"""Watches a run from inside: its speed, what it waits for, what it has spent."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import get_args

from coreeval.errors import CoreEvalError
from coreeval.graph.recorder import InFlight
from coreeval.models.activity import ActiveCalls
from coreeval.tools.stores.heartbeat import Cause, ProgressSnapshot, Spend, Wait
from coreeval.tools.stores.run_store import RunStore


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The position of a run."""

    stage: str
    """A node of the run graph (`RUN_NODES`), or `extract`, `gather`, `embed`, `reword` or
    `telemetry`."""
    done: int = 0
    total: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Samples by outcome so far."""
    note: str = ""
    pulse: "ProgressSnapshot | None" = None
    """The run's pace, spending and waits; None if this is not a run."""


Watch = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Ignore the progress."""


BEAT_EVERY_S = 5.0
RECENT_S = 300.0
"""Seconds over which a rate is computed: long compared with a sample, short compared with a
night."""
FEWEST = 3
"""Fewest ended samples for which a rate is computed."""
FRESH_S = 0.5
"""Seconds for which a pulse is reused: hundreds of samples may end per second."""
_ORDER: tuple[Cause, ...] = get_args(Cause)
"""Causes in order of how much they explain, most first."""


class RateMeter:
    """Meter of how many things ended per minute recently.

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ended = 0
        self._marks = deque([(clock(), 0)])
        """Times with the number of things ended by then, at least a second apart."""

    def count(self, more: int = 1) -> None:
        """Count so many more."""
        self._ended += more
        if self._clock() - self._marks[-1][0] >= 1.0:
            self._marks.append((self._clock(), self._ended))

    def per_minute(self) -> float | None:
        """Return the rate; None if too few have ended to say."""
        now = self._clock()
        while len(self._marks) > 1 and now - self._marks[1][0] > RECENT_S:
            self._marks.popleft()
        since, before = self._marks[0]
        if self._ended < FEWEST or now <= since:
            return None
        return round(60 * (self._ended - before) / (now - since), 3)


class Monitor:
    """Reporter of a run's progress and pulse, on every change and every few seconds.

    Args:
        watch: Receives progress.
        in_flight: The samples in progress.
        active_calls: The calls in flight.
        spend: Reads what the run has spent from the ledger.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self,
        watch: Watch,
        in_flight: InFlight,
        active_calls: ActiveCalls,
        spend: Callable[[], Spend],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.in_flight = in_flight
        self.active_calls = active_calls
        self._watch, self._spend, self._clock = watch, spend, clock
        self._place = Progress(stage="plan")
        """The last progress that had a number."""
        self._note = ""
        self._spent: Spend | None = None
        self._meter = RateMeter(clock)
        self._moved_at = clock()
        self._pulse: ProgressSnapshot | None = None
        self._pulse_at = 0.0

    def on_progress(self, progress: Progress) -> None:
        """Record the run's progress and pass it on."""
        self._moved_at, self._note = self._clock(), progress.note or self._note
        if progress.stage == "stopping":  # the stage goes on
            self._watch(progress)
            return
        if progress.stage != self._place.stage:
            self._meter, self._pulse, self._note = RateMeter(self._clock), None, progress.note
            self._place = progress
        elif progress.total:
            if progress.done != self._place.done:
                self._meter.count(max(1, progress.done - self._place.done))
            if progress.done == progress.total:  # what was known half a second ago is not true now
                self._pulse = None
            self._place = progress
        self._watch(replace(progress, pulse=self.pulse()))

    def pulse(self) -> ProgressSnapshot:
        """Return where the run is, at most half a second old."""
        now = self._clock()
        if self._pulse is None or now - self._pulse_at > FRESH_S:
            self._pulse, self._pulse_at = self._measure(now), now
        return self._pulse

    def _measure(self, now: float) -> ProgressSnapshot:
        rate, place = self._meter.per_minute(), self._place
        moved = max(self._moved_at, self.active_calls.moved_at, self.in_flight.moved_at)
        return ProgressSnapshot(
            stage=place.stage,
            done=place.done,
            total=place.total,
            per_minute=rate,
            left_s=round(60 * (place.total - place.done) / rate, 1) if rate else None,
            idle_s=round(max(0.0, now - moved), 1),
            sent=self.active_calls.in_flight,
            roles=self.active_calls.speeds(),
            waits=self._list_waits(now - moved),
            spend=self._spent,
        )

    def _list_waits(self, idle_s: float) -> tuple[Wait, ...]:
        """Return what the run is waiting for; steps only if no call and no news explains it."""
        steps = self.in_flight.list_waits()
        found = [*self.active_calls.waits(), *(wait for wait in steps if wait.cause == "news")]
        if self._place.stage == "gather":
            seconds = round(max(0.0, idle_s), 1)
            found.append(
                Wait(cause="news", who="gather", number=1, seconds=seconds, reason=self._note)
            )
        return tuple(sorted(found or steps, key=lambda wait: _ORDER.index(wait.cause)))

    async def beat(self, store: RunStore) -> None:
        """Write a heartbeat to the store and notify watchers."""
        with suppress(CoreEvalError):  # whoever pays will stumble over it and say so
            self._spent = await asyncio.to_thread(self._spend)
        self._pulse = None
        pulse = self.pulse()
        store.beat(self.in_flight.positions(), pulse)
        self._watch(replace(self._place, note="", pulse=pulse))


@asynccontextmanager
async def beat_regularly(monitor: Monitor, store: RunStore) -> AsyncIterator[None]:
    """Write a heartbeat every few seconds while the block runs."""

    async def beat() -> None:
        while True:
            await monitor.beat(store)
            await asyncio.sleep(BEAT_EVERY_S)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
