"""Putting units where cron, systemd and GitHub find them."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from coreeval.errors import RunError, UsageError
from coreeval.schedule.install import Looks, cron_line, crontab_with, systemd_units, workflow
from coreeval.tools.files import write_text

Way = Literal["cron", "systemd", "github"]
CRONTAB = "crontab"
"""Stands for the place of a line that cron keeps by itself."""


def units_of(looks: Looks, way: Way) -> dict[str, str]:
    """Return what is to be written, by its place.

    Raises:
        UsageError: a config is in no git repository, or its path cannot stand in a unit.
    """
    if way == "cron":
        return {CRONTAB: cron_line(looks)}
    if way == "systemd":
        home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        folder = Path(home).expanduser() / "systemd" / "user"
        return {str(folder / name): text for name, text in systemd_units(looks).items()}
    root = repository_of(looks.plans[0].path)
    path = root / ".github" / "workflows" / f"{looks.unit}.yml"
    return {str(path): workflow(looks, root)}


def place(units: Mapping[str, str], *, force: bool) -> None:
    """Write units to their places; a line in the crontab takes that of the same unit before.

    Raises:
        UsageError: other units are there already, or there is no cron on this machine.
        RunError: cron refuses the line.
    """
    for name, text in units.items():
        path = Path(name)
        if name != CRONTAB and path.exists() and path.read_text("utf-8") != text and not force:
            raise UsageError(
                "there is another unit of this name",
                where=name,
                hint="compare it with --print; --force replaces it",
            )
    for name, text in units.items():
        if name == CRONTAB:
            _place_line(text)
        else:
            write_text(Path(name), text)


def _place_line(line: str) -> None:
    listed = _crontab("-l")
    before = "" if listed.returncode else listed.stdout  # the user may have none yet
    done = _crontab("-", given=crontab_with(before, line))
    if done.returncode:
        raise RunError(f"crontab refused the line: {done.stderr.strip()}", where=line)


def _crontab(argument: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["crontab", argument], input=given, capture_output=True, text=True)
    except FileNotFoundError:
        raise UsageError(
            "there is no crontab command on this machine",
            where="schedule install --cron",
            hint="install cron, or see the line with --print",
        ) from None


def repository_of(path: Path) -> Path:
    """Return the folder of the git repository that a config is in.

    Raises:
        UsageError: it is in none.
    """
    for folder in path.parents:
        if (folder / ".git").exists():
            return folder
    raise UsageError(
        "the config is in no git repository",
        where=str(path),
        hint="GitHub's workflows live in one: git init, or see the workflow with --print",
    )
