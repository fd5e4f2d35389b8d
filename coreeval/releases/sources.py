"""The sources of a release (run, parent and licence), and its stale samples.

The benchmark's texts may be redistributed if its owner or the table of licences allows it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from coreeval.agents.safety import Takedown, load_active_takedown
from coreeval.config import Config, DatasetConfig
from coreeval.config.dates import parse_age
from coreeval.errors import ReleaseError
from coreeval.releases.release import (
    MANIFEST,
    Release,
    find_latest_release,
    list_releases,
    read_release,
)
from coreeval.releases.release_manifest import Licence, ParentRelease, SampleRow
from coreeval.releases.verify import verify
from coreeval.runs.arms import OnReject
from coreeval.runs.manifest import FollowedRelease, Manifest, read_original_manifest
from coreeval.runs.own_config import load_own_config, load_same_name, name_takedown_lists
from coreeval.runs.own_task import load_run_task
from coreeval.schema import Task, Value
from coreeval.tools.catalogs import load_built_in_table
from coreeval.tools.cutoffs import TargetDates
from coreeval.tools.workspace import RunFiles, Workspace, find_own_workspaces

Parent = Path | Literal["latest"] | None
"""A release, the latest one of the same name, or none."""


def find_parent(
    chosen: Parent, name: str, folders: Iterable[Path], *, followed: FollowedRelease | None = None
) -> Release | None:
    """Return the parent of a new release.

    Args:
        chosen: The requested parent.
        name: The name of the benchmark.
        folders: The folders in which `latest` is looked up.
        followed: The release that the run was made from; if given, it is the latest.

    Raises:
        ReleaseError: the parent is missing, was altered, or belongs to another benchmark.
    """
    if chosen is None:
        return None
    found: Release | None
    if chosen != "latest":
        found = read_release(chosen)
    elif followed:
        found = _followed_parent(followed, folders)
    else:
        found = find_latest_release(list_series(name, folders))
    if found:
        _refuse_other_task(found, name)
        _refuse_edited(found)
    return found


def _followed_parent(by_run: FollowedRelease, folders: Iterable[Path]) -> Release:
    path = Path(by_run.path)
    found = [read_release(path)] if (path / MANIFEST).exists() else []
    moved = (each for folder in folders for each in list_releases(folder))  # with its project
    for each in chain(found, moved):
        if each.digest == by_run.digest:
            return each
    if found:
        raise ReleaseError(
            f"this is not release {by_run.version}, from which the run was made",
            where=by_run.path,
            hint="restore the published release, or choose another release",
        )
    raise ReleaseError(
        f"release {by_run.version}, from which the run was made, is not in its place",
        where=by_run.path,
        hint="move it back, or into the workspace's releases of this benchmark; `coreeval release` "
        "can also be told where it is: --parent DIR",
    )


def list_series(name: str, folders: Iterable[Path]) -> list[Release]:
    """Return the releases of a benchmark in some folders, each once.

    Raises:
        ReleaseError: a release is damaged.
    """
    known = {each.digest: each for folder in folders for each in list_releases(folder)}
    return [each for each in known.values() if each.manifest.name == name]


def _refuse_other_task(parent: Release, name: str) -> None:
    if parent.manifest.name != name:
        raise ReleaseError(
            f"the parent is a release of {parent.manifest.name!r}, but this is one of {name!r}",
            where=str(parent.path),
            hint="choose a release of the same benchmark as the parent, or no parent",
        )


def _refuse_edited(parent: Release) -> None:
    """Refuse a parent that was altered since it was made."""
    problems = verify(parent.path, chain=False).problems
    if problems:
        first = problems[0]
        raise ReleaseError(
            f"the parent release {parent.manifest.version} has changed since it was made: "
            f"{first.file}: "
            f"{first.message}",
            where=str(parent.path),
            hint="restore the published release, or choose another release",
        )


def refuse_earlier_date(parent: Release, now: datetime) -> None:
    """Refuse a release that the clock would date before its parent.

    Raises:
        ReleaseError: the clock is behind the parent's date.
    """
    made = datetime.fromisoformat(parent.manifest.created_at)
    if now < made:
        raise ReleaseError(
            f"the clock shows {now.isoformat(timespec='seconds')}, which is before the parent "
            f"release {parent.manifest.version} was made ({parent.manifest.created_at})",
            where=str(parent.path),
            hint="correct this machine's clock; if it was wrong when the parent was made, move the "
            "parent away, or choose another --parent",
        )


def load_named_parent(parent: Release, target: Path) -> ParentRelease:
    """Return how a release at `target` refers to its parent."""
    return ParentRelease(
        version=parent.manifest.version,
        digest=parent.digest,
        path=os.path.relpath(parent.path.resolve(), target.parent.resolve() / target.name),
    )


_LICENCE_TABLE = TypeAdapter(dict[str, Licence])
UNKNOWN_LICENCE = Licence(
    name="not stated", source="neither the config nor the built-in table names a licence"
)


def find_licence(dataset: DatasetConfig) -> Licence:
    """Return the licence of a benchmark; without a stated one, its texts are not redistributed."""
    if dataset.licence:
        return Licence(**dataset.licence.model_dump(), source="config: dataset.licence")
    return load_built_in_table("licences.yaml", _LICENCE_TABLE).get(dataset.format, UNKNOWN_LICENCE)


def load_published_config(files: RunFiles, run: Manifest) -> Config:
    """Return a run's own config, without a permission to redistribute that was withdrawn since.

    The current config file withdraws it at once, even if its data have moved, but grants one only
    through `coreeval resume`.

    Raises:
        ConfigError: a config cannot be read.
    """
    config = load_own_config(files, run)
    if not find_licence(config.dataset).redistribute:
        return config
    now = load_same_name(run.source, config)
    if now is None or find_licence(now.dataset).redistribute:
        return config
    dataset = config.dataset.model_copy(update={"licence": now.dataset.licence})
    return config.model_copy(update={"dataset": dataset})


@dataclass(frozen=True)
class ReleaseOptions:
    """The options that distinguish a release from others of the same run."""

    version: str
    moment: datetime
    target: Path
    snippets: bool
    require_review: bool


@dataclass(frozen=True, kw_only=True)
class ReleaseSources:
    """The sources of a release."""

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
        """Collect the sources of a release.

        Raises:
            RunStateError: the task has changed since the run.
            ConfigError: the takedown list or the config cannot be read.
        """
        config = load_published_config(files, run)
        listed = [str(takedown)] if takedown else name_takedown_lists(config, run.source)
        stated = (run.workspace, read_original_manifest(files.manifest).workspace)
        places = [*map(Path, stated), *find_own_workspaces(files.root)]
        lists = [Workspace(place).takedown for place in dict.fromkeys(places)]
        return cls(
            run=run,
            config=config,
            task=load_run_task(files, run, config),
            licence=find_licence(config.dataset),
            takedown=load_active_takedown(listed, *lists),
            parent=parent,
            files=files,
        )

    @property
    def split(self) -> str:
        """Return the benchmark's split."""
        return self.config.dataset.split

    @property
    def on_reject(self) -> OnReject:
        """Return the substitute for rejected samples, never originals barred by the licence."""
        asked = self.config.run.on_reject
        return "drop" if asked == "original" and not self.licence.redistribute else asked

    @property
    def bases(self) -> tuple[Path, Path]:
        """Return the config's present and former folder, to which published paths are relative."""
        return self.run.source.bases


StaleReason = Literal["age", "cutoff", "undated"]


class StaleSample(Value):
    """A sample whose updated text should be renewed, and why."""

    id: str
    why: StaleReason
    """The evidence is too old, precedes a new target's cutoff, or has no date."""
    oldest_evidence: str | None
    target: str = ""
    """The first target that may know the evidence."""


@dataclass(frozen=True, kw_only=True)
class Horizon:
    """Dates that a sample's evidence must not precede; one old piece is enough to make it stale."""

    oldest: datetime | None = None
    """Earliest date of evidence; None if evidence may be of any age."""
    cutoffs: Mapping[str, datetime] = field(default_factory=dict)
    """For each new target, the first moment after its cutoff and its release."""

    def passed_by(self, sample: SampleRow) -> StaleSample | None:
        """Return why a sample of the updated arm is stale; None if it is not."""
        if self.oldest is None and not self.cutoffs:
            return None
        if sample.oldest_evidence is None:
            return StaleSample(id=sample.id, why="undated", oldest_evidence=None)
        dated = datetime.fromisoformat(sample.oldest_evidence)
        if self.oldest is not None and dated < self.oldest:
            return StaleSample(id=sample.id, why="age", oldest_evidence=sample.oldest_evidence)
        for target, cutoff in self.cutoffs.items():
            if dated < cutoff:
                return StaleSample(
                    id=sample.id,
                    why="cutoff",
                    oldest_evidence=sample.oldest_evidence,
                    target=target,
                )
        return None


def iter_stale_samples(samples: Iterable[SampleRow], horizon: Horizon) -> Iterator[StaleSample]:
    """Yield the accepted samples of a release that are stale by a horizon."""
    for sample in samples:
        if is_accepted(sample) and (stale := horizon.passed_by(sample)):
            yield stale


def find_horizon(run: Manifest, before: Sequence[TargetDates] | None) -> Horizon | None:
    """Return the evidence dates that a run required of kept samples; None if it kept none.

    Args:
        run: The run's manifest.
        before: The target dates known when the release that the run follows was made.
    """
    if run.parent is None:
        return None
    stale_after = run.parent.stale_after
    return Horizon(
        oldest=parse_age(stale_after).subtract_from(datetime.fromisoformat(run.now))
        if stale_after
        else None,
        cutoffs=find_new_cutoffs(before, run.cutoffs or ()),
    )


def is_accepted(sample: SampleRow) -> bool:
    """Return whether a sample is in the updated arm because it was accepted."""
    return sample.outcome == "accepted" and sample.updated_sha256 is not None


def find_new_cutoffs(
    before: Sequence[TargetDates] | None, now: Sequence[TargetDates]
) -> dict[str, datetime]:
    """Return the cutoffs of targets that are new, or whose known date has changed.

    Targets without a known date are left out, because their training data is unknown.

    Args:
        before: The dates known when the release was made; None if they were not recorded.
        now: The dates known now.
    """
    known = {each.target: each.latest for each in before or ()}
    found = dict[str, datetime]()
    for each in now:
        latest, earlier = each.latest, known.get(each.target)
        if latest and (earlier is None or earlier.counts_from != latest.counts_from):
            found[each.target] = latest.counts_from
    return found
