"""Files of a release, as far as they are in its folder: names that stay inside, and no links.

A release comes from whoever published it. A name such as `../../.ssh/id_rsa` in release.json, or a
link beside it, must not make us read, hash, copy or publish a file of the reader's.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

VERSION_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}"
"""What a version may be called: it is the name of a folder and of a git tag."""
_FORBIDDEN = frozenset("\\\0")


def _inside(name: str) -> str:
    parts = name.split("/")
    if {"", ".", ".."} & set(parts) or _FORBIDDEN & set(name):
        raise ValueError("the path leads out of the release's folder")
    return name


def _one_name(name: str) -> str:
    if "/" in _inside(name):
        raise ValueError("it must be a name, not a path")
    return name


def _relative(path: str) -> str:
    if path.startswith("/") or _FORBIDDEN & set(path):
        raise ValueError("it must be relative to the release's folder")
    return path


InsidePath = Annotated[str, AfterValidator(_inside)]
"""Path of a file in a release's folder, with `/` between its parts."""
PlainName = Annotated[str, AfterValidator(_one_name)]
"""A part of a path."""
VersionName = Annotated[str, StringConstraints(pattern=f"^{VERSION_NAME}$")]
RelativePath = Annotated[str, AfterValidator(_relative)]
"""Path from a release's folder, which may lead out of it."""


def names_in(folder: Path) -> Iterator[str]:
    """Yield the paths of all that is in a folder but its folders; links are not followed."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            yield path.relative_to(folder).as_posix()
