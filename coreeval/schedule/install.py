"""The units by which cron, systemd or GitHub checks schedules: their texts and places.

All of them check more often than anything is due, and let `run_due` decide: it knows the config's
time zone, makes up for what was missed, and goes on with a run that failed.
"""

import hashlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import metadata, resources
from itertools import islice, pairwise
from pathlib import Path
from string import Template
from typing import Literal

from coreeval.errors import RunError, UsageError
from coreeval.schedule.plan import SchedulePlan
from coreeval.tools.files import replacing, special_kind, special_kind_on_way, write_text
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

        With -P, Python imports nothing from the folder that it is started in: the config's folder
        may be a stranger's.
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
        return {HOME_VARIABLE: str(Path(home).expanduser().resolve())} if home else {}

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


def replace_cron_line(crontab: str, line: str) -> str:
    """Return a crontab with a line in place of any earlier line of the same name.

    Cron ends lines only at line feeds; other separators of `str.splitlines` are left alone.
    """
    kept = [each for each in _split_crontab(crontab) if not each.endswith(_name_mark(line))]
    return "\n".join([*kept, line, ""])


def list_other_units(crontab: str, line: str) -> list[str]:
    """Return the lines of a crontab with the name of a unit that check other configs than it."""
    return [
        each
        for each in _split_crontab(crontab)
        if each.endswith(_name_mark(line)) and _checked_configs(each) != _checked_configs(line)
    ]


def _split_crontab(crontab: str) -> list[str]:
    return crontab.removesuffix("\n").split("\n") if crontab else []


def _name_mark(line: str) -> str:
    """Return the comment at the end of a unit's line, which names it."""
    return line[line.rindex(" # ") :]


def _checked_configs(line: str) -> list[str] | None:
    """Return the configs that the line of a unit checks; None if it is not written like one."""
    command = line.removesuffix(_name_mark(line)).partition(" schedule due ")[2]
    try:
        words = shlex.split(command.replace("\\%", "%"))
    except ValueError:
        return None
    return [word for word in words if not word.startswith("-")]


def make_systemd_units(looks: ScheduleGroup) -> dict[str, str]:
    """Return the texts of the service and the timer, by file name."""
    variables = (
        f'Environment="{name}={_quote_systemd(value)}"' for name, value in looks.variables.items()
    )
    service = _fill_template(
        "service",
        what=", ".join(plan.name for plan in looks.plans),
        # The slash keeps a backslash or blank at the end of its name from ending the line.
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
    return _fill_template(
        "workflow.yml",
        what=", ".join(plan.name for plan in looks.plans),
        unit=looks.unit_name,
        crons="\n".join(f'    - cron: "{line}"' for line in make_utc_lines(looks)),
        cached="\n".join(f"            {path}" for path in lost),
        version=metadata.version("coreeval"),
        command=shlex.join(["coreeval", "schedule", "due", *accepted, *configs]),
        secrets=_format_secrets(looks.plans),
        kept=" ".join(kept),
    )


def make_utc_lines(looks: ScheduleGroup) -> list[str]:
    """Return cron expressions in UTC that check daily at, or soon after, each time of a day.

    A zone with summer time has two checks for each time; the one that is early finds nothing due.
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
            hint=f"GitHub sees only what is below {root}",
        )
    name = path.relative_to(root).as_posix()
    _check_path(name, _NOT_FOR_GITHUB)
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
"""The same, the other line breaks of YAML, and `${{`, which starts an expression for GitHub."""


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
            f"a path with {found[0]!a} cannot stand in a unit: it would change the unit",
            where=ascii(text),
            hint="rename the file or folder",
        )


UnitKind = Literal["cron", "systemd", "github"]
CRONTAB = "crontab"
"""Stands in for a file path: cron stores the line itself."""
_NO_CRONTAB = re.compile(rb"no crontab for|can't open '[^/']+': No such file")
"""What crontab prints if a user has no table yet: Vixie cron, its successors, and BusyBox."""


def make_units(looks: ScheduleGroup, way: UnitKind) -> dict[str, str]:
    """Return the texts to write, by path.

    Raises:
        UsageError: a config is in no git repository, or its path cannot be written in a unit.
    """
    if way == "cron":
        return {CRONTAB: make_cron_line(looks)}
    if way == "systemd":
        home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        folder = Path(home).expanduser() / "systemd" / "user"
        return {str(folder / name): text for name, text in make_systemd_units(looks).items()}
    root = find_repository(looks.plans[0].path)
    name = f".github/workflows/{looks.unit_name}.yml"
    if kind := special_kind_on_way(root, name):
        raise UsageError(
            f"there is {kind} in the place of the workflow",
            where=str(root / name),
            hint="a repository of somebody else's may lead elsewhere: put a folder or file there",
        )
    return {str(root / name): make_workflow(looks, root)}


def write_units(units: Mapping[str, str], *, force: bool, crontab_copy: Path) -> list[str]:
    """Write units to their paths, and return the other units of the same name that are replaced.

    A crontab line replaces the earlier line of the same configs without `force`.

    Args:
        units: The texts to write, by path.
        force: Whether to replace other units of the same name.
        crontab_copy: The path of the backup of the crontab, if it is replaced.

    Raises:
        UsageError: other units exist there, or there is no cron on this machine.
        RunError: cron does not show its table, or refuses the line.
    """
    crontab = _read_crontab() if CRONTAB in units else ""
    others = [each for name, text in units.items() for each in _find_others(name, text, crontab)]
    if others and not force:
        raise UsageError(
            "there is another unit of this name",
            where=others[0],
            hint="compare it with --print; --force replaces it",
        )
    for name, text in units.items():
        if name == CRONTAB:
            _write_cron_line(text, crontab, crontab_copy)
        else:
            write_text(Path(name), text)
    return others


def _find_others(name: str, text: str, crontab: str) -> list[str]:
    """Return the other units in the place of a unit: lines of the crontab, or its file."""
    if name == CRONTAB:
        return list_other_units(crontab, text)
    path = Path(name)
    if special_kind(path):  # a link is replaced, not followed; a pipe would be waited for
        return [name]
    return [name] if path.exists() and path.read_bytes() != text.encode() else []


def _write_cron_line(line: str, before: str, copy: Path) -> None:
    after = replace_cron_line(before, line)
    if after == before:
        return
    if before:
        with replacing(copy) as draft:
            draft.touch()
            draft.chmod(0o600)  # a crontab may set passwords
            draft.write_bytes(os.fsencode(before))
    done = _run_crontab("-", given=after)
    if done.returncode:
        raise RunError(f"crontab refused the line: {_words_of(done)}", where=line)


def _read_crontab() -> str:
    """Return the user's crontab; "" only if crontab says that there is none.

    Raises:
        RunError: crontab fails for another reason; writing a new table would lose its lines.
    """
    listed = _run_crontab("-l")
    if not listed.returncode:
        return os.fsdecode(listed.stdout)
    if not _NO_CRONTAB.search(listed.stderr):
        raise RunError(
            f"the crontab that is there cannot be read: {_words_of(listed)}",
            where="crontab -l",
            hint="nothing was changed; once that command works, install again, "
            "or see the line with --print",
        )
    return ""


def _run_crontab(argument: str, given: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run crontab on bytes: a table need not be UTF-8, and its line endings must not change."""
    try:
        return subprocess.run(
            ["crontab", argument],
            input=os.fsencode(given),
            capture_output=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise UsageError(
            "there is no crontab command on this machine",
            where="schedule install --cron",
            hint="install cron, or see the line with --print",
        ) from None


def _words_of(done: subprocess.CompletedProcess[bytes]) -> str:
    said = done.stderr.decode("utf-8", "replace").strip()
    return said or f"it ended with exit code {done.returncode} and said nothing"


def find_repository(path: Path) -> Path:
    """Return the folder of the git repository that contains a config.

    Raises:
        UsageError: no repository contains it.
    """
    for folder in path.parents:
        if (folder / ".git").exists():
            return folder
    raise UsageError(
        "the config is in no git repository",
        where=str(path),
        hint="GitHub's workflows live in one: git init, or see the workflow with --print",
    )
