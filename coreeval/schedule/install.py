"""The units by which cron, systemd or GitHub looks at schedules: made here, written elsewhere.

All of them look more often than anything is due, and let `due` decide: it knows the config's time
zone, makes up what was missed, and goes on with a run that failed.
"""

import hashlib
import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import metadata, resources
from itertools import islice, pairwise
from pathlib import Path
from string import Template

from coreeval.errors import UsageError
from coreeval.schedule.plan import Plan
from coreeval.tools.workspace import HOME_VARIABLE

LOOK_EVERY = timedelta(minutes=15)
"""How often cron and systemd look; every minute where a schedule is due more often than this."""
GITHUB_LEAST = 5
"""GitHub's shortest interval, in minutes."""


class Unit(Template):
    """A unit file with @@names; shells, GitHub and systemd have uses of their own for $."""

    delimiter = "@@"


@dataclass(frozen=True)
class Looks:
    """Some schedules that are looked at together."""

    plans: Sequence[Plan]
    accepted: Sequence[str] = ()
    """Digests of what was agreed to, for machines that have no record of it."""

    @property
    def unit(self) -> str:
        """The name of the unit, the same each time."""
        return "-".join(["coreeval", *(plan.name for plan in self.plans)])

    @property
    def command(self) -> list[str]:
        """What is run, with all paths absolute: neither cron nor systemd has the user's PATH.

        With -P, Python imports nothing from the folder that it is started in: the config's folder
        may be a stranger's.
        """
        configs = [str(plan.path) for plan in self.plans]
        return [sys.executable, *("-P", "-m", "coreeval", "schedule", "due", "--quiet"), *configs]

    @property
    def variables(self) -> dict[str, str]:
        """What the command needs of the environment in which it is installed."""
        home = os.environ.get(HOME_VARIABLE)
        return {HOME_VARIABLE: str(Path(home).expanduser().resolve())} if home else {}

    @property
    def often(self) -> bool:
        """Whether one of them is due more often than `LOOK_EVERY`."""
        start = datetime(2024, 1, 1, tzinfo=UTC)
        return any(
            later - sooner < LOOK_EVERY
            for plan in self.plans
            for sooner, later in pairwise(islice(plan.times.iter_after(start), 100))
        )

    def spread(self, below: int) -> int:
        """Return a number of its own, so that not all machines look in the same minute."""
        return hashlib.sha256(self.unit.encode()).digest()[0] % below


def cron_line(looks: Looks) -> str:
    """Return the line of a crontab; the comment at its end is how it is found again."""
    minutes = "*" if looks.often else f"{looks.spread(15)}-59/15"
    variables = [f"{name}={shlex.quote(value)}" for name, value in looks.variables.items()]
    command = " ".join([*variables, shlex.join(looks.command), "#", looks.unit])
    return f"{minutes} * * * * " + _one_line(command, "%", "\\%")


def crontab_with(crontab: str, line: str) -> str:
    """Return a crontab with a line in place of an earlier one of the same unit."""
    mark = line[line.rindex(" # ") :]
    kept = [each for each in crontab.splitlines() if not each.endswith(mark)]
    return "\n".join([*kept, line, ""])


def systemd_units(looks: Looks) -> dict[str, str]:
    """Return the service and the timer by file name."""
    variables = (
        f'Environment="{name}={_systemd(value)}"' for name, value in looks.variables.items()
    )
    service = _filled(
        "service",
        what=", ".join(plan.name for plan in looks.plans),
        folder=_one_line(str(looks.plans[0].path.parent), "%", "%%"),
        environment="\n".join(variables),
        command=" ".join(f'"{_systemd(word).replace("$", "$$")}"' for word in looks.command),
    )
    timer = _filled(
        "timer",
        what=", ".join(plan.name for plan in looks.plans),
        calendar="*:*" if looks.often else "*:0/15",
        delay="0" if looks.often else "5min",
    )
    return {f"{looks.unit}.service": service, f"{looks.unit}.timer": timer}


def workflow(looks: Looks, root: Path) -> str:
    """Return the GitHub workflow of a repository.

    Raises:
        UsageError: a config is not in the repository.
    """
    homes = sorted({_inside(plan.path.parent / ".coreeval", root) for plan in looks.plans})
    in_shell = [shlex.quote(home) for home in homes]
    lost = [f"{home}/{part}" for home in homes for part in ("calls.db*", "cache", "gdelt", "runs")]
    kept = [f"{home}/{part}" for home in in_shell for part in ("releases", "schedule/*.json")]
    configs = [_inside(plan.path, root) for plan in looks.plans]
    accepted = [word for digest in looks.accepted for word in ("--accepted", digest)]
    return _filled(
        "workflow.yml",
        what=", ".join(plan.name for plan in looks.plans),
        unit=looks.unit,
        crons="\n".join(f'    - cron: "{line}"' for line in utc_lines(looks)),
        cached="\n".join(f"            {path}" for path in lost),
        version=metadata.version("coreeval"),
        command=shlex.join(["coreeval", "schedule", "due", *accepted, *configs]),
        secrets=_secrets(looks.plans),
        kept=" ".join(kept),
    )


def utc_lines(looks: Looks) -> list[str]:
    """Return cron expressions in UTC that look each day at, or soon after, every time of a day.

    A zone with summer time has two looks for each time; the one that is early finds nothing due.
    """
    shift = timedelta(minutes=3 + looks.spread(15))
    moments = {
        moment + shift
        for plan in looks.plans
        for hour, minute in plan.times.times_of_day
        for moment in _in_utc(plan, hour, minute)
    }
    hours_of = dict[int, set[int]]()
    for moment in moments:
        hours_of.setdefault(moment.minute, set()).add(moment.hour)
    minutes_of = dict[tuple[int, ...], list[int]]()
    for minute, hours in sorted(hours_of.items()):
        minutes_of.setdefault(tuple(sorted(hours)), []).append(minute)
    return [f"{_minutes(minutes)} {_hours(hours)} * * *" for hours, minutes in minutes_of.items()]


def _in_utc(plan: Plan, hour: int, minute: int) -> Iterable[datetime]:
    """Yield a time of the day in UTC, once for each half of the year."""
    for month in (1, 7):
        local = datetime(2024, month, 1, hour, minute, tzinfo=plan.times.zone)
        yield local.astimezone(UTC).replace(year=2024, month=1, day=1)


def _minutes(minutes: Sequence[int]) -> str:
    return f"*/{GITHUB_LEAST}" if len(minutes) > 60 / GITHUB_LEAST else _list(minutes)


def _hours(hours: Sequence[int]) -> str:
    return "*" if len(hours) == 24 else _list(hours)


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _secrets(plans: Sequence[Plan]) -> str:
    """Return the variables that hold keys and addresses, as the step is given them."""
    names = sorted({name for plan in plans for name in plan.secrets})
    lines = (f"          {name}: ${{{{ secrets.{name} }}}}" for name in names)
    return "\n".join(["        env:", *lines]) if names else ""


def _inside(path: Path, root: Path) -> str:
    if not path.is_relative_to(root):
        raise UsageError(
            "the config is not in the repository",
            where=str(path),
            hint=f"GitHub sees only what is below {root}",
        )
    return path.relative_to(root).as_posix()


def _filled(name: str, **values: str) -> str:
    """Fill a unit's template; a line that is left empty goes."""
    file = resources.files("coreeval.schedule.units").joinpath(name)
    lines = ((line, Unit(line).substitute(values)) for line in file.read_text("utf-8").splitlines())
    kept = (filled for line, filled in lines if filled.strip() or not line.strip())
    return "\n".join(kept) + "\n"


def _systemd(word: str) -> str:
    """Return a word as systemd reads it between quotation marks."""
    word = word.replace("\\", "\\\\").replace('"', '\\"')
    return _one_line(word, "%", "%%")


def _one_line(text: str, special: str, escaped: str) -> str:
    """Escape a character, and refuse what would end a unit's line.

    Raises:
        UsageError: there is a line break or another control character in it.
    """
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise UsageError("a path with a line break cannot stand in a unit", where=repr(text))
    return text.replace(special, escaped)
