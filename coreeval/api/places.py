"""Runs and releases as arguments of functions."""

from pathlib import Path

from coreeval.releases.named import find_release_folder, find_run_or_release
from coreeval.releases.release import Release
from coreeval.runs.manifest import RunSummary
from coreeval.runs.names import find_run_folder
from coreeval.tools.workspace import Workspace, workspace_for

RunLike = Path | str | RunSummary
"""A run: its directory, its id, its benchmark's name, `latest`, or the value itself."""
ReleaseLike = Path | str | Release
"""A release: its directory, the id of its run, or the value itself."""
SideLike = Path | str | RunSummary | Release
"""A run or a release: its directory, a run's id or name, `latest`, or the value itself."""


def find_run(run: RunLike) -> Path:
    """Return the directory of a run.

    Raises:
        RunStateError: there is no such run.
        UsageError: the word stands for several runs, or for a file.
    """
    return (run.run_dir if isinstance(run, RunSummary) else find_run_folder(run)).resolve()


def find_release(release: ReleaseLike) -> Path:
    """Return the directory of a release.

    Raises:
        ReleaseError: there is no such release.
    """
    return release.path if isinstance(release, Release) else find_release_folder(release)


def find_side(side: SideLike) -> Path:
    """Return the directory of a run or a release.

    Raises:
        RunStateError: neither exists.
        UsageError: the word stands for several runs, or for a file.
    """
    if isinstance(side, RunSummary):
        return side.run_dir
    return side.path if isinstance(side, Release) else find_run_or_release(side)


def find_workspace(folder: Path | str | None) -> Workspace:
    """Return a workspace, given it or its folder; by default the current one.

    Args:
        folder: The workspace, or the folder that has a `.coreeval`.
    """
    if folder is None:
        return workspace_for(Path.cwd())
    place = Path(folder)
    return Workspace(place / ".coreeval" if (place / ".coreeval").is_dir() else place)
