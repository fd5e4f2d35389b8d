"""A directory that appears whole under its name, or not at all, and is read-only from then on."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coreeval.errors import ReleaseError, RunLocked
from coreeval.tools.files import flush, flush_tree, hold_lock


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """Give a folder to write into; when the block ends well it takes the name `target`.

    What a killed process left of an earlier try is removed.

    Raises:
        ReleaseError: there is something of this name.
        RunLocked: another process is making a release beside it.
        OSError: it cannot be written; nothing is left of it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    taken = RunLocked(
        "another process is making a release here", where=str(target.parent), hint="wait for it"
    )
    with hold_lock(target.parent / ".release.lock", taken):
        refuse_taken(target)
        for left in target.parent.glob(".*.draft"):
            shutil.rmtree(left)
        draft = target.with_name(f".{target.name}.draft")
        try:
            draft.mkdir()
            yield draft
            _seal(draft)
            draft.rename(target)
            flush(target.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def refuse_taken(target: Path) -> None:
    """Refuse a version that is there.

    Raises:
        ReleaseError: it is.
    """
    if target.exists():
        raise ReleaseError(
            f"there is a release {target.name} already",
            where=str(target),
            hint="a release is never changed: choose another --version",
        )


def _seal(folder: Path) -> None:
    """Make the files read-only, and see to it that they are on the disk."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            path.chmod(0o444)
    flush_tree(folder)
