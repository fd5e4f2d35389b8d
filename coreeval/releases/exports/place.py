"""The folder that an export is written into: whole, or not there."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coreeval.errors import RunError, UsageError


@contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """Give a folder to write into; when the block ends well it takes the place of `out`.

    Raises:
        UsageError: there is something at `out` already, other than an empty folder.
        RunError: it cannot be written; nothing is left of it.
    """
    out = out.absolute()
    _refuse_taken(out)
    draft = out.with_name(f".{out.name}.draft")
    try:
        shutil.rmtree(draft, ignore_errors=True)  # what a killed process left
        draft.mkdir(parents=True)
        yield draft
        draft.rename(out)
    except OSError as error:
        raise RunError(
            f"the export cannot be written: {error.strerror or error}",
            where=str(error.filename or out),
            hint="see to the disk, then give the same command again: nothing is left of this try",
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _refuse_taken(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(
            "there is something here already", where=str(out), hint="give --out an empty folder"
        )
