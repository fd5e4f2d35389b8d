"""Opens runs for reading, and finds the calls that the runs of a workspace need.

Nothing in a run is created or changed. `lock_runs` keeps other processes from using runs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from coreeval.errors import CoreEvalError, RunLocked
from coreeval.runs.manifest import Manifest, full_counts, read_manifest, read_original_manifest
from coreeval.tools.clock import utc_now
from coreeval.tools.formatting import format_quantity
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.places import has_store, iter_stores
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace, command


class RunReader(NamedTuple):
    """The sources for reading a run."""

    files: RunFiles
    manifest: Manifest
    store: RunStore


@contextmanager
def open_run_reader(root: Path) -> Iterator[RunReader]:
    """Open a run's store for the block.

    Raises:
        RunStateError: there is no run, or its manifest cannot be read.
        RunCorrupt: run.db is damaged or missing.
    """
    files = RunFiles(root)
    manifest = read_manifest(files.manifest)
    with RunStore.open(files.require_store(), now=utc_now) as store:
        yield RunReader(files, manifest, store)


def explain_unfinished(files: RunFiles, manifest: Manifest) -> str | None:
    """Return why a run is not finished; None if it is.

    The stores are asked as well, because a manifest may be older than they are.

    Raises:
        RunCorrupt: run.db is damaged.
    """
    total = pending = 0
    for each in (files, files.control):
        if has_store(each.store):
            with RunStore.open(each.store, now=utc_now) as store:
                counts = full_counts(store.total(), store.counts())
            total, pending = total or counts["total"], pending or counts["pending"]
    if manifest.status == "complete" and not pending:
        return None
    status = "interrupted" if manifest.status == "complete" else manifest.status
    samples = format_quantity(total, "sample is", "samples are")
    return f"the run is unfinished ({status}): {pending} of {samples} pending"


@contextmanager
def open_run_calls(
    manifest: Manifest, told: Callable[[str], None] = lambda _: None
) -> Iterator[CallStore | None]:
    """Open a run's call store for the block; None if it is missing or cannot be used.

    Args:
        manifest: The run's manifest.
        told: Called with the reason that the store cannot be used.
    """
    path = Workspace(Path(manifest.workspace)).calls
    store = None
    if has_store(path):
        try:
            store = open_calls(path)
        except CoreEvalError as error:
            told(f"without prompts and answers: {error}")
    try:
        yield store
    finally:
        if store:
            store.close()


@dataclass(frozen=True, kw_only=True)
class CallReferences:
    """The calls and payers that runs need in a call store."""

    keys: frozenset[str]
    """The keys of the calls that they used."""
    payers: frozenset[str]
    """The names under which they paid."""


def list_runs(workspace: Workspace) -> list[RunFiles]:
    """Return the runs in a workspace."""
    return [RunFiles(path.parent) for path in iter_stores(workspace.runs, "run.db")]


def collect_references(runs: Sequence[RunFiles]) -> CallReferences:
    """Return the calls and payers that the runs refer to.

    Raises:
        RunCorrupt: a run's store is damaged, so its references are unknown.
        RunStateError: a run's manifest is damaged.
    """
    keys, payers = set[str](), set[str]()
    for files in runs:
        with RunStore.open(files.store, now=utc_now) as store:
            keys.update(store.history.call_keys())
        if files.manifest.exists():  # a run killed at its start has none
            payers.add(read_original_manifest(files.manifest).payer)
    return CallReferences(keys=frozenset(keys), payers=frozenset(payers))


def is_run_name(payer: str) -> bool:
    """Return whether a name in the call store is a run's, independent of the run's directory."""
    return "@" in payer


@contextmanager
def lock_runs(runs: Sequence[RunFiles]) -> Iterator[None]:
    """Hold the locks of runs, so that no other process uses them during the block.

    Raises:
        RunLocked: another process is using one of the runs.
    """
    with ExitStack() as held:
        for files in runs:
            try:
                held.enter_context(FileLock(files.lock, timeout=0))
            except Timeout:
                hint = f"wait until it ends, or check it with: {command('status', files.root)}"
                raise RunLocked(
                    "a run of this workspace is active", where=str(files.root), hint=hint
                ) from None
        yield
