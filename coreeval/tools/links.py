"""Names and links in a folder that somebody else may have made: what they must not lead out of."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath


def is_inside(name: str) -> bool:
    """Tell whether a path is relative to a folder and has no `..` that leads out of it."""
    path = PurePath(name)
    return bool(path.parts) and not path.anchor and ".." not in path.parts and "\0" not in name


def leads_through_link(folder: Path, name: str) -> bool:
    """Tell whether a file of a folder, or a folder on the way to it, is a link."""
    place = folder
    for part in PurePath(name).parts:
        place = place / part
        if place.is_symlink():
            return True
    return False


def leads_out(folder: Path, name: str) -> bool:
    """Tell whether a path is none inside a folder, or comes to its file by a link."""
    return not is_inside(name) or leads_through_link(folder, name)


def is_plain_file(folder: Path, name: str) -> bool:
    """Tell whether a folder has a regular file of this name that no link leads to."""
    if leads_out(folder, name):
        return False
    try:
        return stat.S_ISREG((folder / name).lstat().st_mode)
    except (OSError, ValueError):
        return False


def links_among(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield the links among some files and folders of a folder, below them and on the way there."""
    for name in names:
        if leads_through_link(folder, str(PurePath(name).parent)):
            yield (folder / name).parent
        else:
            yield from links_below(folder / name)


def links_below(path: Path) -> Iterator[Path]:
    """Yield a file or folder where it is a link, else all links below it; none is followed."""
    if path.is_symlink():
        yield path
    elif path.is_dir():
        try:
            with os.scandir(path) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:  # another process has just deleted it
            return
        for entry in found:
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir():
                yield from links_below(Path(entry.path))
