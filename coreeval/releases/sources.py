"""What a release is made of: the run, its parent release, and the licence of the benchmark.

The benchmark's own texts may be passed on if its owner or the table of licences says so.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from coreeval.agents.safety import Takedown, load_active_takedown
from coreeval.config import Config, DatasetConfig, load_config
from coreeval.errors import ReleaseError
from coreeval.releases.arms import OnReject
from coreeval.releases.manifest import FollowedRelease, Manifest, read_original_manifest
from coreeval.releases.release import Release, find_latest_release, list_releases, read_release
from coreeval.releases.release_manifest import Licence, ParentRelease
from coreeval.releases.verify import verify
from coreeval.schema import Task
from coreeval.tasks import hash_task, load_task
from coreeval.tools.catalogs import load_built_in_table
from coreeval.tools.workspace import RunFiles, Workspace

Parent = Path | Literal["latest"] | None
"""A release, the latest of the same name, or none."""


def find_parent(
    chosen: Parent, name: str, folders: Iterable[Path], *, followed: FollowedRelease | None = None
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
        found = _followed_parent(followed)
    else:
        found = _latest_parent(name, folders)
    if found:
        _refuse_other_task(found, name)
        _refuse_edited(found)
    return found


def _followed_parent(by_run: FollowedRelease) -> Release:
    found = read_release(Path(by_run.path))
    if found.digest != by_run.digest:
        raise ReleaseError(
            f"this is not the release {by_run.version} that the run was made from",
            where=by_run.path,
            hint="put it back as it was published, or name another release",
        )
    return found


def _latest_parent(name: str, folders: Iterable[Path]) -> Release | None:
    known = {each.digest: each for folder in folders for each in list_releases(folder)}
    return find_latest_release([each for each in known.values() if each.manifest.name == name])


def _refuse_other_task(parent: Release, name: str) -> None:
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


def refuse_earlier_date(parent: Release, now: datetime) -> None:
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


def load_named_parent(parent: Release, target: Path) -> ParentRelease:
    """Return what a release at `target` says of its parent."""
    return ParentRelease(
        version=parent.manifest.version,
        digest=parent.digest,
        path=os.path.relpath(parent.path.resolve(), target.parent.resolve() / target.name),
    )


_LICENCE_TABLE = TypeAdapter(dict[str, Licence])
UNKNOWN_LICENCE = Licence(
    name="not stated", source="neither the config nor the built-in table names one"
)


def find_licence(dataset: DatasetConfig) -> Licence:
    """Return the licence of a benchmark; what nobody has stated may not be passed on."""
    if dataset.licence:
        return Licence(**dataset.licence.model_dump(), source="config: dataset.licence")
    return load_built_in_table("licences.yaml", _LICENCE_TABLE).get(dataset.format, UNKNOWN_LICENCE)


@dataclass(frozen=True)
class ReleaseOptions:
    """What tells a release from others of the same run."""

    version: str
    moment: datetime
    target: Path
    snippets: bool
    require_review: bool


@dataclass(frozen=True, kw_only=True)
class ReleaseSources:
    """What a release is made of."""

    run: Manifest
    config: Config
    task: Task
    licence: Licence
    takedown: Takedown
    parent: Release | None
    files: RunFiles

    @classmethod
    def of(
        cls, files: RunFiles, run: Manifest, parent: Release | None, takedown: Path | None
    ) -> "ReleaseSources":
        """Gather what is needed.

        Raises:
            ReleaseError: the task has changed since the run.
            ConfigError: the takedown list cannot be read.
        """
        config = load_config(files.config)
        listed = str(takedown) if takedown else config.knowledge.takedown
        places = (run.workspace, read_original_manifest(files.manifest).workspace)
        lists = [Workspace(Path(place)).takedown for place in dict.fromkeys(places)]
        return cls(
            run=run,
            config=config,
            task=_task_of(run, config),
            licence=find_licence(config.dataset),
            takedown=load_active_takedown(listed, *lists),
            parent=parent,
            files=files,
        )

    @property
    def split(self) -> str:
        """The benchmark's split."""
        return self.config.dataset.split

    @property
    def on_reject(self) -> OnReject:
        """What stands in for rejected samples: no originals that may not be passed on."""
        asked = self.config.run.on_reject
        return "drop" if asked == "original" and not self.licence.redistribute else asked

    @property
    def base(self) -> Path:
        """The folder of the config, from which published paths start."""
        return Path(self.run.source.path).parent


def _task_of(run: Manifest, config: Config) -> Task:
    task = load_task(config.task, config.dataset.target)
    if hash_task(task) != run.fingerprints.task:
        raise ReleaseError(
            "the task has changed since the run",
            where=config.task,
            hint="put the task's file back as it was, or refresh with the new one",
        )
    return task
