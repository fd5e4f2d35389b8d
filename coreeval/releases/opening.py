"""Opening a run to look at it: nothing in it is created or changed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from coreeval.errors import CoreEvalError
from coreeval.releases.manifest import Manifest, read_manifest
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace


class OpenedRun(NamedTuple):
    """What a run is read from."""

    files: RunFiles
    manifest: Manifest
    store: RunStore


@contextmanager
def opened_run(root: Path) -> Iterator[OpenedRun]:
    """Open a run's store for the block.

    Raises:
        RunStateError: there is no run here, or it has no readable manifest.
        RunCorrupt: run.db is damaged or gone.
    """
    files = RunFiles(root)
    manifest = read_manifest(files.manifest)
    store = RunStore.open(files.require_store(), now=utc_now)
    try:
        yield OpenedRun(files, manifest, store)
    finally:
        store.close()


@contextmanager
def opened_calls(
    manifest: Manifest, told: Callable[[str], None] = lambda _: None
) -> Iterator[CallStore | None]:
    """Open the call store of a run for the block; None where it is gone or cannot be used.

    Args:
        manifest: The run's.
        told: Told why it cannot be used.
    """
    path = Workspace(Path(manifest.workspace)).calls
    store = None
    if path.exists():
        try:
            store = open_calls(path)
        except CoreEvalError as error:
            told(f"without prompts and answers: {error}")
    try:
        yield store
    finally:
        if store:
            store.close()
