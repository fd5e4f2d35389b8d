"""The steps of a period: refresh or resume a run, retry failed samples, and release it.

`StepRunner` is the protocol, which tests also implement; `GraphSteps` runs the graph and makes the
release. Its imports are inside functions, because most checks find nothing due, and importing the
modules of a run takes a second.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from coreeval.errors import GateNotMet
from coreeval.tools.formatting import format_quantity
from coreeval.tools.workspace import RunFiles, Workspace, command

if TYPE_CHECKING:
    from coreeval.graph.execute import RunHooks, RunSummary
    from coreeval.graph.monitor import Watch
    from coreeval.releases.gates.limits import Gates
    from coreeval.runs.manifest import Manifest


@dataclass(frozen=True)
class StepResult:
    """The state of a run after a step."""

    run: Path
    finished: bool
    """Whether the run finished; False if a signal stopped it."""
    counts: Mapping[str, int]
    """The counts of the manifest: total, outcomes and pending."""
    control: Mapping[str, int] | None = None
    """The same counts of the pass that writes the control arm; None without one."""
    waiting: bool = False
    """Whether it waits for batches."""

    @classmethod
    def from_manifest(cls, run: Path, manifest: "Manifest") -> "StepResult":
        """Return the state of a run from its manifest."""
        control = manifest.control.counts if manifest.control else None
        waiting = manifest.status == "waiting"
        return cls(run, manifest.status == "complete", manifest.counts, control, waiting)

    @property
    def failed(self) -> int:
        """Return the number of failed samples, including those of the control pass."""
        return sum(counts["failed"] for _, counts in self._passes())

    def refuse_failed(self, most: float) -> None:
        """Refuse to release a run if too large a share of a pass failed.

        Raises:
            GateNotMet: more samples failed than the schedule allows.
        """
        for where, counts in self._passes():
            failed, total = counts["failed"], counts["total"]
            if failed > total * most:
                raise GateNotMet(
                    f"{failed} of {format_quantity(total, 'sample')} failed{where}, but "
                    f"schedule.max_failed is {most:g}",
                    where=str(self.run),
                    hint="they will be retried at the next check; see why with: "
                    f"{command('status', self.run)}",
                )

    def _passes(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        yield "", self.counts
        if self.control:
            yield " while writing the control arm", self.control


class StepRunner(Protocol):
    """The steps of a schedule; each raises CoreEvalError if it fails."""

    def refresh(
        self, config: Path, run: Path, *, parent: Path | None, stale_after: str | None
    ) -> StepResult:
        """Start a run in a directory, based on the parent release if one is given."""
        ...

    def list_changes(self, run: Path) -> list[str]:
        """Return what has changed since a run began that decides its results, in words."""
        ...

    def resume(self, run: Path) -> StepResult:
        """Resume a run; a complete one only takes the licence of the current config."""
        ...

    def retry(self, run: Path) -> StepResult:
        """Retry the failed samples."""
        ...

    def release(
        self, run: Path, version: str, *, require_review: bool, gates: "Gates | None"
    ) -> Path:
        """Make a release and return its directory."""
        ...

    def gate(self, release: Path, gates: "Gates") -> None:
        """Check an existing release against gates."""
        ...

    def find_release(self, workspace: Workspace, name: str, version: str) -> Path | None:
        """Return the directory of a release; None if it does not exist."""
        ...

    def find_latest(self, workspace: Workspace, name: str) -> Path | None:
        """Return the directory of the latest release; None if there is none."""
        ...


@dataclass(frozen=True)
class GraphSteps:
    """The steps of a schedule on the real graph, with progress display."""

    watching: Callable[[], AbstractContextManager["Watch"]]

    def refresh(
        self, config: Path, run: Path, *, parent: Path | None, stale_after: str | None
    ) -> StepResult:
        """Start a run in a directory, based on the parent release if one is given."""
        from coreeval.graph.run import refresh

        def begin(around: "RunHooks") -> "RunSummary":
            return refresh(
                config, run_dir=run, parent=parent, stale_after=stale_after, around=around
            )

        return self._run_watched(begin)

    def list_changes(self, run: Path) -> list[str]:
        """Return what has changed since a run began that decides its results, in words.

        Raises:
            RunStateError: the run is damaged, or its config is missing.
        """
        from coreeval.graph.run import open_run
        from coreeval.graph.run_origin import list_changes

        _, manifest, setup = open_run(run, None)
        return list_changes(manifest, setup)

    def resume(self, run: Path) -> StepResult:
        """Resume a run; a complete one only takes the licence of the current config."""
        from coreeval.graph.run import lock_opened_run, open_run, resume
        from coreeval.runs.manifest import read_manifest
        from coreeval.runs.open import explain_unfinished

        manifest = read_manifest(RunFiles(run).manifest)
        if manifest.status == "complete" and not explain_unfinished(RunFiles(run), manifest):
            files, opened, setup = open_run(run, None)
            with lock_opened_run(files, opened, setup):
                pass  # the run now has the licence of the current config
            return StepResult.from_manifest(run, manifest)
        return self._run_watched(lambda around: resume(run, around=around))

    def retry(self, run: Path) -> StepResult:
        """Retry the failed samples."""
        from coreeval.graph.run import retry

        return self._run_watched(lambda around: retry(run, around=around))

    def release(
        self, run: Path, version: str, *, require_review: bool, gates: "Gates | None"
    ) -> Path:
        """Make a release in the workspace and return its directory.

        Raises:
            ReviewOpen: a person has yet to decide about samples.
            GateNotMet: a limit is not met.
        """
        from coreeval.releases.create import make_release

        made = make_release(run, version=version, require_review=require_review, gates=gates)
        return made.path

    def gate(self, release: Path, gates: "Gates") -> None:
        """Check an existing release against gates.

        Raises:
            RunError: the release was altered since it was made.
            GateNotMet: a limit is not met.
        """
        from coreeval.releases.gates.check import require_gates_of_release

        require_gates_of_release(release, gates)

    def find_release(self, workspace: Workspace, name: str, version: str) -> Path | None:
        """Return the directory of a release; None if it does not exist."""
        from coreeval.releases.release import MANIFEST

        there = workspace.releases / name / version
        return there if (there / MANIFEST).exists() else None

    def find_latest(self, workspace: Workspace, name: str) -> Path | None:
        """Return the directory of the latest release; None if there is none."""
        from coreeval.releases.release import find_latest_release, list_releases

        last = find_latest_release(list_releases(workspace.releases / name))
        return last.path if last else None

    def _run_watched(self, work: Callable[["RunHooks"], "RunSummary"]) -> StepResult:
        from coreeval.graph.execute import RunHooks

        with self.watching() as watch:
            done = work(RunHooks(watch=watch))
        return StepResult.from_manifest(done.run_dir, done.manifest)
