"""Paths as users write them."""

from pathlib import Path


def expand_home(path: str | Path) -> Path:
    """Return a path with `~` as the home folder, and `~NAME` as that of a user of this machine.

    If there is no such user, it is the name of a file, as in shells.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
