"""The steps of a period, which tests put in other hands: refresh, resume, retry, release."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from coreeval.tools.workspace import Workspace

if TYPE_CHECKING:
    from coreeval.releases.gates.limits import Gates


@dataclass(frozen=True)
class Ran:
    """A run as a step left it."""

    run: Path
    finished: bool
    """False for one that a signal stopped."""
    counts: Mapping[str, int]
    """As in the manifest: total, outcomes and pending."""


class Does(Protocol):
    """What is done for a schedule; each step raises CoreEvalError where it cannot be done."""

    def refresh(
        self, config: Path, run: Path, *, parent: Path | None, stale_after: str | None
    ) -> Ran:
        """Start a run in a directory; with a parent, on top of that release."""
        ...

    def resume(self, run: Path) -> Ran:
        """Go on with a run; where its config has changed, a new one takes its place."""
        ...

    def retry(self, run: Path) -> Ran:
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

    def released(self, workspace: Workspace, name: str, version: str) -> Path | None:
        """Return the directory of a release, if it is there."""
        ...

    def latest(self, workspace: Workspace, name: str) -> Path | None:
        """Return the directory of the last release, if there is one."""
        ...
