"""Finds runs and releases by the names that users give them."""

from pathlib import Path

from coreeval.errors import ReleaseError, RunStateError
from coreeval.releases.release import MANIFEST, find_latest_release, list_releases
from coreeval.runs.manifest import read_manifest
from coreeval.runs.names import find_run_folder, short_id
from coreeval.tools.workspace import RunFiles, workspace_for


def find_run_or_release(given: Path | str) -> Path:
    """Return the directory of a release, or of a run given by any of its names.

    Raises:
        RunStateError: neither exists.
        UsageError: the word is ambiguous, or is a file.
    """
    place = Path(given)
    return place if (place / MANIFEST).exists() else find_run_folder(given, what="run or release")


def find_release_folder(given: Path | str) -> Path:
    """Return the directory of a release, or of the last release of a run.

    Raises:
        ReleaseError: there is no such run, or it has no release in the workspace.
    """
    place = Path(given)
    if place.exists():
        return place
    try:
        run = find_run_folder(place, what="release or run")
    except RunStateError as error:
        raise ReleaseError(error.message, where=error.where, hint=error.hint) from None
    made = read_manifest(RunFiles(run).manifest)
    releases = list_releases(workspace_for(Path.cwd()).releases / made.name)
    same = [
        each for each in releases if (each.manifest.run, each.manifest.now) == (made.run, made.now)
    ]
    found = find_latest_release(same)
    if found is None:
        raise ReleaseError(
            f"run {short_id(run)} ({'/'.join(run.parts[-2:])}) has no release yet",
            where=str(run),
            hint=f"coreeval release {short_id(run)} --version VERSION",
        )
    return found.path
