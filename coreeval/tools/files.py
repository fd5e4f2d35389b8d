"""Files that are either whole or not there."""

import itertools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to; when the block ends well it takes the place of `path`.

    Raises:
        OSError: it cannot be written; the error names it, which that of a full disk does not.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _draft_of(path) as draft:
            try:
                yield draft
                with draft.open("rb") as written:
                    os.fsync(written.fileno())
                draft.replace(path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
    except OSError as error:
        if error.errno is not None:
            error.filename = error.filename or str(path)
        raise


@contextmanager
def _draft_of(path: Path) -> Iterator[Path]:
    """Give the first draft of a file that nobody is writing, empty.

    One that a killed process left is taken again, so that they do not pile up. Where the system
    has no such locks, each process has a draft of its own.
    """
    for number in itertools.count():
        draft = path.with_name(f".{path.name}.{number}.tmp")
        if draft.is_symlink():  # CoreEval makes none, and what it leads to would be emptied
            continue
        with draft.open("ab") as mine:
            state = _locked(mine, draft)
            if state == "mine":
                mine.truncate(0)
                yield draft
                return
        if state == "no locks":
            draft.unlink(missing_ok=True)
            yield path.with_name(f".{path.name}.{os.getpid()}.tmp")
            return


def _locked(mine: IO[bytes], draft: Path) -> Literal["mine", "taken", "no locks"]:
    """Lock a draft unless another process or thread has; it may have been renamed meanwhile."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(mine, LOCK_EX | LOCK_NB)
        same = os.path.samestat(os.fstat(mine.fileno()), draft.stat())
    except (BlockingIOError, FileNotFoundError):
        return "taken"
    except (ImportError, OSError):
        return "no locks"
    return "mine" if same else "taken"


def flush_tree(folder: Path) -> None:
    """See to it that the disk has a folder, and all files and folders in it.

    Raises:
        OSError: it does not take them.
    """
    for path in sorted(folder.rglob("*")):
        flush(path)
    flush(folder)


def flush(path: Path) -> None:
    """See to it that the disk has a file, or the names in a folder.

    Raises:
        OSError: it does not take them.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write text as one atomic replacement."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write JSON as one atomic replacement."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
