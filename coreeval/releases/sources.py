"""What a release is made of."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coreeval.agents.safety import Takedown, load_active_takedown
from coreeval.config import Config, load_config
from coreeval.errors import ReleaseError
from coreeval.releases.arms import OnReject
from coreeval.releases.licences import licence_of
from coreeval.releases.manifest import Manifest, read_recorded
from coreeval.releases.release import Release
from coreeval.releases.release_manifest import Licence
from coreeval.schema import Task
from coreeval.tasks import hash_task, load_task
from coreeval.tools.workspace import RunFiles, Workspace


@dataclass(frozen=True)
class Manner:
    """What tells a release from others of the same run."""

    version: str
    moment: datetime
    target: Path
    snippets: bool
    require_review: bool


@dataclass(frozen=True, kw_only=True)
class Sources:
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
    ) -> "Sources":
        """Gather what is needed.

        Raises:
            ReleaseError: the task has changed since the run.
            ConfigError: the takedown list cannot be read.
        """
        config = load_config(files.config)
        listed = str(takedown) if takedown else config.knowledge.takedown
        places = (run.workspace, read_recorded(files.manifest).workspace)
        lists = [Workspace(Path(place)).takedown for place in dict.fromkeys(places)]
        return cls(
            run=run,
            config=config,
            task=_task_of(run, config),
            licence=licence_of(config.dataset),
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
