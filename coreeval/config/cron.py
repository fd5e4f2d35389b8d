"""A cron expression in a time zone, and the moments at which it falls due."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31 and in one of the months, or L for the last",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT; 0 and 7 are Sunday, and a range goes upwards, so that Friday "
    "to Sunday is 5-7",
}


@dataclass(frozen=True)
class Cron:
    """Five fields and a zone, with the weekdays, day rules and clock changes of Debian's cron.

    A time that the clock skips in spring comes right after the gap, one that it shows twice in
    autumn comes once; only where hour or minute start with `*` do the times follow real hours.
    """

    expression: str
    zone: ZoneInfo

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the times after a moment in UTC, each once."""
        last = moment.astimezone(UTC)  # times of one zone are compared by the wall clock
        for local in CronSim(self.expression, moment.astimezone(self.zone)):
            time = local.astimezone(UTC)
            if time > last:
                last = time
                yield time

    def latest(self, moment: datetime) -> datetime | None:
        """Return the newest time that is not after a moment, in UTC."""
        start = (moment + timedelta(seconds=1)).astimezone(self.zone)
        back = (local.astimezone(UTC) for local in CronSim(self.expression, start, reverse=True))
        found = next((time for time in back if time <= moment), None)
        if found is None:
            return None
        # Backwards the wall clock decides, which is an hour out inside an hour that comes twice.
        for time in self.after(found):
            if time > moment:
                break
            found = time
        return found

    def words(self) -> str:
        """Return the expression in English."""
        return str(self._sim.explain())

    @property
    def times_of_day(self) -> list[tuple[int, int]]:
        """The hours and minutes of its days, sorted."""
        sim = self._sim
        return sorted((hour, minute) for hour in sim.hours for minute in sim.minutes)

    def days(self, start: date, count: int) -> Iterator[date]:
        """Yield its days among `count` days from `start` on."""
        sim = self._sim
        for day in (start + timedelta(days=number) for number in range(count)):
            if day.month in sim.months and sim.match_day(day):
                yield day

    @property
    def _sim(self) -> CronSim:
        return CronSim(self.expression, datetime(2000, 1, 1, tzinfo=UTC))


def read_cron(expression: str, timezone: str) -> Cron:
    """Read an expression and the name of a zone.

    Raises:
        ValueError: one of them is none, or the expression never falls due.
    """
    count = len(expression.split())
    if count != len(FIELDS):
        raise ValueError(
            f"{expression!r} has {count} fields, not the five of cron: {' '.join(FIELDS)}, as in "
            "'0 3 * * MON'"
        )
    cron = Cron(expression, read_zone(timezone))
    try:
        never = next(cron.after(datetime(2000, 1, 1, tzinfo=UTC)), None) is None
    except CronSimError as error:
        raise ValueError(_problem(expression, str(error))) from None
    if never:
        raise ValueError(f"{expression!r} never falls due")
    return cron


def _problem(expression: str, said: str) -> str:
    """Say which field is wrong and what may stand there."""
    name = said.removeprefix("Bad ")
    if name not in FIELDS:
        return f"{expression!r} is no cron expression: {said}"
    part = expression.split()[list(FIELDS).index(name)]
    return f"{expression!r}: {part!r} is no {name} ({FIELDS[name]})"


def read_zone(name: str) -> ZoneInfo:
    """Return a time zone of the IANA database.

    Raises:
        ValueError: there is none of this name.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: the name of a folder, such as Europe
        known = available_timezones()
    if not known:
        raise ValueError("this machine has no time zones: pip install tzdata")
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else "write it as Europe/Berlin or UTC"
    raise ValueError(f"there is no time zone {name!r}; {hint}")
