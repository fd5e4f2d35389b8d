"""The release that a refresh follows: found, checked, and asked what a run may keep of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coreeval.config.dates import Age, parse_age
from coreeval.errors import ReleaseError, UsageError
from coreeval.graph.setup import Setup
from coreeval.releases.keeping import Keeper, Terms
from coreeval.releases.manifest import Followed
from coreeval.releases.parents import find_parent
from coreeval.releases.release import Release
from coreeval.releases.stale import Horizon, new_cutoffs
from coreeval.tools.workspace import Workspace

LATEST: Final = "latest"


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """What a user says of the release that a refresh follows."""

    release: Path | str
    """Its directory, or `latest` for the last one of this name in the workspace."""
    stale_after: str | None = None
    """How old evidence may be, such as `90d`; None where only new targets make it stale."""


def lineage_of(release: Path | str | None, stale_after: str | None) -> Lineage | None:
    """Return what was said of the release to follow; None where none is.

    Raises:
        UsageError: the age is none, or there is no release that it could be about.
    """
    if release is None and stale_after is not None:
        raise UsageError(
            "--stale-after says which samples of a release are made anew, and no release is named",
            where="--stale-after",
            hint="name it: --from RELEASE, or --from latest",
        )
    if stale_after is not None:
        _age(stale_after)
    return None if release is None else Lineage(release=release, stale_after=stale_after)


def followed(lineage: Lineage, setup: Setup, workspace: Workspace) -> Followed:
    """Find the release that a run is to follow.

    Raises:
        ReleaseError: it is not there, was edited, or is of another benchmark.
    """
    name = setup.config.name
    release = _found(lineage.release, name, workspace)
    manifest = release.manifest
    asked = {"task": setup.task.name, "split": setup.config.dataset.split}
    for what, wanted in asked.items():
        if (there := getattr(manifest, what)) != wanted:
            raise ReleaseError(
                f"the release has the {what} {there!r}, the config {wanted!r}",
                where=str(release.path),
                hint="name a release of the same benchmark, or refresh without --from",
            )
    return Followed(
        version=manifest.version,
        digest=release.digest,
        path=str(release.path.resolve()),
        stale_after=lineage.stale_after,
    )


def _found(chosen: Path | str, name: str, workspace: Workspace) -> Release:
    shelf = workspace.releases / name
    found = find_parent(LATEST if str(chosen) == LATEST else Path(chosen), name, (shelf,))
    if found is None:
        raise ReleaseError(
            f"there is no release of {name!r} yet",
            where=str(shelf),
            hint="the first refresh is one without --from; then: coreeval release RUN --version V",
        )
    return found


def keeper_of(parent: Followed, setup: Setup) -> Keeper:
    """Return what goes through the benchmark and keeps what may be kept.

    Raises:
        ReleaseError: the release is gone, was edited, or is another one than the run began with.
    """
    release = find_parent(LATEST, setup.config.name, (), followed=parent)
    assert release is not None
    stale_after = parent.stale_after and _age(parent.stale_after)
    terms = Terms(
        horizon=Horizon(
            oldest=stale_after.subtract_from(setup.now) if stale_after else None,
            cutoffs=new_cutoffs(release.manifest.cutoffs, setup.target_dates),
        ),
        takedown=setup.rules.takedown,
        min_precision=setup.config.knowledge.min_precision,
        targets=setup.target_dates,
    )
    return Keeper(release, terms)


def _age(stated: str) -> Age:
    try:
        return parse_age(stated)
    except ValueError as error:
        raise UsageError(str(error), where="--stale-after") from None
