"""Files that are either whole or not there."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to; when the block ends well it takes the place of `path`.

    Raises:
        OSError: it cannot be written; the error names it, which that of a full disk does not.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield draft
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.replace(path)
    except OSError as error:
        if error.errno is not None:
            error.filename = error.filename or str(path)
        raise
    finally:
        draft.unlink(missing_ok=True)


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
