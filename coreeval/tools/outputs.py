"""Files that a command writes where the user says: none is replaced that CoreEval did not write.

Nothing is written into a release, which is never changed.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from coreeval.errors import ReleaseError, UsageError

MANIFEST: Final = "release.json"
DIGEST: Final = "release.sha256"
PAGE: Final = "<!doctype html>"
"""How each of our pages begins."""
_BEGINNING: Final = 1_000
"""The bytes of a file that are compared, with the blank lines before its first word."""


def refuse_foreign_output(path: Path, *beginnings: str | bytes) -> None:
    """Refuse to write a file into a release, or to replace one that CoreEval did not write.

    Args:
        path: The file; it may be missing, empty, or a pipe.
        beginnings: How the files begin that the command writes there; without any, every existing
            file is replaced.

    Raises:
        ReleaseError: the file is in a release.
        UsageError: a file of this name has other content.
    """
    refuse_releases_around(path)
    if beginnings and path.is_file() and not _begins_with(path, beginnings):
        raise _refuse(path, "choose another name, or move the file")


def refuse_foreign_file(path: Path, write_again: Callable[[str], str]) -> None:
    """Refuse to replace a file unless CoreEval has written each of its lines.

    Args:
        path: The file; it may be missing or empty.
        write_again: Returns what a line says as CoreEval would write it; may raise ValueError or
            TypeError.

    Raises:
        UsageError: the file has another line, or is not a file.
    """
    if os.path.lexists(path) and not (path.is_file() and _has_only_own(path, write_again)):
        raise _refuse(path, "choose another folder for --out, or move the file")


def _has_only_own(path: Path, write_again: Callable[[str], str]) -> bool:
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            return all(line == f"{write_again(line)}\n" for line in lines)
    except (OSError, TypeError, ValueError, RecursionError):
        return False


def _refuse(path: Path, hint: str) -> UsageError:
    message = "CoreEval did not write this file and will not replace it"
    return UsageError(message, where=str(path), hint=hint)


def _begins_with(path: Path, beginnings: tuple[str | bytes, ...]) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(_BEGINNING)
    except OSError as error:
        raise UsageError(
            f"cannot read the file that would be replaced: {error.strerror or error}",
            where=str(path),
            hint="choose another name",
        ) from None
    text = start.decode("utf-8-sig", errors="replace").lstrip()
    return not start or any(
        start.startswith(each) if isinstance(each, bytes) else text.startswith(each)
        for each in beginnings
    )


def refuse_releases_around(place: Path) -> None:
    """Refuse a place inside a release.

    Raises:
        ReleaseError: a folder around it is a release.
    """
    for folder in place.resolve().parents:
        if (folder / MANIFEST).is_file() and (folder / DIGEST).is_file():
            raise ReleaseError(
                "this folder is a release, so nothing can be written into it",
                where=str(folder),
                hint="a release is never changed: choose another folder",
            )
