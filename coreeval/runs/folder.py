"""Identifies CoreEval's own files in a run's folder, and deletes only those."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Final, get_args

from coreeval.config import ROLES
from coreeval.errors import RunError, RunLocked, RunStateError
from coreeval.evaluation.detectors import DETECTORS, DOCUMENTED
from coreeval.evaluation.detectors.documents import ANY_PLUGIN
from coreeval.prompts import PromptName
from coreeval.runs.arms import ANY_SHARD
from coreeval.runs.batches import count_open_calls
from coreeval.runs.manifest import Manifest, read_original_manifest
from coreeval.runs.names import has_manifest, list_run_folders
from coreeval.tools.files import special_kind
from coreeval.tools.stores.heartbeat import open_readonly
from coreeval.tools.stores.places import has_store, store_kind
from coreeval.tools.workspace import (
    RUN_FILES,
    RunFiles,
    Workspace,
    command,
    find_own_workspaces,
    knows_payer,
    name_target_file,
)

_ARMS = ("updated", "semantic", "provenance", "control")
_REPLAY_STORE: Final = tuple(
    f"cassette/workspace/calls.db{end}" for end in ("", "-wal", "-shm", "-journal")
)
"""The call store in the folder of a run, which only replays of cassettes have."""
_ANY_RUN: Final = (
    *RUN_FILES,
    *("dataset/README.md", *(f"dataset/{arm}/{ANY_SHARD}" for arm in _ARMS)),
    *(f"detectors/{name}.json" for name in (*DOCUMENTED, ANY_PLUGIN)),
    *(f"detectors/{name}/*.jsonl" for name in {*DETECTORS, *DOCUMENTED}),
)
_REPLAY: Final = (
    *("cassette/task.yaml", "cassette/takedown.txt"),
    *(f"cassette/prompts/{name}.md" for name in get_args(PromptName)),
    *(f"cassette/answers/{role}.jsonl" for role in ROLES),
    *_REPLAY_STORE,
)
_REPLY_ENDS: Final = tuple(
    f"{number}{what}.jsonl" for number in ("", "-[0-9]", "-[0-9][0-9]") for what in ("", ".utility")
)
"""The endings of files with a target's answers about series."""


@dataclass(frozen=True)
class _OwnFiles:
    """Name patterns of the files that CoreEval creates in a run's folder."""

    patterns: tuple[str, ...]

    @classmethod
    def of(cls, manifest: Manifest | None) -> "_OwnFiles":
        """Return a run's patterns; without a manifest, any run's, except for series answers."""
        if manifest is None:
            return cls((*_ANY_RUN, *_REPLAY))
        asked = [*manifest.models.get("targets", ()), *_list_added(manifest)]
        names = {name_target_file(target["model"]) for target in asked}
        replies = (f"numleak/{name}{end}" for name in names for end in _REPLY_ENDS)
        return cls((*_ANY_RUN, *(_REPLAY if manifest.cassette else ()), *replies))

    @cached_property
    def folders(self) -> frozenset[str]:
        """Return the folders that CoreEval creates."""
        parents = (parent for pattern in self.patterns for parent in Path(pattern).parents)
        return frozenset(map(str, parents)) - {"."}

    def __contains__(self, name: str) -> bool:
        """Return whether CoreEval creates a file, or a draft, with this name."""
        folder, slash, last = name.rpartition("/")
        draft = _DRAFT.fullmatch(last)
        whole = f"{folder}{slash}{draft[1]}" if draft else name
        return any(fnmatchcase(whole, pattern) for pattern in self.patterns)


def _list_added(manifest: Manifest) -> Sequence[Mapping[str, Any]]:
    return manifest.evaluation.added if manifest.evaluation else ()


_DRAFT = re.compile(r"\.(.+)\.\d+\.tmp")
_LAST: Final = ("manifest.json", "run.lock")
"""Files that are deleted last, so that an interrupted deletion can be repeated."""
_PAID = "SELECT 1 FROM calls WHERE usd IS NULL OR usd > 0 LIMIT 1"


def refuse_used_folder(folder: Path, workspace: Workspace) -> None:
    """Refuse a folder for a new run unless it is new, empty, or from a run killed at its start.

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
    foreign = next(_iter_foreign(folder, _OwnFiles.of(None)), None)
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
    """Refuse a run reached through a link, or whose lock is a link, as locking empties the file."""
    for place in (run, run.absolute().parent):
        if place.is_symlink():
            raise RunStateError(
                "this is a link, whose target may belong to another workspace",
                where=str(place),
                hint=f"use the run's own path, {run.resolve()}, or delete the link",
            )
    if kind := special_kind(run / "run.lock"):
        raise RunStateError(
            f"run.lock is {kind}, which CoreEval never creates; nothing was deleted",
            where=str(run / "run.lock"),
            hint="delete it, then delete the run",
        )


def delete_run_files(run: Path, manifest: Manifest | None) -> list[Path]:
    """Delete CoreEval's files in a run's folder, and the folder if it is then empty.

    Args:
        run: The run's folder; the caller holds its lock.
        manifest: Its manifest; None if it is damaged.

    Returns:
        The remaining files: files and folders that CoreEval did not create, the config that the run
            was
        started from, and the call store of a replay if it has answers that were paid for.

    Raises:
        RunLocked: batches of the run are open; nothing was deleted.
        RunError: the call store cannot be read; nothing was deleted.
        OSError: a file cannot be deleted.
    """
    _refuse_open_batches(run, manifest)
    files = _OwnFiles.of(manifest)
    kept = set(_iter_foreign(run, files))
    if manifest and Path(manifest.source.path).resolve() == run / "config.yaml":
        kept.add(run / "config.yaml")
    if _has_paid_answers(run / _REPLAY_STORE[0]):
        kept.update(run / name for name in _REPLAY_STORE if (run / name).exists())
    own = [path for path in _iter_own(run, files) if path not in kept]
    for path in sorted(own, key=lambda each: (each.name in _LAST and each.parent == run, each)):
        path.unlink(missing_ok=True)
    for folder in sorted(files.folders, reverse=True):
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
            f"{told.get(calls, many)}: the answers would be paid for but lost",
            where=str(run),
            hint=f"finish it: {command('resume', run)}"
            if manifest
            else "restore its files from a backup and finish it with coreeval resume; if you do "
            "not need its answers, delete its folder by hand",
        )
    if manifest and manifest.batching and not _has_own_calls(run, manifest):
        raise RunLocked(
            "the run sent batches, but the call store that says whether one is open is missing",
            where=manifest.workspace,
            hint="restore the workspace, or set its current location with COREEVAL_HOME=DIR; if "
            "you do not need the run's answers, delete its folder by hand",
        )


def _count_open_calls(run: Path, manifest: Manifest | None) -> int:
    """Return the number of a run's calls in open batches, in any workspace that may be its own.

    A run with a damaged manifest is identified by the name of its folder, which may have changed,
    so every batch that no other run of the workspace sent may be its own.
    """
    return max(
        sum(
            calls
            for payer, calls in count_open_calls(workspace.calls).items()
            if (payer == manifest.payer if manifest else _may_pay(run, payer, workspace))
        )
        for workspace in _list_workspaces(run, manifest)
    )


def _may_pay(run: Path, payer: str, workspace: Workspace) -> bool:
    """Return whether a payer may be a run with a damaged manifest."""
    return payer.startswith(f"{run.parent.name}/{run.name}@") or not (
        payer in workspace.asking_payers or any(payer == other for other in _iter_payers(workspace))
    )


def _iter_payers(workspace: Workspace) -> Iterator[str]:
    """Yield the payers of the runs of a workspace whose manifests are intact."""
    for folder in list_run_folders(workspace):
        with suppress(RunStateError):
            yield read_original_manifest(folder / "manifest.json").payer


def _has_own_calls(run: Path, manifest: Manifest) -> bool:
    """Return whether the run's call store was found: it knows the run, or contains it."""
    return any(
        knows_payer(workspace.root, manifest.payer)
        or (has_store(workspace.calls) and run.is_relative_to(workspace.runs.resolve()))
        for workspace in _list_workspaces(run, manifest)
    )


def _list_workspaces(run: Path, manifest: Manifest | None) -> list[Workspace]:
    """Return the workspaces that may be a run's own; they need not exist."""
    recorded = [Path(manifest.workspace)] if manifest else []
    return [Workspace(place) for place in (*recorded, *find_own_workspaces(run))]


def _has_paid_answers(calls: Path) -> bool:
    """Return whether a call store has answers that were paid for, or cannot be read."""
    if not calls.exists():
        return False
    try:
        with open_readonly(calls, what="the call store") as store:
            return store.execute(_PAID).fetchone() is not None
    except RunError:
        return True


def _iter_own(run: Path, files: _OwnFiles) -> Iterator[Path]:
    return (path for path, own in _walk(run, files) if own)


def _iter_foreign(run: Path, files: _OwnFiles) -> Iterator[Path]:
    """Yield the files and folders that CoreEval did not create, without such folders' contents."""
    return (path for path, own in _walk(run, files) if not own)


def _walk(run: Path, files: _OwnFiles, folder: str = "") -> Iterator[tuple[Path, bool]]:
    """Yield the files and foreign folders of a run's folder, each with whether it is CoreEval's."""
    with os.scandir(run / folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        name = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir(follow_symlinks=False) and name in files.folders:
            yield from _walk(run, files, name)
        else:
            yield run / name, entry.is_file(follow_symlinks=False) and name in files
