"""Versions of releases made from times: a strftime pattern under which no two times are alike."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import takewhile

from coreeval.config.cron import Cron

BY_WEEK, BY_DAY, BY_MINUTE = "%G.%V", "%Y-%m-%d", "%Y-%m-%dT%H%M%z"
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_START = date(2024, 1, 1)
_DAYS = 12 * 366
"""How far alike versions are looked for: a date has fallen on every weekday by then."""


def coarsest_pattern(cron: Cron) -> str:
    """Return the coarsest usual pattern that tells all times apart: week, day or minute."""
    fitting = (each for each in (BY_WEEK, BY_DAY) if not alike(cron, each))
    return next(fitting, BY_MINUTE)


def check_pattern(cron: Cron, pattern: str) -> None:
    """Refuse a pattern that gives no version, or one version to two times.

    Raises:
        ValueError: it does.
    """
    version = _START.strftime(pattern)
    if not _VERSION.fullmatch(version):
        raise ValueError(
            f"{pattern!r} gives {version!r}, which is no version: up to 64 letters, digits and "
            ". _ + -, the first a letter or a digit"
        )
    if twice := alike(cron, pattern):
        first, second, version = twice
        raise ValueError(
            f"{pattern!r} gives {version!r} to two times of {cron.expression!r}, {first} and "
            f"{second}: leave it out, or say more in it (%Y-%m-%d is a day, %H%M%z a time)"
        )


def version_at(moment: datetime, cron: Cron, pattern: str) -> str:
    """Return the version of a time, by the wall clock of the schedule's zone."""
    return moment.astimezone(cron.zone).strftime(pattern)


def alike(cron: Cron, pattern: str) -> tuple[datetime, datetime, str] | None:
    """Return two local times of one version, if any, and the version.

    Looked at are all days at one time, all times of one day, and the hour that comes twice.
    """
    times = [time(*each) for each in cron.times_of_day]
    samples = (
        (_local(day, times[0], cron) for day in cron.days(_START, _DAYS)),
        (_local(_START, each, cron) for each in times),
        (moment.astimezone(cron.zone) for moment in _in_repeated_hours(cron)),
    )
    found = (_twice(sample, pattern) for sample in samples)
    return next((pair for pair in found if pair), None)


def _local(day: date, at: time, cron: Cron) -> datetime:
    return datetime.combine(day, at, cron.zone)


def _twice(moments: Iterable[datetime], pattern: str) -> tuple[datetime, datetime, str] | None:
    seen = dict[str, datetime]()
    for moment in moments:
        version = moment.strftime(pattern)
        if version in seen:
            return seen[version], moment, version
        seen[version] = moment
    return None


def _in_repeated_hours(cron: Cron) -> Iterator[datetime]:
    """Yield the times around the first moment at which the zone sets its clock back."""
    day = timedelta(days=1)
    midnights = (datetime.combine(_START, time(), UTC) + n * day for n in range(366))
    set_back = (at for at in midnights if _offset(cron, at + day) < _offset(cron, at))
    start = next(set_back, None)
    if start:
        end = start + day
        yield from takewhile(lambda at: at < end, cron.after(start - timedelta(hours=1)))


def _offset(cron: Cron, moment: datetime) -> timedelta:
    return moment.astimezone(cron.zone).utcoffset() or timedelta()
