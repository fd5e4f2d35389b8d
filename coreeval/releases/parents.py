"""Which release a new one follows."""

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Literal

from coreeval.errors import ReleaseError
from coreeval.releases.manifest import Followed
from coreeval.releases.release import Release, latest_of, read_release, releases_in
from coreeval.releases.release_manifest import ParentRelease
from coreeval.releases.verifying import verify

Parent = Path | Literal["latest"] | None
"""A release, the latest of the same name, or none."""


def find_parent(
    chosen: Parent, name: str, folders: Iterable[Path], *, followed: Followed | None = None
) -> Release | None:
    """Return the parent of a new release.

    Args:
        chosen: What was asked for.
        name: The benchmark's.
        folders: Where `latest` looks.
        followed: The release that the run was made from, which then is the latest.

    Raises:
        ReleaseError: it is not there, is not what was made, or is of another benchmark.
    """
    if chosen is None:
        return None
    found: Release | None
    if chosen != "latest":
        found = read_release(chosen)
    elif followed:
        found = _followed(followed)
    else:
        found = _latest(name, folders)
    if found:
        _refuse_other(found, name)
        _refuse_edited(found)
    return found


def _followed(by_run: Followed) -> Release:
    found = read_release(Path(by_run.path))
    if found.digest != by_run.digest:
        raise ReleaseError(
            f"this is not the release {by_run.version} that the run was made from",
            where=by_run.path,
            hint="put it back as it was published, or name another release",
        )
    return found


def _latest(name: str, folders: Iterable[Path]) -> Release | None:
    known = {each.digest: each for folder in folders for each in releases_in(folder)}
    return latest_of([each for each in known.values() if each.manifest.name == name])


def _refuse_other(parent: Release, name: str) -> None:
    if parent.manifest.name != name:
        raise ReleaseError(
            f"the parent is a release of {parent.manifest.name!r}, this is one of {name!r}",
            where=str(parent.path),
            hint="name a release of the same benchmark, or none",
        )


def _refuse_edited(parent: Release) -> None:
    """Refuse to build on what is no longer what was made."""
    problems = verify(parent.path, chain=False).problems
    if problems:
        first = problems[0]
        raise ReleaseError(
            f"the parent {parent.manifest.version} is not what was made: {first.file}: "
            f"{first.message}",
            where=str(parent.path),
            hint="put it back as it was published, or name another release",
        )


def refuse_before(parent: Release, now: datetime) -> None:
    """Refuse a release that the clock would date before its parent.

    Raises:
        ReleaseError: the clock is behind.
    """
    made = datetime.fromisoformat(parent.manifest.created_at)
    if now < made:
        raise ReleaseError(
            f"the clock says {now.isoformat(timespec='seconds')}, which is before the parent "
            f"{parent.manifest.version} was made ({parent.manifest.created_at})",
            where=str(parent.path),
            hint="set the clock of this machine right; if it was wrong when that release was made, "
            "move the release away, or name another --parent",
        )


def named_parent(parent: Release, target: Path) -> ParentRelease:
    """Return what a release at `target` says of its parent."""
    return ParentRelease(
        version=parent.manifest.version,
        digest=parent.digest,
        path=os.path.relpath(parent.path.resolve(), target.parent.resolve() / target.name),
    )
