"""Which files in a run's folder are CoreEval's; deleting those, and nothing else."""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from coreeval.errors import RunError, RunLocked, RunStateError
from coreeval.evaluation.detectors import DETECTORS, DOCUMENTED
from coreeval.runs.arms import ANY_SHARD
from coreeval.runs.batches import count_open_calls
from coreeval.runs.manifest import Manifest, read_original_manifest
from coreeval.runs.names import has_manifest
from coreeval.tools.files import special_kind
from coreeval.tools.stores.heartbeat import open_readonly
from coreeval.tools.stores.places import has_store, store_kind
from coreeval.tools.workspace import (
    RUN_FILES,
    RunFiles,
    Workspace,
    command,
    find_own_workspaces,
)

_ARMS = ("updated", "semantic", "provenance", "control")
_REPLAY_STORE: Final = tuple(
    f"cassette/workspace/calls.db{end}" for end in ("", "-wal", "-shm", "-journal")
)
"""The call store of a run that repeats a cassette, and of no other run."""
_PATTERNS: Final = (
    *RUN_FILES,
    *("dataset/README.md", *(f"dataset/{arm}/{ANY_SHARD}" for arm in _ARMS)),
    "numleak/*.jsonl",
    *(f"detectors/{name}.json" for name in DOCUMENTED),
    *(f"detectors/{name}/*.jsonl" for name in {*DETECTORS, *DOCUMENTED}),
    *("cassette/task.yaml", "cassette/takedown.txt"),
    *("cassette/prompts/*.md", "cassette/answers/*.jsonl"),
    *_REPLAY_STORE,
)
_FOLDERS: Final = {
    folder for pattern in _PATTERNS for folder in map(str, Path(pattern).parents) if folder != "."
}
_DRAFT = re.compile(r"\.(.+)\.\d+\.tmp")
_LAST: Final = ("manifest.json", "run.lock")
"""Files that are deleted last: a deletion that is interrupted can be repeated."""
_PAID = "SELECT 1 FROM calls WHERE usd IS NULL OR usd > 0 LIMIT 1"


def refuse_used_folder(folder: Path, workspace: Workspace) -> None:
    """Refuse a folder for a new run unless it is new, empty or left by a run killed at its start.

    Args:
        folder: The folder, as an absolute path.
        workspace: The run's workspace.

    Raises:
        RunStateError: the folder has other files, or is or contains the workspace.
    """
    hint = "choose a new or empty folder: --run-dir DIR"
    if workspace.runs.resolve().is_relative_to(folder):
        raise RunStateError(
            "this folder is or contains the workspace, which other runs use",
            where=str(folder),
            hint=hint,
        )
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    foreign = next(_iter_foreign(folder), None)
    if foreign or not (folder / "run.lock").exists():
        raise RunStateError(
            "this folder is not empty, and its files are not those of a run",
            where=str(foreign or folder),
            hint=hint,
        )


def read_deletable(run: Path) -> Manifest | None:
    """Return the manifest, as written, of a run to delete; None if it is damaged.

    Raises:
        RunStateError: there is no run, it is reached through a link, or its samples are in
            PostgreSQL.
        RunCorrupt: the file that names its schema in PostgreSQL is damaged.
    """
    _refuse_links(run)
    stores = (run / "run.db", run / "control" / "run.db")
    try:
        manifest = read_original_manifest(RunFiles(run).manifest)
    except RunStateError:
        if not has_manifest(run) or not (has_store(stores[0]) or (run / "run.lock").exists()):
            raise
        manifest = None
    if any(store_kind(store) == "postgresql" for store in stores):
        raise RunStateError(
            "the run's samples are in PostgreSQL, and only its database can drop them",
            where=str(run),
            hint="drop the schemas named in its *.store.json files, then delete the directory",
        )
    return manifest


def _refuse_links(run: Path) -> None:
    """Refuse a run reached through a link; its lock must be no link, as locking empties it."""
    for place in (run, run.absolute().parent):
        if place.is_symlink():
            raise RunStateError(
                "this is a link, whose target may belong to another workspace",
                where=str(place),
                hint=f"name the run itself, {run.resolve()}, or delete the link",
            )
    if kind := special_kind(run / "run.lock"):
        raise RunStateError(
            f"run.lock is {kind}, which CoreEval never creates; nothing was deleted",
            where=str(run / "run.lock"),
            hint="delete it, then delete the run",
        )


def delete_run_files(run: Path, manifest: Manifest | None) -> list[Path]:
    """Delete the files that CoreEval made in a run's folder, and the folder if it is empty then.

    Args:
        run: The run's folder; the caller holds its lock.
        manifest: Its manifest; None if it is damaged.

    Returns:
        What stays: files and folders that CoreEval did not make, the config that the run was
        started from, and the call store of a replay if it has answers that were paid for.

    Raises:
        RunLocked: batches of the run are open; nothing was deleted.
        RunError: the call store cannot be read; nothing was deleted.
        OSError: a file cannot be deleted.
    """
    _refuse_open_batches(run, manifest)
    kept = set(_iter_foreign(run))
    if manifest and Path(manifest.source.path).resolve() == run / "config.yaml":
        kept.add(run / "config.yaml")
    if _has_paid_answers(run / _REPLAY_STORE[0]):
        kept.update(run / name for name in _REPLAY_STORE if (run / name).exists())
    own = [path for path in _iter_own(run) if path not in kept]
    for path in sorted(own, key=lambda each: (each.name in _LAST and each.parent == run, each)):
        path.unlink(missing_ok=True)
    for folder in sorted(_FOLDERS, reverse=True):
        place = run / folder
        if place.is_dir() and not place.is_symlink() and not any(place.iterdir()):
            place.rmdir()
    if not kept:
        run.rmdir()
    return sorted(kept)


def _refuse_open_batches(run: Path, manifest: Manifest | None) -> None:
    calls = _count_open_calls(run, manifest)
    if calls or (manifest and manifest.status == "waiting"):
        told = {
            0: "calls of the run may be in open batches",
            1: "1 call of the run is in an open batch",
        }
        many = f"{calls:,} calls of the run are in open batches"
        raise RunLocked(
            f"{told.get(calls, many)}: their answers would be paid for and lost",
            where=str(run),
            hint=f"finish it: {command('resume', run)}"
            if manifest
            else "restore its files from a backup and finish it with coreeval resume; if you can "
            "lose its answers, delete its folder by hand",
        )


def _count_open_calls(run: Path, manifest: Manifest | None) -> int:
    """Return the number of a run's calls in open batches, whichever workspace is its own.

    A run with a damaged manifest is known by the name of its folder alone.
    """
    recorded = [Path(manifest.workspace)] if manifest else []
    payer = manifest.payer if manifest else f"{run.parent.name}/{run.name}@"
    return max(
        sum(
            calls
            for name, calls in count_open_calls(Workspace(place).calls).items()
            if name == payer or (manifest is None and name.startswith(payer))
        )
        for place in (*recorded, *find_own_workspaces(run))
    )


def _has_paid_answers(calls: Path) -> bool:
    """Return whether a call store has answers that were paid for, or cannot be read."""
    if not calls.exists():
        return False
    try:
        with open_readonly(calls, what="the call store") as store:
            return store.execute(_PAID).fetchone() is not None
    except RunError:
        return True


def _iter_own(run: Path) -> Iterator[Path]:
    return (path for path, own in _walk(run) if own)


def _iter_foreign(run: Path) -> Iterator[Path]:
    """Yield the files and folders that CoreEval did not make, not what is in such a folder."""
    return (path for path, own in _walk(run) if not own)


def _walk(run: Path, folder: str = "") -> Iterator[tuple[Path, bool]]:
    """Yield the files and the foreign folders of a run's folder, each with whether it is own."""
    with os.scandir(run / folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        name = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir(follow_symlinks=False) and name in _FOLDERS:
            yield from _walk(run, name)
        else:
            yield run / name, entry.is_file(follow_symlinks=False) and _is_own(name)


def _is_own(name: str) -> bool:
    """Return whether a file has a name that CoreEval gives, or is a draft of such a file."""
    folder, slash, last = name.rpartition("/")
    draft = _DRAFT.fullmatch(last)
    whole = f"{folder}{slash}{draft[1]}" if draft else name
    return any(fnmatchcase(whole, pattern) for pattern in _PATTERNS)
