"""Monitors a run: its speed, its waits and its cost."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import get_args

from coreeval.errors import CoreEvalError
from coreeval.graph.cost_meter import CostMeter, describe_excess
from coreeval.graph.recorder import InFlight
from coreeval.models.activity import ActiveCalls
from coreeval.tools.stores.heartbeat import (
    Cause,
    CostForecast,
    ProgressSnapshot,
    RoleSpeed,
    Spend,
    Wait,
    WorkerSnapshot,
)
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
"""The fewest ended samples for which a rate is computed."""
SHORTEST_S = 3.0
"""The fewest seconds over which a rate is computed; before, it says nothing about the rest."""
FRESH_S = 0.5
"""Seconds for which a pulse is reused: hundreds of samples may end per second."""
_ORDER: tuple[Cause, ...] = get_args(Cause)
"""Causes in order of how much they explain, most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """The state of one of several processes of a run, reported every second."""

    pid: int
    host: str
    idle_s: float = 0.0
    """The seconds since its last progress."""
    sent: int = 0
    """The number of requests in flight."""
    roles: tuple[RoleSpeed, ...] = ()
    waits: tuple[Wait, ...] = ()
    positions: Mapping[str, dict[str, str]] = field(default_factory=dict)
    """The node of each sample in flight and its start time."""


REPORTS_OF_A_RATE = 10
"""The number of reports of a worker, one per second, over which its calls per second are
computed."""


class _WorkerRecord:
    """The last report of a worker, and its numbers of answered calls at earlier reports."""

    def __init__(self, report: WorkerReport) -> None:
        self.report, self.ended = report, 0
        self._answers = deque[tuple[float, int]](maxlen=REPORTS_OF_A_RATE)

    def add(self, at: float, ended: int, report: WorkerReport) -> None:
        self.report, self.ended = report, ended
        self._answers.append((at, sum(speed.answers for speed in report.roles)))

    def age_s(self, now: float) -> float:
        return round(now - self._answers[-1][0], 1)

    def describe(self, number: int, now: float) -> WorkerSnapshot:
        (since, before), (last, answers) = self._answers[0], self._answers[-1]
        return WorkerSnapshot(
            number=number,
            pid=self.report.pid,
            host=self.report.host,
            ended=self.ended,
            per_second=round((answers - before) / (last - since), 1) if last > since else 0.0,
            sent=self.report.sent,
            age_s=self.age_s(now),
            waits=self.report.waits,
        )


class RateMeter:
    """Measures the recent rate of events per minute.

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ended = 0
        self._marks = deque([(clock(), 0)])
        """Times with the number of events so far, at least a second apart."""

    def count(self, more: int = 1) -> None:
        """Count a number of new events."""
        self._ended += more
        if self._clock() - self._marks[-1][0] >= 1.0:
            self._marks.append((self._clock(), self._ended))

    def per_minute(self) -> float | None:
        """Return the rate; None if there were too few events or too little time."""
        now = self._clock()
        while len(self._marks) > 1 and now - self._marks[1][0] > RECENT_S:
            self._marks.popleft()
        since, before = self._marks[0]
        if self._ended < FEWEST or now - since < SHORTEST_S:
            return None
        return round(60 * (self._ended - before) / (now - since), 3)


class Monitor:
    """Reports a run's progress and pulse, on every change and every few seconds.

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
        self._meter, self._costs = RateMeter(clock), CostMeter()
        self._told_excess = False
        self._moved_at = clock()
        self._pulse: ProgressSnapshot | None = None
        self._pulse_at = 0.0
        self._workers = dict[int, _WorkerRecord]()

    def update_worker(self, number: int, ended: int, report: WorkerReport) -> None:
        """Record a worker's report, and how many samples it has finished."""
        record = self._workers.setdefault(number, _WorkerRecord(report))
        record.add(self._clock(), ended, report)

    def forget_worker(self, number: int) -> None:
        """Record that a worker has ended."""
        self._workers.pop(number, None)

    def on_progress(self, progress: Progress) -> None:
        """Record the run's progress and pass it on."""
        self._moved_at, self._note = self._clock(), progress.note or self._note
        if progress.stage == "stopping":  # the stage continues
            self._watch(progress)
            return
        if progress.stage != self._place.stage:
            self._meter, self._pulse, self._note = RateMeter(self._clock), None, progress.note
            self._costs = CostMeter()
            self._place = progress
        elif progress.total:
            if progress.done != self._place.done:
                self._meter.count(max(1, progress.done - self._place.done))
            if progress.done == progress.total:  # the cached pulse is out of date
                self._pulse = None
            self._place = progress
        self._watch(replace(progress, pulse=self.pulse()))

    def pulse(self) -> ProgressSnapshot:
        """Return the run's pulse, at most half a second old."""
        now = self._clock()
        if self._pulse is None or now - self._pulse_at > FRESH_S:
            self._pulse, self._pulse_at = self._measure(now), now
        return self._pulse

    def _measure(self, now: float) -> ProgressSnapshot:
        rate, place = self._meter.per_minute(), self._place
        workers = list(self._workers.values())
        moved = max(
            self._moved_at,
            self.active_calls.moved_at,
            self.in_flight.moved_at,
            *(now - each.age_s(now) - each.report.idle_s for each in workers),
        )
        left_s = round(60 * (place.total - place.done) / rate, 1) if rate else None
        return ProgressSnapshot(
            stage=place.stage,
            done=place.done,
            total=place.total,
            per_minute=rate,
            left_s=left_s,
            ends_at=self.in_flight.find_time(left_s) if left_s else "",
            cost=self._forecast_cost(place),
            idle_s=round(max(0.0, now - moved), 1),
            sent=self.active_calls.in_flight + sum(each.report.sent for each in workers),
            roles=_merge_speeds(
                [self.active_calls.speeds(), *(each.report.roles for each in workers)]
            ),
            waits=self._list_waits(now - moved),
            spend=self._spent,
            workers=tuple(each.describe(n, now) for n, each in sorted(self._workers.items())),
        )

    def _forecast_cost(self, place: Progress) -> CostForecast | None:
        spent = self._spent
        return self._costs.forecast(place.done, place.total, spent) if spent else None

    def _find_excess(self, pulse: ProgressSnapshot) -> str:
        """Return the note that the budget will not suffice, the first time that this is so."""
        found, spend = pulse.cost, pulse.spend
        if self._told_excess or not (found and spend and found.exceeds_budget):
            return ""
        self._told_excess = True
        return describe_excess(pulse.stage, found, spend)

    def _list_waits(self, idle_s: float) -> tuple[Wait, ...]:
        """Return what the run is waiting for; steps only if no call and no news explains it."""
        steps = self.in_flight.list_waits()
        found = [*self.active_calls.waits(), *(wait for wait in steps if wait.cause == "news")]
        found += _merge_waits(each.report.waits for each in self._workers.values())
        if self._place.stage == "gather":
            seconds = round(max(0.0, idle_s), 1)
            found.append(
                Wait(cause="news", who="gather", number=1, seconds=seconds, reason=self._note)
            )
        return tuple(sorted(found or steps, key=lambda wait: _ORDER.index(wait.cause)))

    async def beat(self, store: RunStore) -> None:
        """Write a heartbeat to the store and notify watchers."""
        with suppress(CoreEvalError):  # the code that pays reports this error
            self._spent = await asyncio.to_thread(self._spend)
            self._costs.add(self._place.done, self._spent)
        self._pulse = None
        pulse = self.pulse()
        positions = self.in_flight.positions()
        for each in self._workers.values():
            positions |= each.report.positions
        store.beat(positions, pulse)
        self._watch(replace(self._place, note=self._find_excess(pulse), pulse=pulse))


def _merge_speeds(groups: Iterable[Iterable[RoleSpeed]]) -> tuple[RoleSpeed, ...]:
    """Return the speed of each role over all processes, the slowest first."""
    sums = dict[tuple[str, str], tuple[int, float]]()
    for speed in chain.from_iterable(groups):
        key = speed.role, speed.model
        answers, seconds = sums.get(key, (0, 0.0))
        sums[key] = answers + speed.answers, seconds + speed.answers * speed.mean_s
    found = [
        RoleSpeed(role=role, model=model, answers=answers, mean_s=round(seconds / answers, 3))
        for (role, model), (answers, seconds) in sums.items()
    ]
    return tuple(sorted(found, key=lambda speed: -speed.mean_s))


def _merge_waits(groups: Iterable[Iterable[Wait]]) -> list[Wait]:
    """Return what all processes wait for, each cause with the longest wait."""
    found = dict[tuple[str, str], Wait]()
    for wait in chain.from_iterable(groups):
        key = wait.cause, wait.who
        one = found.get(key, wait)
        number = wait.number + (one.number if key in found else 0)
        longest = max(one, wait, key=lambda each: each.seconds)
        found[key] = replace(longest, number=number, reason=longest.reason or wait.reason)
    return list(found.values())


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
