"""The folders of releases and exports, and the names that are allowed in a release.

A folder appears complete under its name, or not at all; an empty folder that exists keeps its
rights and receives all files at the end. Releases can come from strangers: a name
such as `../../.ssh/id_rsa` in release.json, or a link in the folder, must not make us read, hash,
copy or publish a file of the reader's.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from coreeval.errors import ReleaseError, RunError, RunLocked, UsageError
from coreeval.tools.files import delete_left_drafts, draft_folder, flush, flush_tree, hold_lock
from coreeval.tools.outputs import MANIFEST, refuse_releases_around

VERSION_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}"
"""Pattern of a version, which must be a valid name for a folder and a git tag."""
_FORBIDDEN = frozenset("\\\0")


def _check_inside(name: str) -> str:
    parts = name.split("/")
    if {"", ".", ".."} & set(parts) or _FORBIDDEN & set(name):
        raise ValueError("the path leads outside the release's folder")
    return name


def _check_plain_name(name: str) -> str:
    if "/" in _check_inside(name):
        raise ValueError("it must be a name, not a path")
    return name


def _check_relative(path: str) -> str:
    if path.startswith("/") or _FORBIDDEN & set(path):
        raise ValueError("it must be relative to the release's folder")
    return path


InsidePath = Annotated[str, AfterValidator(_check_inside)]
"""Path of a file in a release's folder, with `/` between its parts."""
PlainName = Annotated[str, AfterValidator(_check_plain_name)]
"""A valid part of a path."""
VersionName = Annotated[str, StringConstraints(pattern=f"^{VERSION_NAME}$")]
RelativePath = Annotated[str, AfterValidator(_check_relative)]
"""Path relative to a release's folder; it may lead out of the folder."""


def list_names(folder: Path) -> Iterator[str]:
    """Yield the relative paths of everything in a folder except folders; do not follow links."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            yield path.relative_to(folder).as_posix()


@contextmanager
def create_release_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to write into; rename it to `target` if the block succeeds.

    Raises:
        ReleaseError: `target` exists, or is inside another release.
        RunLocked: another process is making a release in the same folder.
        OSError: the folder cannot be written; nothing is left of it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    taken = RunLocked(
        "another process is making a release in this folder",
        where=str(target.parent),
        hint="wait until it ends",
    )
    with hold_lock(target.parent / ".release.lock", taken):
        refuse_existing_version(target)
        with draft_folder(target) as draft:
            yield draft
            _seal(draft)
            draft.rename(target)
            flush(target.parent)


def refuse_existing_version(target: Path) -> None:
    """Refuse a version that already exists, and a folder in which a release cannot be made.

    Raises:
        ReleaseError: the version or the folder exists, or it is inside another release.
    """
    if (target / MANIFEST).exists():
        raise ReleaseError(
            f"release {target.name} already exists",
            where=str(target),
            hint="a release is never changed: choose another --version",
        )
    if target.exists():
        raise ReleaseError(
            "a release needs a new folder, but this path exists",
            where=str(target),
            hint="choose a new folder for --out",
        )
    refuse_releases_around(target)


def _seal(folder: Path) -> None:
    """Make the files read-only, and flush them to disk."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            path.chmod(0o444)
    flush_tree(folder)


@contextmanager
def create_export_folder(out: Path) -> Iterator[Path]:
    """Yield a folder to write into; move it, or its files, to `out` if the block succeeds.

    An existing folder stays, with its rights, because it may be shared, private, a link, the
    current folder or a volume.

    Raises:
        UsageError: `out` exists and is not an empty folder.
        ReleaseError: `out` is inside a release.
        RunError: a file cannot be read or written; nothing is left of the folder.
    """
    out = out.absolute()
    refuse_releases_around(out)
    _refuse_existing_files(out)
    new = [each for each in out.parents if not each.exists()]
    within = out.is_dir()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(out / "files" if within else out) as draft:
            yield draft
            if within:
                _move_files(draft, out)
            else:
                draft.rename(out)
    except OSError as error:
        raise RunError(
            f"cannot make the export: {error.strerror or error}",
            where=str(error.filename or out),
            hint="check that this can be read or written and that the disk has space, then run the "
            "same command again; this attempt left nothing behind",
        ) from None
    finally:
        if not out.exists():
            for each in new:
                with suppress(OSError):  # something else is in it by now
                    each.rmdir()


def _refuse_existing_files(out: Path) -> None:
    if out.is_dir():
        delete_left_drafts(out)
        empty = not any(out.iterdir())
    else:
        empty = not os.path.lexists(out)
    if not empty:
        raise UsageError(
            "this folder is not empty" if out.is_dir() else "this is not a folder",
            where=str(out),
            hint="choose an empty folder for --out",
        )


def _move_files(draft: Path, out: Path) -> None:
    """Move everything in a draft to the folder that it is in, or nothing.

    Raises:
        UsageError: something else is in the folder by now.
        OSError: the folder cannot be written.
    """
    if {each.name for each in out.iterdir()} - {draft.name, f"{draft.name}.lock"}:
        raise UsageError(
            "something was written into this folder meanwhile",
            where=str(out),
            hint="choose an empty folder for --out",
        )
    moved = list[Path]()
    try:
        for each in sorted(draft.iterdir()):
            moved.append(each.rename(out / each.name))
    except BaseException:
        for each in moved:
            each.rename(draft / each.name)
        raise
