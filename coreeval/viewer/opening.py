"""Opening a run for one page; nothing in it is created or changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request

from coreeval.releases.manifest import Manifest
from coreeval.releases.opening import opened_run
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles
from coreeval.viewer.shelf import Shelf


@dataclass(frozen=True, kw_only=True)
class OpenRun:
    """A run as a page reads it."""

    key: str
    """Its name in addresses."""
    files: RunFiles
    manifest: Manifest
    store: RunStore


@contextmanager
def opened(request: Request, key: str | None = None) -> Iterator[OpenRun]:
    """Open a run for the block: the one of the address, unless another key is given.

    Raises:
        HTTPException: 404, there is none with this key.
        RunStateError: it has no readable manifest.
        RunCorrupt: its run.db is damaged or gone.
    """
    key = request.path_params["key"] if key is None else key
    with opened_run(run_path(request, key)) as (files, manifest, store):
        yield OpenRun(key=key, files=files, manifest=manifest, store=store)


def run_path(request: Request, key: str) -> Path:
    """Return the directory of a run.

    Raises:
        HTTPException: 404, there is none with this key.
    """
    shelf: Shelf = request.app.state.shelf
    known = shelf.all_runs()
    if key not in known:
        raise HTTPException(404, f"There is no run {key!r} here.")
    return known[key]
