"""Opening a run to look at it: nothing in it is created or changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.output import utc_now
from coreeval.errors import RunCorrupt, RunStateError

if TYPE_CHECKING:
    from coreeval.releases.manifest import Manifest
    from coreeval.tools.stores.runs import RunStore
    from coreeval.tools.workspace import RunFiles


@contextmanager
def opened_run(run: Path) -> Iterator[tuple["RunFiles", "Manifest", "RunStore"]]:
    """Open a run's store for the block.

    Raises:
        RunStateError: there is no run here, or it has only just begun.
        RunCorrupt: run.db is damaged or gone.
    """
    from coreeval.releases.manifest import read_manifest
    from coreeval.tools.stores.runs import RunStore
    from coreeval.tools.workspace import RunFiles

    files = RunFiles(run)
    manifest = read_manifest(files.manifest)
    if not files.store.exists():
        raise _missing(files, begun=manifest.counts["total"] > 0)
    store = RunStore.open(files.store, now=utc_now)
    try:
        yield files, manifest, store
    finally:
        store.close()


def _missing(files: "RunFiles", *, begun: bool) -> RunCorrupt | RunStateError:
    if begun:
        return RunCorrupt(
            "run.db is missing from a run that had one",
            where=str(files.store),
            hint="restore it from a copy, or start a new run",
        )
    return RunStateError(
        "the run has not read a sample yet",
        where=str(files.root),
        hint=f"wait a moment; if nothing works on it: coreeval resume {files.root}",
    )
