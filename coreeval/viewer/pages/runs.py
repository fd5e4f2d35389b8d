"""The first page: the runs and releases that are here."""

from collections.abc import Iterator
from dataclasses import dataclass
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
    manifest: ReleaseManifest | None
    problem: str = ""


def show(request: Request) -> Response:
    """List runs, newest first, and releases."""
    shelf: Shelf = request.app.state.shelf
    runs = [_run(key, path) for key, path in shelf.all_runs().items()]
    runs.sort(key=lambda one: one.now.created_at if one.now else "", reverse=True)
    return page(request, "runs.html", runs=runs, releases=list(_releases(shelf)))


def _run(key: str, path: Path) -> ListedRun:
    name = "/".join(path.parts[-2:])
    try:
        return ListedRun(key=key, name=name, now=live(path))
    except CoreEvalError as error:
        return ListedRun(key=key, name=name, now=None, problem=error.message)


def _releases(shelf: Shelf) -> Iterator[ListedRelease]:
    for key, path in shelf.all_releases().items():
        try:
            yield ListedRelease(key=key, manifest=read_release(path).manifest)
        except CoreEvalError as error:
            yield ListedRelease(key=key, manifest=None, problem=error.message)
