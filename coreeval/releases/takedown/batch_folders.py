"""The files of batches in users' folders (`run.batch.files`), according to the call store."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from coreeval.errors import RunCorrupt, UsageError
from coreeval.models.batches import name_batch_files
from coreeval.releases.takedown.calls import UNREADABLE_FILE, TextMatches, open_database
from coreeval.tools.files import is_plain_file
from coreeval.tools.stores.call_tables import CALL_SCHEMA

_FOLDERS = "SELECT id, folder, state, files FROM batches WHERE folder <> '' ORDER BY folder, id"
_OPEN = ("sending", "sent")


@dataclass(frozen=True, kw_only=True)
class BatchFiles:
    """The files of the batches of a call store."""

    files: tuple[Path, ...]
    missing: tuple[Path, ...]
    """The folders that should contain files of batches and are missing or cannot be read."""


def find_batch_files(calls: Path) -> BatchFiles:
    """Return the files that batches of a call store left in users' folders.

    The store may come from a stranger, so only files with the name of a batch are returned. For a
    damaged store, none are returned; the search of the store reports this.

    Raises:
        RunError: the store cannot be used now, or another process uses it.
    """
    rows = list[tuple[str, str, bool]]()
    with (
        suppress(RunCorrupt, UsageError),
        open_database(calls, dry=True, known=CALL_SCHEMA.known) as store,
    ):
        for row in store.execute(_FOLDERS):
            has_files = row["state"] in _OPEN or bool(row["files"])
            rows.append((str(row["id"]), str(row["folder"]), has_files))
    files, missing = list[Path](), dict[Path, None]()
    for batch_id, told, has_files in rows:
        folder = Path(told)
        if not _is_readable(folder):
            if has_files:
                missing[folder] = None
            continue
        with suppress(ValueError):  # an id that no batch has
            names = name_batch_files(batch_id)
            files += [folder.resolve() / each for each in names if is_plain_file(folder, each)]
    return BatchFiles(files=tuple(files), missing=tuple(missing))


def _is_readable(folder: Path) -> bool:
    try:
        return folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)
    except (OSError, ValueError):  # no right to look, or a path that no folder can have
        return False


def report_missing(folder: Path) -> TextMatches:
    """Return the report about a folder of batches that is missing or cannot be read."""
    to_do = (
        "files of batches are in this folder, which is missing or cannot be read: mount it or move "
        "it back, then run this command again"
    )
    return TextMatches(kind=UNREADABLE_FILE, path=folder, count=1, action="reported", to_do=to_do)
