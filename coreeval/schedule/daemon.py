"""`schedule run`: a scheduler in the foreground, for containers, that stops cleanly.

Work is done in the main thread, where a run receives signals; APScheduler's thread only reports
which config is due. Its jobs are in memory, with the cron schedule's times.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.date import DateTrigger

from coreeval.config.schedule import Cron
from coreeval.schedule.due import Dependencies, ScheduleResult, refuse_duplicate_configs, run_due
from coreeval.schedule.plan import open_plan


class CronTimesTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires at cron's times; in APScheduler's own trigger, Monday is 0 and ranges differ."""

    def __init__(self, cron: Cron) -> None:
        self.cron = cron

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime | None:
        """Return the first time after the previous one, or after now if there was none."""
        return next(self.cron.iter_after(previous or now), None)


class ConfigTimers:
    """Timers that call a function with a config when it is due, from their own thread."""

    def __init__(self, call: Callable[[Path], None]) -> None:
        self._call = call
        late = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        self._scheduler = BackgroundScheduler(timezone=UTC, job_defaults=late)

    def __enter__(self) -> Self:
        self._scheduler.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._scheduler.pause()
        self._scheduler.get_jobs()  # waits for a round in progress: a shutdown would lose its jobs
        self._scheduler.shutdown()

    def set_times(self, config: Path, times: Cron) -> None:
        """Call for a config at these times, replacing any times set before."""
        self._add(CronTimesTrigger(times), config, "times")

    def call_again(self, config: Path, after: timedelta) -> None:
        """Call for a config once more, in addition to its set times."""
        self._add(DateTrigger(datetime.now(UTC) + after), config, "again")

    def _add(self, trigger: BaseTrigger, config: Path, what: str) -> None:
        name = f"{what} {config}"
        self._scheduler.add_job(
            self._call, trigger, args=[config], id=name, name=name, replace_existing=True
        )


RETRY_AFTER = timedelta(minutes=15)
"""The pause before another check of a config after a check without a result."""
SETTLED_ENDINGS = frozenset({"released", "nothing"})
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class WakeQueue:
    """A queue that wakes the daemon for a config that is due, or for a signal."""

    def __init__(self) -> None:
        self.stopped = False
        self._queue = SimpleQueue[Path | None]()  # a signal may arrive while it is being read

    def wake(self, config: Path) -> None:
        """Request a check of a config."""
        self._queue.put(config)

    def stop(self) -> None:
        """Request an end; a run in progress receives the signal itself."""
        self.stopped = True
        self._queue.put(None)

    def __iter__(self) -> Iterator[Path]:
        """Yield the configs to check, waiting for each, until `stop` is called."""
        while not self.stopped and (config := self._queue.get()) and not self.stopped:
            yield config


def run_schedules(configs: Sequence[Path], dependencies: Dependencies) -> Iterator[ScheduleResult]:
    """Run what falls due until a signal arrives, starting with what was missed.

    Raises:
        CoreEvalError: a config is invalid at the start; later, this is reported and the config is
            checked again.
    """
    queue = WakeQueue()
    refuse_duplicate_configs(configs)
    with _stop_on_signals(queue), ConfigTimers(queue.wake) as timers:
        for config in configs:
            _set_timer(timers, config)
            queue.wake(config)
        for config in queue:
            for done in _run_and_reset(config, dependencies, timers):
                yield done
                if done.ending == "interrupted":
                    return


def _run_and_reset(
    config: Path, dependencies: Dependencies, timers: ConfigTimers
) -> Iterator[ScheduleResult]:
    """Run what is due for a config, then reset its timer from its current content."""
    for done in run_due([config], dependencies):
        yield done
        if done.ending not in SETTLED_ENDINGS:
            timers.call_again(config, RETRY_AFTER)
    try:
        _set_timer(timers, config)
    except Exception:  # noqa: BLE001 - `run_due` has reported it
        timers.call_again(config, RETRY_AFTER)


def _set_timer(timers: ConfigTimers, config: Path) -> None:
    with open_plan(config) as plan:
        timers.set_times(config, plan.times)


@contextmanager
def _stop_on_signals(queue: WakeQueue) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: queue.stop())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
