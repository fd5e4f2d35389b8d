"""The runs and releases on the pages, by keys that are valid in URLs.

A run is opened for one page, and nothing in it is created or changed.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request

from coreeval.runs.manifest import Manifest
from coreeval.runs.open import open_run_reader
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, kw_only=True)
class RunCatalog:
    """The named runs, and the current runs of a workspace."""

    runs: Sequence[Path] = ()
    workspace: Workspace | None = None
    """The workspace whose runs and releases are also shown; None to show only the named runs."""

    def find_runs(self) -> dict[str, Path]:
        """Return the directories of runs by key; those with the same name are sorted by start."""
        found = sorted(self.workspace.runs.glob("*/*/manifest.json")) if self.workspace else []
        return _assign_keys([*self.runs, *(path.parent for path in found)])

    @property
    def run_paths(self) -> list[Path]:
        """Return the directories of all existing runs."""
        return list(self.find_runs().values())

    def find_releases(self) -> dict[str, Path]:
        """Return the directories of releases by key, sorted by name and version."""
        found = sorted(self.workspace.releases.glob("*/*/release.json")) if self.workspace else []
        return _assign_keys(path.parent for path in found)


def _assign_keys(paths: Iterable[Path]) -> dict[str, Path]:
    """Key each directory by its last two parts, plus a hash if others have the same two."""
    distinct = list(dict.fromkeys(path.resolve() for path in paths))
    short = Counter(_make_slug(path) for path in distinct)
    return {
        _make_slug(path)
        if short[_make_slug(path)] == 1
        else f"{_make_slug(path)}-{_hash_path(path)}": path
        for path in distinct
    }


def _make_slug(path: Path) -> str:
    return ".".join(_UNSAFE.sub("-", part).strip("-") or "-" for part in path.parts[-2:])


def _hash_path(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:6]


@dataclass(frozen=True, kw_only=True)
class OpenRun:
    """A run opened for a page."""

    key: str
    """Its name in URLs."""
    files: RunFiles
    manifest: Manifest
    store: RunStore


@contextmanager
def open_requested_run(request: Request, key: str | None = None) -> Iterator[OpenRun]:
    """Open a run for the block: by default, the run in the address.

    Raises:
        HTTPException: 404, no run has this key.
        RunStateError: the run's manifest cannot be read.
        RunCorrupt: the run's run.db is damaged or missing.
    """
    key = request.path_params["key"] if key is None else key
    with open_run_reader(find_run_path(request, key)) as (files, manifest, store):
        yield OpenRun(key=key, files=files, manifest=manifest, store=store)


def find_run_path(request: Request, key: str) -> Path:
    """Return the directory of a run.

    Raises:
        HTTPException: 404, no run has this key.
    """
    catalog: RunCatalog = request.app.state.catalog
    known = catalog.find_runs()
    if key not in known:
        raise HTTPException(404, f"This workspace has no run {key!r}.")
    return known[key]
