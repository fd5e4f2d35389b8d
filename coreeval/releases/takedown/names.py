"""Adds names to a takedown list."""

from collections.abc import Sequence
from pathlib import Path

from coreeval.agents.safety import (
    EMPTY_TAKEDOWN,
    build_takedown,
    fold_name,
    is_long_enough,
    load_takedown,
)
from coreeval.errors import RunLocked, UsageError
from coreeval.tools.files import hold_lock, write_text

_HEAD = "# Names that nothing in this workspace may use, one per line: coreeval docs safety\n"
_PATIENCE_S = 60.0


def check_names(names: Sequence[str]) -> list[str]:
    """Return the names in the form used in a list, without duplicates.

    Raises:
        UsageError: a name is too short to tell people apart, or would not be read as a name.
    """
    plain = [" ".join(name.split()) for name in names]
    for name in plain:
        if not is_long_enough(name) or "#" in name or build_takedown([name]).ids:
            raise UsageError(
                f"{name!r} is not a valid name for a takedown list",
                where="coreeval takedown",
                hint="a name has at least three letters and no #; put several words in quotes",
            )
    return list({fold_name(name): name for name in reversed(plain)}.values())[::-1]


def find_missing_names(path: Path, names: Sequence[str]) -> list[str]:
    """Return the names that a list does not have yet; the list may not exist.

    Raises:
        ConfigError: the list cannot be read.
    """
    there = load_takedown(path) if path.exists() else EMPTY_TAKEDOWN
    known = {fold_name(name) for name in there.names}
    return [name for name in names if fold_name(name) not in known]


def add_names(path: Path, names: Sequence[str]) -> None:
    """Add the names that a list lacks; its existing content stays unchanged.

    Concurrent processes wait for each other.

    Raises:
        RunLocked: another process has locked the list for longer than the wait.
        ConfigError: the list cannot be read.
        OSError: the list cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    taken = RunLocked(
        "another process is writing this list", where=str(path), hint="wait until it has ended"
    )
    with hold_lock(path.with_name(f".{path.name}.lock"), taken, wait_s=_PATIENCE_S):
        _append_names(path, names)


def _append_names(path: Path, names: Sequence[str]) -> None:
    new = find_missing_names(path, names)
    if not new:
        return
    old = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    end = "" if old.endswith("\n") or not old else "\n"
    write_text(path, old + end + "".join(f"{name}\n" for name in new))
