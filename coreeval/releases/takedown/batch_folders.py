"""The files of batches in users' folders (`run.batch.files`), according to the call store."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coreeval.errors import CoreEvalError, RunStateError
from coreeval.models.batches import name_batch_files
from coreeval.releases.takedown.calls import UNREADABLE_FILE, TextMatches
from coreeval.runs.config_source import check_path
from coreeval.runs.manifest import read_manifest
from coreeval.runs.own_config import locate_recorded
from coreeval.tools.files import is_plain_file
from coreeval.tools.stores.heartbeat import open_readonly
from coreeval.tools.workspace import RunFiles, Workspace

_FOLDERS = """
    SELECT id, payer, folder, state, files FROM batches WHERE folder <> '' ORDER BY folder, id
"""
_OPEN = ("sending", "sent")


@dataclass(frozen=True, kw_only=True)
class BatchFiles:
    """The files of the batches of a call store."""

    files: tuple[Path, ...]
    missing: tuple[Path, ...]
    """The missing folders that should contain files of batches."""


def find_batch_files(stores: Iterable[Workspace], runs: Iterable[RunFiles]) -> BatchFiles:
    """Return the files that batches of call stores left in users' folders.

    A store may come from a stranger, so only files with the name of a batch are returned. For a
    store that cannot be read, none are returned; the search of the store reports this.

    Args:
        stores: The workspaces with call stores.
        runs: The runs that were found; they tell where a moved project has the folders beside it.
    """
    locators = _list_locators(runs)
    files, missing = dict[Path, None](), dict[Path, None]()
    for workspace in stores:
        root = workspace.root.resolve()
        for row in _read_batches(workspace.calls):
            told = str(row["folder"])
            known = locators.get((root, row["payer"]), ()) if Path(told).is_absolute() else ()
            with suppress(ValueError):  # a folder or an id that no batch has
                names = name_batch_files(str(row["id"]))
                places = {locate(told) for locate in known} or {workspace.find_path(told)}
                for folder in map(Path, map(check_path, places)):
                    if folder.is_dir():
                        ours = (name for name in names if is_plain_file(folder, name))
                        files.update(dict.fromkeys(folder.resolve() / name for name in ours))
                    elif row["state"] in _OPEN or row["files"]:
                        missing[folder] = None
    return BatchFiles(files=tuple(files), missing=tuple(missing))


def _list_locators(
    runs: Iterable[RunFiles],
) -> dict[tuple[Path, str], list[Callable[[str], str]]]:
    """Return the functions that find the present folders of each workspace's payers.

    A run may come from a stranger, so one that claims the payer of another hides no file.
    """
    found = defaultdict[tuple[Path, str], list[Callable[[str], str]]](list)
    for files in runs:
        with suppress(RunStateError):  # the search of the run reports this
            manifest = read_manifest(files.manifest)
            place = Path(manifest.workspace).resolve(), manifest.payer
            found[place].append(locate_recorded(manifest.source))
    return found


def _read_batches(calls: Path) -> list[dict[str, Any]]:
    with suppress(CoreEvalError), open_readonly(calls, what="the call store") as store:
        return [dict(row) for row in store.execute(_FOLDERS)]
    return []


def report_missing(folder: Path) -> TextMatches:
    """Return the report about a folder of batches that is missing."""
    to_do = (
        "files of batches are in this folder, which is missing: mount it or move it back, then "
        "run this command again"
    )
    return TextMatches(kind=UNREADABLE_FILE, path=folder, count=1, action="reported", to_do=to_do)
