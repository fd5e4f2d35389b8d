"""The first page: the runs and releases that are here."""

from dataclasses import dataclass, replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from coreeval.errors import CoreEvalError
from coreeval.releases.live import Live, live
from coreeval.releases.release import read_release
from coreeval.releases.release_manifest import ReleaseManifest
from coreeval.viewer.rendering import page
from coreeval.viewer.shelf import Shelf


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """A run in the list: where it is, or why that cannot be read."""

    key: str
    name: str
    now: Live | None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class ListedRelease:
    """A release in the list, or why it cannot be read."""

    key: str
    """In addresses it is told from a run's by what stands before it."""
    manifest: ReleaseManifest | None
    parent: str = ""
    """Key of the release that it follows; empty where that is not here."""
    problem: str = ""


def show(request: Request) -> Response:
    """List runs, newest first, and releases."""
    shelf: Shelf = request.app.state.shelf
    runs = [_run(key, path) for key, path in shelf.all_runs().items()]
    runs.sort(key=lambda one: one.now.created_at if one.now else "", reverse=True)
    return page(request, "runs.html", runs=runs, releases=_releases(shelf))


def _run(key: str, path: Path) -> ListedRun:
    name = "/".join(path.parts[-2:])
    try:
        return ListedRun(key=key, name=name, now=live(path))
    except CoreEvalError as error:
        return ListedRun(key=key, name=name, now=None, problem=error.message)


def _releases(shelf: Shelf) -> list[ListedRelease]:
    """Return releases, each with the key of the one that it follows."""
    found = [_release(key, path) for key, path in shelf.all_releases().items()]
    keys = {(one.manifest.name, one.manifest.version): one.key for one in found if one.manifest}
    return [
        replace(one, parent=keys.get((one.manifest.name, one.manifest.parent.version), ""))
        if one.manifest and one.manifest.parent
        else one
        for one in found
    ]


def _release(key: str, path: Path) -> ListedRelease:
    try:
        return ListedRelease(key=key, manifest=read_release(path).manifest)
    except CoreEvalError as error:
        return ListedRelease(key=key, manifest=None, problem=error.message)
