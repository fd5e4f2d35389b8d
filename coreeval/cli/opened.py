"""Opening a run to look at it: nothing in it is created or changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.output import note
from coreeval.errors import CoreEvalError
from coreeval.tools.clock import utc_now

if TYPE_CHECKING:
    from coreeval.releases.manifest import Manifest
    from coreeval.tools.stores.calls import CallStore
    from coreeval.tools.stores.runs import RunStore
    from coreeval.tools.workspace import RunFiles


@contextmanager
def opened_run(run: Path) -> Iterator[tuple["RunFiles", "Manifest", "RunStore"]]:
    """Open a run's store for the block.

    Raises:
        RunStateError: there is no run here.
        RunCorrupt: run.db is damaged or gone.
    """
    from coreeval.releases.manifest import read_manifest
    from coreeval.tools.stores.runs import RunStore
    from coreeval.tools.workspace import RunFiles

    files = RunFiles(run)
    manifest = read_manifest(files.manifest)
    store = RunStore.open(files.require_store(), now=utc_now)
    try:
        yield files, manifest, store
    finally:
        store.close()


@contextmanager
def opened_calls(manifest: "Manifest") -> Iterator["CallStore | None"]:
    """Open the call store of a run for the block; None, with a note, where it cannot be used."""
    from coreeval.tools.stores.calls import open_calls
    from coreeval.tools.workspace import Workspace

    path = Workspace(Path(manifest.workspace)).calls
    if not path.exists():
        yield None
        return
    try:
        calls = open_calls(path)
    except CoreEvalError as error:
        note(f"without prompts and answers: {error}")
        yield None
        return
    try:
        yield calls
    finally:
        calls.close()
