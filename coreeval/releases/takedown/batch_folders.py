"""The files of batches in users' folders (`run.batch.files`), according to the call store."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from coreeval.errors import RunCorrupt, RunStateError, UsageError
from coreeval.models.batches import name_batch_files
from coreeval.releases.takedown.calls import UNREADABLE_FILE, TextMatches, open_database
from coreeval.runs.config_source import check_path
from coreeval.runs.manifest import read_manifest
from coreeval.runs.own_config import locate_batches
from coreeval.tools.files import is_plain_file
from coreeval.tools.stores.call_tables import CALL_SCHEMA
from coreeval.tools.workspace import RunFiles, Workspace

_FOLDERS = """
    SELECT id, payer, folder, state, files FROM batches WHERE folder <> '' ORDER BY folder, id
"""
_OPEN = ("sending", "sent")

Locators = Mapping[tuple[Path, str], Sequence[Callable[[str], str]]]
"""The functions that find the present folders of each workspace's payers."""


@dataclass(frozen=True)
class BatchFiles:
    """The files of batches found in users' folders."""

    files: tuple[Path, ...]
    missing: tuple[Path, ...]
    """The folders that should contain files of batches and are missing or cannot be read."""


def find_batch_files(workspace: Workspace, locators: Locators) -> BatchFiles:
    """Return the files that batches of a call store left in users' folders.

    The store may come from a stranger, so only files with the name of a batch are returned. For a
    damaged store, none are returned; the search of the store reports this.

    Args:
        workspace: The workspace with the call store.
        locators: From `list_locators`.

    Raises:
        RunError: the store cannot be used now, or another process uses it.
    """
    root = workspace.root.resolve()
    files, missing = dict[Path, None](), dict[Path, None]()
    for batch_id, payer, told, has_files in _read_batches(workspace.calls):
        known = locators.get((root, payer), ())
        with suppress(ValueError):  # a folder or an id that no batch has
            names = name_batch_files(batch_id)
            places = {locate(told) for locate in known} or {workspace.find_path(told)}
            for folder in map(Path, map(check_path, places)):
                if _is_readable(folder):
                    ours = (name for name in names if is_plain_file(folder, name))
                    files.update(dict.fromkeys(folder.resolve() / name for name in ours))
                elif has_files:
                    missing[folder] = None
    return BatchFiles(files=tuple(files), missing=tuple(missing))


def list_locators(runs: Iterable[RunFiles]) -> Locators:
    """Return the functions that find the batches of runs in moved projects and linked workspaces.

    A run may come from a stranger, so one that claims the payer of another hides no file.
    """
    found = defaultdict[tuple[Path, str], list[Callable[[str], str]]](list)
    for files in runs:
        with suppress(RunStateError):  # the search of the run reports this
            manifest = read_manifest(files.manifest)
            place = Path(manifest.workspace).resolve(), manifest.payer
            found[place].append(locate_batches(manifest))
    return found


def _read_batches(calls: Path) -> list[tuple[str, str, str, bool]]:
    """Return the id, payer and folder of each batch, and whether it should have files."""
    rows = list[tuple[str, str, str, bool]]()
    with (
        suppress(RunCorrupt, UsageError),
        open_database(calls, dry=True, known=CALL_SCHEMA.known) as store,
    ):
        for row in store.execute(_FOLDERS):
            has_files = row["state"] in _OPEN or bool(row["files"])
            rows.append((str(row["id"]), str(row["payer"]), str(row["folder"]), has_files))
    return rows


def _is_readable(folder: Path) -> bool:
    try:
        return folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)
    except OSError:  # no right to look
        return False


def report_missing(folder: Path) -> TextMatches:
    """Return the report about a folder of batches that is missing or cannot be read."""
    to_do = (
        "files of batches are in this folder, which is missing or cannot be read: mount it or move "
        "it back, then run this command again"
    )
    return TextMatches(kind=UNREADABLE_FILE, path=folder, count=1, action="reported", to_do=to_do)
