"""What a schedule has done and will do; nothing is done or written to say so."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coreeval.schedule.plan import Period, planned
from coreeval.schedule.state import State

SHOWN = 5
"""Coming periods that are shown."""


@dataclass(frozen=True, kw_only=True)
class Explained:
    """A schedule as it stands."""

    config: Path
    name: str
    cron: str
    words: str
    timezone: str
    pattern: str
    """The strftime pattern of versions."""
    newest: Period | None
    coming: list[Period]
    """Times on the wall clock of the schedule's zone."""
    state: State


def explain(config: Path, now: datetime) -> Explained:
    """Say what a config's schedule means.

    Raises:
        ConfigError: the config is wrong, or has no schedule.
        RunCorrupt: its state is damaged.
    """
    with planned(config) as plan:
        newest = plan.newest(now)
        return Explained(
            config=plan.path,
            name=plan.name,
            cron=plan.schedule.cron,
            words=plan.times.describe(),
            timezone=plan.schedule.timezone,
            pattern=plan.schedule.version_pattern,
            newest=newest and _on_the_wall(newest, plan.local(newest.due_at)),
            coming=[_on_the_wall(one, plan.local(one.due_at)) for one in plan.coming(now, SHOWN)],
            state=plan.book.read(),
        )


def _on_the_wall(period: Period, local: datetime) -> Period:
    return Period(local, period.version)
