"""The run whose texts a person decides about: named itself, or by a release that was made of it."""

from pathlib import Path

from coreeval.errors import RunStateError, UsageError
from coreeval.releases.manifest import read_manifest
from coreeval.releases.release import MANIFEST, Release, read_release
from coreeval.tools.workspace import RunFiles, Workspace


def run_of(place: Path) -> Path:
    """Return the run that a directory is, or that the release in it was made of.

    Raises:
        UsageError: it is neither, or the release's run is not in its workspace.
        ReleaseError: the release is damaged.
    """
    if RunFiles(place).manifest.exists():
        return place
    if not (place / MANIFEST).exists():
        raise UsageError(
            "this is neither a run nor a release",
            where=str(place),
            hint="give the directory that `coreeval refresh` or `coreeval release` printed",
        )
    return _made_of(read_release(place))


def _made_of(release: Release) -> Path:
    """Return the run that a release in its workspace was made of."""
    release_folder = release.path.resolve()
    workspace = Workspace(release_folder.parents[min(2, len(release_folder.parents) - 1)])
    run = workspace.runs / release.manifest.run
    if not _is(run, release):
        raise UsageError(
            f"the run {release.manifest.run} that this release was made of is not in its workspace",
            where=str(workspace.root),
            hint="give the run's directory: decisions are about its texts",
        )
    return run


def _is(run: Path, release: Release) -> bool:
    try:
        manifest = read_manifest(RunFiles(run).manifest)
    except RunStateError:
        return False
    return (manifest.run, manifest.now) == (release.manifest.run, release.manifest.now)
