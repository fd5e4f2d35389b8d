"""Writes units to their locations; other existing units stay, unless they may be replaced."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from coreeval.errors import RunError, RunLocked, UsageError
from coreeval.paths import expand_home
from coreeval.schedule.install import CRONTAB
from coreeval.tools.files import hold_lock, replacing, special_kind, write_text

_NO_CRONTAB = re.compile(rb"no crontab for|can't open '[^/']+': No such file")
"""The output of crontab for a user without a table: Vixie cron, its successors, and BusyBox."""

LONGEST_WAIT_S: Final = 30
"""The time that an install waits for another one that changes the crontab (own choice)."""


def write_units(units: Mapping[str, str], *, force: bool, crontab_copy: Path) -> list[str]:
    """Write units to their paths, and return the other units of the same name that are replaced.

    A crontab line replaces the earlier line of the same configs without `force`.

    Args:
        units: The texts to write, by path.
        force: Whether to replace other units of the same name.
        crontab_copy: The path of the backup of the crontab, if it is replaced.

    Raises:
        UsageError: other units or a folder exist there, or there is no cron on this machine.
        RunLocked: another install changes the crontab.
        RunError: cron does not show its table or rejects the line, or a unit cannot be written.
    """
    with _lock_crontab() if CRONTAB in units else nullcontext():
        return _write_units(units, force=force, crontab_copy=crontab_copy)


def _write_units(units: Mapping[str, str], *, force: bool, crontab_copy: Path) -> list[str]:
    crontab = _read_crontab() if CRONTAB in units else ""
    others = [each for name, text in units.items() for each in _find_others(name, text, crontab)]
    if others and not force:
        raise UsageError(
            "a different unit has this name",
            where=others[0],
            hint="compare it with the output of --print; to replace it, use --force",
        )
    for name, text in units.items():
        place = crontab_copy if name == CRONTAB else Path(name)
        with _explain_refusal(place):
            if name == CRONTAB:
                _write_cron_line(text, crontab, place)
            else:
                write_text(place, text)
    return others


@contextmanager
def _lock_crontab() -> Iterator[None]:
    """Hold the lock of the user's crontab, which all workspaces of the user share.

    Raises:
        RunLocked: another install holds it.
        RunError: the lock file cannot be created.
    """
    folder = expand_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "coreeval"
    lock = folder / "crontab.lock"
    taken = RunLocked(
        "another `schedule install --cron` is changing the crontab",
        where=str(lock),
        hint="wait until it is done, and install again",
    )
    with _explain_refusal(lock):
        folder.mkdir(parents=True, exist_ok=True)
        with hold_lock(lock, taken, wait_s=LONGEST_WAIT_S):
            yield


def _find_others(name: str, text: str, crontab: str) -> list[str]:
    """Return the other units at the location of a unit: lines of the crontab, or its file."""
    if name == CRONTAB:
        return list_other_units(crontab, text)
    path = Path(name)
    if path.is_dir() and not path.is_symlink():
        raise UsageError("a folder occupies the path of the unit", where=name, hint="move it away")
    if special_kind(path):  # links are replaced, not followed; reading a pipe would block
        return [name]
    with _explain_refusal(path):
        return [name] if path.exists() and path.read_bytes() != text.encode() else []


@contextmanager
def _explain_refusal(place: Path) -> Iterator[None]:
    """Convert an error of the system about a file to one message.

    Raises:
        RunError: the system refuses the file.
    """
    try:
        yield
    except OSError as error:
        raise RunError(
            f"cannot write the unit: {error.strerror or error}",
            where=str(error.filename or place),
            hint="see it with --print",
        ) from None


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
            f"cannot read the existing crontab: {_words_of(listed)}",
            where="crontab -l",
            hint="nothing was changed; install again once that command works, "
            "or use --print to show the line that would be added",
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
    return said or f"it ended with exit code {done.returncode} and printed nothing"


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
