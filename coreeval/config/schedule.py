"""The schedule of a benchmark: due times, names of releases, and hooks.

`Cron` is a cron expression in a time zone. The version of a release is its due time in a strftime
pattern that distinguishes all due times.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, takewhile
from typing import Annotated, Self
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, model_validator

from coreeval.config.base import Section
from coreeval.config.dates import parse_age
from coreeval.config.models import VariableName
from coreeval.errors import suggest_name

CRON_FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31 and within one of the months, or L for the last day",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT; 0 and 7 are Sunday, and ranges go upwards, so Friday to "
    "Sunday is 5-7",
}


FIRST_MOMENT = datetime(1, 1, 3, tzinfo=UTC)
LAST_MOMENT = datetime(9999, 12, 29, tzinfo=UTC)
"""The first and last times that all time zones can represent, with a day of margin."""


@dataclass(frozen=True)
class Cron:
    """Five fields and a time zone, with Debian cron's weekdays, day rules and clock changes.

    A time that the clock skips in spring occurs right after the gap, and a time that it shows twice
    in autumn occurs once. Times follow elapsed hours only if the hour or minute field starts with
    `*`.
    """

    expression: str
    zone: ZoneInfo

    def iter_after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the distinct scheduled times after a moment, in UTC, up to `LAST_MOMENT`."""
        moment = _within_calendar(moment)
        last = moment.astimezone(UTC)  # Python compares times of one zone by wall clock
        for local in _until_calendar_ends(CronSim(self.expression, moment.astimezone(self.zone))):
            time = local.astimezone(UTC)
            if time > last:
                last = time
                yield time

    def find_latest(self, moment: datetime) -> datetime | None:
        """Return the latest scheduled time that is not after a moment, in UTC."""
        moment = _within_calendar(moment)
        start = (moment + timedelta(seconds=1)).astimezone(self.zone)
        times = _until_calendar_ends(CronSim(self.expression, start, reverse=True))
        back = (local.astimezone(UTC) for local in times)
        found = next((due for due in back if due <= moment), None)
        if found is None:
            return None
        # Backwards, the wall clock is used, which is off by an hour within a repeated hour.
        for due in self.iter_after(found):
            if due > moment:
                break
            found = due
        return found

    def describe(self) -> str:
        """Return the expression in English."""
        return str(self._simulation.explain())

    @property
    def times_of_day(self) -> list[tuple[int, int]]:
        """Return the hours and minutes of the schedule's days, sorted."""
        sim = self._simulation
        return sorted((hour, minute) for hour in sim.hours for minute in sim.minutes)

    def iter_days(self, start: date, count: int) -> Iterator[date]:
        """Yield the scheduled days among the `count` days from `start`."""
        sim = self._simulation
        for day in (start + timedelta(days=number) for number in range(count)):
            if day.month in sim.months and sim.match_day(day):
                yield day

    @property
    def _simulation(self) -> CronSim:
        return CronSim(self.expression, datetime(2000, 1, 1, tzinfo=UTC))


def _within_calendar(moment: datetime) -> datetime:
    return min(max(moment, FIRST_MOMENT), LAST_MOMENT)


def _until_calendar_ends(times: Iterator[datetime]) -> Iterator[datetime]:
    """Yield times up to the first or last that Python can represent, where CronSim fails."""
    try:
        for local in times:
            if not FIRST_MOMENT <= local <= LAST_MOMENT:
                return
            yield local
    except OverflowError:
        return


def parse_cron(expression: str, timezone: str) -> Cron:
    """Parse a cron expression and the name of a time zone.

    Raises:
        ValueError: one of them is not valid, or the expression never occurs.
    """
    count = len(expression.split())
    if count != len(CRON_FIELDS):
        raise ValueError(
            f"{expression!r} has {count} fields, not the five of cron: {' '.join(CRON_FIELDS)}, "
            "as in '0 3 * * MON'"
        )
    cron = Cron(expression, load_timezone(timezone))
    try:
        never = next(cron.iter_after(datetime(2000, 1, 1, tzinfo=UTC)), None) is None
    except CronSimError as error:
        raise ValueError(_explain_cron_error(expression, str(error))) from None
    if never:
        raise ValueError(f"{expression!r} never occurs")
    return cron


def _explain_cron_error(expression: str, said: str) -> str:
    """Return which field is wrong and which values it may have."""
    name = said.removeprefix("Bad ")
    if name not in CRON_FIELDS:
        return f"{expression!r} is not a cron expression: {said}"
    part = expression.split()[list(CRON_FIELDS).index(name)]
    return f"{expression!r}: {part!r} is not a valid {name} ({CRON_FIELDS[name]})"


_ZONE_NAME = re.compile(r"[A-Za-z0-9_+/-]{1,100}")


def load_timezone(name: str) -> ZoneInfo:
    """Return a time zone of the IANA database.

    Raises:
        ValueError: there is no zone of this name.
    """
    if not _ZONE_NAME.fullmatch(name):  # ZoneInfo would import each part of the name as a package
        raise ValueError(f"there is no time zone {name[:100]!r}; write it as Europe/Berlin or UTC")
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: the name of a folder, such as Europe
        known = available_timezones()
    if not known:
        raise ValueError("this machine has no time zones: pip install tzdata")
    hint = suggest_name(name, known, "write it as Europe/Berlin or UTC", likeness=0.5)
    raise ValueError(f"there is no time zone {name!r}; {hint}")


BY_WEEK, BY_DAY, BY_MINUTE = "%G.%V", "%Y-%m-%d", "%Y-%m-%dT%H%M%z"
_LONGEST_PATTERN = 64
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_FIRST_DAY = date(2024, 1, 1)
_DAYS = 12 * 366
"""The number of days searched for equal versions; each date falls on every weekday within them."""
_MOST_TIMES = 20_000
"""The most times of a year that are searched: all its hours, or thirteen days of minutes, in which
an hour of the 11th can look like one of the 1st."""


def choose_version_pattern(cron: Cron) -> str:
    """Return the coarsest usual pattern that distinguishes all times: week, day or minute."""
    fitting = (each for each in (BY_WEEK, BY_DAY) if not find_version_clash(cron, each))
    return next(fitting, BY_MINUTE)


def is_version(text: str) -> bool:
    """Return whether a text can be the version of a release."""
    return bool(_VERSION.fullmatch(text))


def check_version_pattern(cron: Cron, pattern: str) -> None:
    """Raise an error if a pattern gives an invalid version, or the same version for two times.

    Raises:
        ValueError: the pattern does one of these.
    """
    if len(pattern) > _LONGEST_PATTERN:
        raise ValueError(
            f"{pattern[:_LONGEST_PATTERN]!r}... has {len(pattern):,} characters, but the "
            f"maximum is {_LONGEST_PATTERN}"
        )
    versions = (moment.strftime(pattern) for times in _list_samples(cron) for moment in times)
    wrong = next((version for version in versions if not is_version(version)), None)
    if wrong is not None:
        raise ValueError(
            f"{pattern!r} gives {wrong!r}, which is not a valid version: a version has up to 64 "
            "characters (letters, digits and . _ + -) and starts with a letter or a digit"
        )
    if twice := find_version_clash(cron, pattern):
        first, second, version = twice
        raise ValueError(
            f"{pattern!r} gives two times of {cron.expression!r} the same version {version!r}: "
            f"{first} and {second}; remove the pattern, or make it more specific (%Y-%m-%d is a "
            "day, %H%M%z a time)"
        )


def format_version(moment: datetime, cron: Cron, pattern: str) -> str:
    """Return the version for a time, by the local time of the schedule's zone."""
    return moment.astimezone(cron.zone).strftime(pattern)


def find_version_clash(cron: Cron, pattern: str) -> tuple[datetime, datetime, str] | None:
    """Return two local times with the same version, and the version; None if there are none."""
    found = (_find_repeat(sample, pattern) for sample in _list_samples(cron))
    return next((pair for pair in found if pair), None)


def _list_samples(cron: Cron) -> tuple[Iterable[datetime], ...]:
    """Return the local times for testing patterns.

    These are all days at one time, all times of one day, the hour that occurs twice, and the times
    of a year, or the first `_MOST_TIMES` of them.
    """
    times = [time(*each) for each in cron.times_of_day]
    year = (_to_local(day, each, cron) for day in cron.iter_days(_FIRST_DAY, 366) for each in times)
    return (
        (_to_local(day, times[0], cron) for day in cron.iter_days(_FIRST_DAY, _DAYS)),
        (_to_local(_FIRST_DAY, each, cron) for each in times),
        (moment.astimezone(cron.zone) for moment in _iter_repeated_hours(cron)),
        islice(year, _MOST_TIMES),
    )


def _to_local(day: date, at: time, cron: Cron) -> datetime:
    return datetime.combine(day, at, cron.zone)


def _find_repeat(
    moments: Iterable[datetime], pattern: str
) -> tuple[datetime, datetime, str] | None:
    seen = dict[str, datetime]()
    for moment in moments:
        version = moment.strftime(pattern)
        if version in seen:
            return seen[version], moment, version
        seen[version] = moment
    return None


def _iter_repeated_hours(cron: Cron) -> Iterator[datetime]:
    """Yield the times around the first moment at which the zone sets its clocks back."""
    day = timedelta(days=1)
    midnights = (datetime.combine(_FIRST_DAY, time(), UTC) + n * day for n in range(366))
    set_back = (at for at in midnights if _utc_offset(cron, at + day) < _utc_offset(cron, at))
    start = next(set_back, None)
    if start:
        end = start + day
        yield from takewhile(lambda at: at < end, cron.iter_after(start - timedelta(hours=1)))


def _utc_offset(cron: Cron, moment: datetime) -> timedelta:
    return moment.astimezone(cron.zone).utcoffset() or timedelta()


class HookConfig(Section):
    """A hook: a shell command, or a web address that takes JSON."""

    command: Annotated[str, Field(min_length=1)] | None = None
    """A command that `/bin/sh` runs in the config's folder; `COREEVAL_…` variables describe the
    event."""
    webhook_env: VariableName | None = None
    """Instead of a command: the name of the environment variable with the address of a webhook that
    accepts JSON."""
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    """The maximum number of tries, with pauses of 1, 2, 4 … seconds between them."""
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    """The time limit for one try, in seconds."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"command": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_destination(self) -> Self:
        if (self.command is None) == (self.webhook_env is None):
            raise ValueError("a hook needs either a command or a webhook_env")
        return self

    @property
    def description(self) -> str:
        """Describe the hook without anything that may be secret."""
        return self.command or f"the webhook in {self.webhook_env}"


class HooksConfig(Section):
    """The hooks for each event."""

    success: tuple[HookConfig, ...] = ()
    """Hooks that run after a release has been made."""
    failure: tuple[HookConfig, ...] = ()
    """Hooks that run when a release has failed, once for each period and kind of error."""
    gate: tuple[HookConfig, ...] = ()
    """Hooks that run when a release has to wait because of a review, failed samples or a gate, once
    for each of these causes."""

    @property
    def all(self) -> tuple[HookConfig, ...]:
        """Return the hooks for all events."""
        return (*self.success, *self.failure, *self.gate)


class ScheduleConfig(Section):
    """When a benchmark is refreshed: a cron expression, or a mapping with more settings."""

    cron: str
    """Minute, hour, day of month, month and day of week, as in cron, where 0 and 7 are Sunday."""
    timezone: str = "UTC"
    """The IANA name of the zone in which the times apply, such as `Europe/Berlin`."""
    version: str | None = None
    """The strftime pattern of a release's version, which is filled with the due time. A pattern
    that gives two due times the same version is refused. None: the coarsest of `%G.%V`, `%Y-%m-%d`
    and `%Y-%m-%dT%H%M%z` that distinguishes all times."""
    stale_after: Annotated[str, AfterValidator(lambda stated: str(parse_age(stated)))] | None = None
    """The maximum age of evidence, such as `90d`: samples of the last release with younger evidence
    are reused. None: no samples are reused."""
    max_failed: Annotated[float, Field(ge=0, le=1)] = 0.05
    """The largest share of failed samples that a release may have. The default is our choice: a
    release is final, so it should not have gaps caused by a model outage."""
    require_review: bool = False
    """Whether a person must review the samples that name living people before a release is made
    (docs/review.md)."""
    gates: Annotated[str, Field(min_length=1)] | None = None
    """A file of gates, relative to the config's folder, or `default` (docs/gates.md). A release
    must pass them before it is made. None: no gates."""
    hooks: HooksConfig = HooksConfig()
    """The hooks to notify; they run only after `coreeval schedule install --accept-hooks` has
    accepted them (docs/schedule.md)."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"cron": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        times = self.cron_times
        if self.version is not None:
            check_version_pattern(times, self.version)
        return self

    @property
    def cron_times(self) -> Cron:
        """Return the times at which the schedule falls due."""
        return parse_cron(self.cron, self.timezone)

    @property
    def webhook_variables(self) -> frozenset[str]:
        """Return the variables that hold webhook addresses."""
        return frozenset(hook.webhook_env for hook in self.hooks.all if hook.webhook_env)

    @property
    def version_pattern(self) -> str:
        """Return the strftime pattern of a version."""
        return self.version or choose_version_pattern(self.cron_times)
