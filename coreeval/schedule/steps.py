"""The steps of a period: refresh, resume, retry, release, gate.

`StepRunner` is the protocol, which tests implement too; `GraphSteps` runs the graph and makes the
release. Its imports are inside, since most checks find nothing due, and what a run needs takes a
second to import.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from coreeval.tools.workspace import RunFiles, Workspace

if TYPE_CHECKING:
    from coreeval.graph.execute import RunHooks, RunSummary
    from coreeval.graph.progress import Watch
    from coreeval.releases.gates.limits import Gates


@dataclass(frozen=True)
class StepResult:
    """A run as a step left it."""

    run: Path
    finished: bool
    """False for one that a signal stopped."""
    counts: Mapping[str, int]
    """As in the manifest: total, outcomes and pending."""


class StepRunner(Protocol):
    """What is done for a schedule; each step raises CoreEvalError where it cannot be done."""

    def refresh(
        self, config: Path, run: Path, *, parent: Path | None, stale_after: str | None
    ) -> StepResult:
        """Start a run in a directory; with a parent, on top of that release."""
        ...

    def resume(self, run: Path) -> StepResult:
        """Go on with a run; where its config has changed, a new one takes its place."""
        ...

    def retry(self, run: Path) -> StepResult:
        """Take the samples that failed once more."""
        ...

    def release(
        self, run: Path, version: str, *, require_review: bool, gates: "Gates | None"
    ) -> Path:
        """Make a release and return its directory."""
        ...

    def gate(self, release: Path, gates: "Gates") -> None:
        """Hold a release that is there against gates."""
        ...

    def find_release(self, workspace: Workspace, name: str, version: str) -> Path | None:
        """Return the directory of a release, if it is there."""
        ...

    def find_latest(self, workspace: Workspace, name: str) -> Path | None:
        """Return the directory of the last release, if there is one."""
        ...


@dataclass(frozen=True)
class GraphSteps:
    """Does what a period needs, and shows how far it is."""

    watching: Callable[[], AbstractContextManager["Watch"]]

    def refresh(
        self, config: Path, run: Path, *, parent: Path | None, stale_after: str | None
    ) -> StepResult:
        """Start a run in a directory; with a parent, on top of that release."""
        from coreeval.graph.run import refresh

        def begin(around: "RunHooks") -> "RunSummary":
            return refresh(
                config, run_dir=run, parent=parent, stale_after=stale_after, around=around
            )

        return self._run_watched(begin)

    def resume(self, run: Path) -> StepResult:
        """Go on with a run, or begin anew where its config has changed; a complete one stays."""
        from coreeval.graph.run import resume
        from coreeval.releases.manifest import read_manifest

        manifest = read_manifest(RunFiles(run).manifest)
        if manifest.status == "complete":
            return StepResult(run, True, manifest.counts)
        return self._run_watched(lambda around: resume(run, if_changed="anew", around=around))

    def retry(self, run: Path) -> StepResult:
        """Take the samples that failed once more."""
        from coreeval.graph.run import retry

        return self._run_watched(lambda around: retry(run, around=around))

    def release(
        self, run: Path, version: str, *, require_review: bool, gates: "Gates | None"
    ) -> Path:
        """Make a release in the workspace and return its directory.

        Raises:
            ReviewOpen: a person has yet to decide about samples.
            GateNotMet: it is beyond a limit.
        """
        from coreeval.releases.create import make_release

        made = make_release(run, version=version, require_review=require_review, gates=gates)
        return made.path

    def gate(self, release: Path, gates: "Gates") -> None:
        """Hold a release that is there against gates.

        Raises:
            RunError: it is not what was made.
            GateNotMet: it is beyond a limit.
        """
        from coreeval.releases.gates.check import require_gates_of_release

        require_gates_of_release(release, gates)

    def find_release(self, workspace: Workspace, name: str, version: str) -> Path | None:
        """Return the directory of a release, if it is there."""
        from coreeval.releases.release import MANIFEST

        there = workspace.releases / name / version
        return there if (there / MANIFEST).exists() else None

    def find_latest(self, workspace: Workspace, name: str) -> Path | None:
        """Return the directory of the last release, if there is one."""
        from coreeval.releases.release import find_latest_release, list_releases

        last = find_latest_release(list_releases(workspace.releases / name))
        return last.path if last else None

    def _run_watched(self, work: Callable[["RunHooks"], "RunSummary"]) -> StepResult:
        from coreeval.graph.execute import RunHooks

        with self.watching() as watch:
            done = work(RunHooks(watch=watch))
        manifest = done.manifest
        return StepResult(done.run_dir, manifest.status == "complete", manifest.counts)
