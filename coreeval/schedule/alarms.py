"""When which config is looked at: APScheduler's jobs, in memory, over cron's own times."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.date import DateTrigger

from coreeval.config.schedule import Cron


class CronTimes(BaseTrigger):  # type: ignore[misc]
    """Falls due when cron does; in APScheduler's own trigger Monday is 0, and ranges differ."""

    def __init__(self, cron: Cron) -> None:
        self.cron = cron

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime | None:
        """Return the first time after the one before, or after now."""
        return next(self.cron.iter_after(previous or now), None)


class Alarms:
    """Calls with a config when it falls due, from a thread of its own."""

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
        self._scheduler.get_jobs()  # waits for a round in hand, whose jobs a shutdown would lose
        self._scheduler.shutdown()

    def set(self, config: Path, times: Cron) -> None:
        """Call for a config at these times, in place of others that were set before."""
        self._add(CronTimes(times), config, "times")

    def again(self, config: Path, after: timedelta) -> None:
        """Call for a config once beside that."""
        self._add(DateTrigger(datetime.now(UTC) + after), config, "again")

    def _add(self, trigger: BaseTrigger, config: Path, what: str) -> None:
        name = f"{what} {config}"
        self._scheduler.add_job(
            self._call, trigger, args=[config], id=name, name=name, replace_existing=True
        )
