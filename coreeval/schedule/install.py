"""The texts and locations of the units with which cron, systemd or GitHub checks schedules.

All of them check more often than schedules are due, and `run_due` decides: it knows the config's
time zone, catches up on missed periods, and continues failed runs.
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
from typing import Literal

from coreeval.errors import UsageError
from coreeval.paths import expand_home
from coreeval.schedule.plan import SchedulePlan
from coreeval.tools.files import special_kind_on_way
from coreeval.tools.workspace import HOME_VARIABLE

CHECK_EVERY = timedelta(minutes=15)
"""How often cron and systemd check; every minute if a schedule is due more often than this."""
GITHUB_MINUTES = 5
"""The shortest interval that GitHub allows, in minutes."""


class UnitTemplate(Template):
    """A unit file with placeholders `@@name`; shells, GitHub and systemd use `$` themselves."""

    delimiter = "@@"


@dataclass(frozen=True)
class ScheduleGroup:
    """Schedules that one unit checks together."""

    plans: Sequence[SchedulePlan]
    accepted: Sequence[str] = ()
    """Digests of accepted hooks and endpoints, for machines that have no record of consent."""

    @property
    def unit_name(self) -> str:
        """Return the name of the unit, which is always the same for the same configs."""
        return "-".join(["coreeval", *(plan.name for plan in self.plans)])

    @property
    def command(self) -> list[str]:
        """Return the command to run, with absolute paths: cron and systemd lack the user's PATH.

        With -P, Python imports nothing from the folder in which it is started, because the config's
        folder may be a stranger's.
        """
        configs = [str(plan.path) for plan in self.plans]
        return [sys.executable, *("-P", "-m", "coreeval", "schedule", "due", "--quiet"), *configs]

    @property
    def crontab_copy(self) -> Path:
        """Return the path of the backup of the user's crontab, made before a line is written."""
        return self.plans[0].workspace.root / "crontab.before"

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables of the installing environment that the command needs."""
        home = os.environ.get(HOME_VARIABLE)
        return {HOME_VARIABLE: str(expand_home(home).resolve())} if home else {}

    @property
    def uses_database(self) -> bool:
        """Return whether the command needs the address of a database, which no unit contains."""
        return any(plan.uses_database for plan in self.plans)

    @property
    def is_frequent(self) -> bool:
        """Return whether any schedule is due more often than `CHECK_EVERY`."""
        start = datetime(2024, 1, 1, tzinfo=UTC)
        return any(
            later - sooner < CHECK_EVERY
            for plan in self.plans
            for sooner, later in pairwise(islice(plan.times.iter_after(start), 100))
        )

    def offset(self, below: int) -> int:
        """Return a number of this machine and unit, so that machines check in different minutes."""
        return hashlib.sha256(self.unit_name.encode()).digest()[0] % below


def make_cron_line(looks: ScheduleGroup) -> str:
    """Return the line of a crontab; it is found again by the comment at its end."""
    minutes = "*" if looks.is_frequent else f"{looks.offset(15)}-59/15"
    variables = [f"{name}={shlex.quote(value)}" for name, value in looks.variables.items()]
    command = " ".join([*variables, shlex.join(looks.command), "#", looks.unit_name])
    return f"{minutes} * * * * " + _escape_line(command, "%", "\\%")


def make_systemd_units(looks: ScheduleGroup) -> dict[str, str]:
    """Return the texts of the service and the timer, by file name."""
    variables = (
        f'Environment="{name}={_quote_systemd(value)}"' for name, value in looks.variables.items()
    )
    service = _fill_template(
        "service",
        what=", ".join(plan.name for plan in looks.plans),
        # The slash prevents a backslash or blank at the end of its name from ending the line.
        folder=_escape_line(f"{looks.plans[0].path.parent}/", "%", "%%"),
        environment="\n".join(variables),
        command=" ".join(f'"{_quote_systemd(word).replace("$", "$$")}"' for word in looks.command),
    )
    timer = _fill_template(
        "timer",
        what=", ".join(plan.name for plan in looks.plans),
        calendar="*:*" if looks.is_frequent else "*:0/15",
        delay="0" if looks.is_frequent else "5min",
    )
    return {f"{looks.unit_name}.service": service, f"{looks.unit_name}.timer": timer}


def make_workflow(looks: ScheduleGroup, root: Path) -> str:
    """Return the text of the GitHub workflow of a repository.

    Raises:
        UsageError: a config is not in the repository, or its path cannot be written in a unit.
    """
    homes = sorted({_relative_path(plan.path.parent / ".coreeval", root) for plan in looks.plans})
    in_shell = [shlex.quote(home) for home in homes]
    lost = [f"{home}/{part}" for home in homes for part in ("calls.db*", "cache", "gdelt", "runs")]
    kept = [f"{home}/{part}" for home in in_shell for part in ("releases", "schedule/*.json")]
    configs = [_relative_path(plan.path, root) for plan in looks.plans]
    accepted = [word for digest in looks.accepted for word in ("--accepted", digest)]
    extra = "[postgresql]" if looks.uses_database else ""
    return _fill_template(
        "workflow.yml",
        what=", ".join(plan.name for plan in looks.plans),
        unit=looks.unit_name,
        crons="\n".join(f'    - cron: "{line}"' for line in make_utc_lines(looks)),
        cached="\n".join(f"            {path}" for path in lost),
        package=f"coreeval{extra}=={metadata.version('coreeval')}",
        command=shlex.join(["coreeval", "schedule", "due", *accepted, *configs]),
        secrets=_format_secrets(looks.plans),
        kept=" ".join(kept),
    )


def make_utc_lines(looks: ScheduleGroup) -> list[str]:
    """Return cron expressions in UTC that check daily at, or soon after, each time of a day.

    A zone with summer time has two checks for each time; the early one finds nothing due.
    """
    shift = timedelta(minutes=3 + looks.offset(15))
    moments = {
        moment + shift
        for plan in looks.plans
        for hour, minute in plan.times.times_of_day
        for moment in _to_utc(plan, hour, minute)
    }
    hours_of = dict[int, set[int]]()
    for moment in moments:
        hours_of.setdefault(moment.minute, set()).add(moment.hour)
    minutes_of = dict[tuple[int, ...], list[int]]()
    for minute, hours in sorted(hours_of.items()):
        minutes_of.setdefault(tuple(sorted(hours)), []).append(minute)
    return [
        f"{_format_minutes(minutes)} {_format_hours(hours)} * * *"
        for hours, minutes in minutes_of.items()
    ]


def _to_utc(plan: SchedulePlan, hour: int, minute: int) -> Iterable[datetime]:
    """Yield a time of the day in UTC, once for each half of the year."""
    for month in (1, 7):
        local = datetime(2024, month, 1, hour, minute, tzinfo=plan.times.zone)
        yield local.astimezone(UTC).replace(year=2024, month=1, day=1)


def _format_minutes(minutes: Sequence[int]) -> str:
    return f"*/{GITHUB_MINUTES}" if len(minutes) > 60 / GITHUB_MINUTES else _join_numbers(minutes)


def _format_hours(hours: Sequence[int]) -> str:
    return "*" if len(hours) == 24 else _join_numbers(hours)


def _join_numbers(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _format_secrets(plans: Sequence[SchedulePlan]) -> str:
    """Return the `env` lines for the variables with keys and webhook addresses."""
    names = sorted({name for plan in plans for name in plan.secrets})
    lines = (f"          {name}: ${{{{ secrets.{name} }}}}" for name in names)
    return "\n".join(["        env:", *lines]) if names else ""


def _relative_path(path: Path, root: Path) -> str:
    if not path.is_relative_to(root):
        raise UsageError(
            "the config is not in the repository",
            where=str(path),
            hint=f"GitHub reads only files in {root}",
        )
    name = path.relative_to(root).as_posix()
    _check_path(name, _NOT_FOR_GITHUB)
    if found := _MEANS_MORE.search(name):
        raise UsageError(
            f"a path with {found[0]!a} {'in it' if found.start() else 'at its start'} cannot be "
            "used in a workflow: git, tar and GitHub's cache would misread it",
            where=ascii(name),
            hint="rename the file or folder",
        )
    return name


def _fill_template(name: str, **values: str) -> str:
    """Fill in a unit's template; lines that are left empty are removed."""
    file = resources.files("coreeval.schedule.units").joinpath(name)
    lines = (
        (line, UnitTemplate(line).substitute(values))
        for line in file.read_text("utf-8").splitlines()
    )
    kept = (filled for line, filled in lines if filled.strip() or not line.strip())
    return "\n".join(kept) + "\n"


def _quote_systemd(word: str) -> str:
    """Return a word quoted for systemd."""
    word = word.replace("\\", "\\\\").replace('"', '\\"')
    return _escape_line(word, "%", "%%")


_NOT_FOR_UNITS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters, including line breaks, and bytes of a path that are not UTF-8."""
_NOT_FOR_GITHUB = re.compile(rf"{_NOT_FOR_UNITS.pattern}|[\x85\u2028\u2029]|\$\{{\{{")
"""The same characters, other YAML line breaks, and `${{`, which starts a GitHub expression."""


_MEANS_MORE = re.compile(r"^[-!#~: ]|[*?\[\]\\]")
"""The forbidden beginnings of a path in a workflow (options, exclusions, comments, homes, git's
magic, dropped blanks) and its forbidden characters (patterns)."""


def _escape_line(text: str, special: str, escaped: str) -> str:
    """Escape a character in a line of a unit; refuse any character that would end the line.

    Raises:
        UsageError: the text contains a line break or another control character.
    """
    _check_path(text, _NOT_FOR_UNITS)
    return text.replace(special, escaped)


def _check_path(text: str, refused: re.Pattern[str]) -> None:
    if found := refused.search(text):
        raise UsageError(
            f"a path with {found[0]!a} cannot be used in a unit: it would change the unit",
            where=ascii(text),
            hint="rename the file or folder",
        )


LONGEST_NAME = 200
"""The most characters of a unit's name; a file's name may have 255, and that of a draft is
longer."""
UnitKind = Literal["cron", "systemd", "github"]
CRONTAB = "crontab"
"""The placeholder for a file path; cron stores the line itself."""


def make_units(looks: ScheduleGroup, way: UnitKind, *, root: Path | None = None) -> dict[str, str]:
    """Return the texts to write, by path.

    Args:
        looks: The schedules.
        way: The scheduler that checks them.
        root: The folder of the repository of a workflow; None: the one that contains the config.

    Raises:
        UsageError: a config is in no git repository, its path cannot be written in a unit, or the
            name of the unit is too long for a file.
    """
    if way == "cron":
        return {CRONTAB: make_cron_line(looks)}
    if len(looks.unit_name) > LONGEST_NAME:
        raise UsageError(
            f"the unit's name has {len(looks.unit_name)} characters, but the maximum is "
            f"{LONGEST_NAME}; it contains the names of all its configs",
            where=f"{looks.unit_name[:40]}...",
            hint="shorten the config names, or install them in several units",
        )
    if way == "systemd":
        home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        folder = expand_home(home) / "systemd" / "user"
        return {str(folder / name): text for name, text in make_systemd_units(looks).items()}
    root = root or require_repository(looks.plans[0].path)
    name = f".github/workflows/{looks.unit_name}.yml"
    if kind := special_kind_on_way(root, name):
        raise UsageError(
            f"{kind} occupies the path of the workflow",
            where=str(root / name),
            hint="replace it with a folder or file, because it may lead out of the repository",
        )
    return {str(root / name): make_workflow(looks, root)}


def find_repository(path: Path) -> Path | None:
    """Return the folder of the git repository that contains a config; None if none does."""
    return next((folder for folder in path.parents if (folder / ".git").exists()), None)


def require_repository(path: Path) -> Path:
    """Return the folder of the git repository that contains a config.

    Raises:
        UsageError: no repository contains it.
    """
    if found := find_repository(path):
        return found
    raise UsageError(
        "the config is not in a git repository",
        where=str(path),
        hint="GitHub runs only workflows in a repository: run git init in its folder, or just show "
        "the workflow with --print",
    )


def find_future_root(looks: ScheduleGroup) -> Path | None:
    """Return the folder of all configs if no repository contains the first; None if one does."""
    if find_repository(looks.plans[0].path):
        return None
    return Path(os.path.commonpath([plan.path.parent for plan in looks.plans]))
