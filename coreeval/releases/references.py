"""The runs of a workspace: what they refer to in its call store, and whether they are at rest."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from filelock import FileLock, Timeout

from coreeval.errors import RunLocked
from coreeval.releases.manifest import read_manifest
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace, command


@dataclass(frozen=True, kw_only=True)
class References:
    """What runs need of a call store."""

    keys: frozenset[str]
    """Calls that they used."""
    payers: frozenset[str]
    """Their names there, under which they paid."""


def runs_in(workspace: Workspace) -> list[RunFiles]:
    """Return the runs that are kept in a workspace."""
    return [RunFiles(path.parent) for path in sorted(workspace.runs.rglob("run.db"))]


def references(runs: Sequence[RunFiles]) -> References:
    """Return what runs refer to.

    Raises:
        RunCorrupt: the record of one is damaged, so nobody knows what it refers to.
        RunStateError: its manifest is.
    """
    keys, payers = set[str](), set[str]()
    for files in runs:
        store = RunStore.open(files.store, now=utc_now)
        try:
            keys.update(store.call_keys())
        finally:
            store.close()
        if files.manifest.exists():  # a run that was killed at its start has none
            payers.add(read_manifest(files.manifest).payer)
    return References(keys=frozenset(keys), payers=frozenset(payers))


def is_run(payer: str) -> bool:
    """Tell whether a name in the call store is that of a run, wherever its directory is."""
    return "@" in payer


@contextmanager
def at_rest(runs: Sequence[RunFiles]) -> Iterator[None]:
    """Hold the locks of runs, so that nobody works on one inside the block.

    Raises:
        RunLocked: somebody does.
    """
    with ExitStack() as held:
        for files in runs:
            try:
                held.enter_context(FileLock(files.lock, timeout=0))
            except Timeout:
                hint = f"wait for it, or look with: {command('status', files.root)}"
                raise RunLocked(
                    "a run of this workspace is being worked on", where=str(files.root), hint=hint
                ) from None
        yield
