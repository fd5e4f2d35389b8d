"""A schedule with a clock, steps and hooks of the test's own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from coreeval.config.schedule import HookConfig
from coreeval.errors import CoreEvalError
from coreeval.releases.gates.limits import Gates
from coreeval.schedule.due import Dependencies, ScheduleResult, run_due
from coreeval.schedule.hooks import HookEvent, HookResult
from coreeval.schedule.plan import SchedulePlan, ScheduleState, open_plan
from coreeval.schedule.steps import StepResult
from coreeval.tools.workspace import RunFiles, Workspace
from tests.config.test_load import BASE

MONDAY = datetime(2026, 11, 16, 3, tzinfo=UTC)
"""A time at which `0 3 * * MON` falls due; its release is 2026.47."""
WEEK = timedelta(weeks=1)
GOOD = {"total": 20, "accepted": 20, "failed": 0}


@dataclass
class FakeSchedule:
    """A config in a folder, and everybody who works on it."""

    folder: Path
    schedule: object = "0 3 * * MON"
    name: str = "n"
    now: datetime = MONDAY + timedelta(hours=1)
    counts: dict[str, int] = field(default_factory=lambda: dict(GOOD))
    control: dict[str, int] | None = None
    """The counts of the pass that writes the control arm."""
    changed: list[str] = field(default_factory=list)
    """What differs from what the last run began with."""
    finishes: bool = True
    retry_waits: bool = False
    waits: bool = False
    """Whether the run waits for batches where it does not finish."""
    error: Exception | None = None
    """What the next run ends with."""
    refused: CoreEvalError | None = None
    """What making or gating the next release ends with."""
    did: list[str] = field(default_factory=list)
    told: list[HookEvent] = field(default_factory=list)
    problem: str = ""
    """What hooks come to."""
    unreached: set[str] | None = None
    """The hooks that come to it; None: all of them."""
    consent: Callable[[SchedulePlan], None] = lambda _plan: None
    """What a person must have agreed to; all of it here, unless a test says otherwise."""
    meanwhile: Callable[[], None] = lambda: None
    """Called while a run is at work."""

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.write()

    @property
    def config(self) -> Path:
        return self.folder / f"{self.name}.yaml"

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.folder / ".coreeval")

    @property
    def state_path(self) -> Path:
        return self.workspace.root / "schedule" / f"{self.name}.json"

    @property
    def state(self) -> ScheduleState:
        with open_plan(self.config) as plan:
            return plan.state_file.read()

    @property
    def releases(self) -> list[str]:
        return sorted(path.name for path in (self.workspace.releases / self.name).glob("*"))

    def write(self) -> None:
        settings = BASE | {"name": self.name, "schedule": self.schedule}
        self.config.write_text(yaml.safe_dump(settings))

    def dependencies(self) -> Dependencies:
        return Dependencies(
            steps=self,
            run_hooks=self.run_hooks,
            now=lambda: self.now,
            consent=lambda plan: self.consent(plan),
        )

    def check(self) -> list[ScheduleResult]:
        """Look at the schedule as cron does."""
        self.did.clear()
        return list(run_due([self.config], self.dependencies()))

    def check_once(self) -> ScheduleResult:
        [done] = self.check()
        return done

    # -- the steps ------------------------------------------------------------------------------

    def refresh(
        self, config: Path, run: Path, *, parent: Path | None, stale_after: str | None
    ) -> StepResult:
        self.did.append(f"refresh from {parent.name}, {stale_after}" if parent else "refresh")
        manifest = RunFiles(run).manifest
        manifest.parent.mkdir(parents=True)
        manifest.touch()
        self.changed.clear()
        return self._ran(run)

    def list_changes(self, run: Path) -> list[str]:
        return list(self.changed)

    def resume(self, run: Path) -> StepResult:
        self.did.append("resume")
        return self._ran(run)

    def retry(self, run: Path) -> StepResult:
        self.did.append("retry")
        if self.retry_waits:
            return StepResult(run, False, self.counts, self.control, waiting=True)
        return self._ran(run)

    def _ran(self, run: Path) -> StepResult:
        self.meanwhile()
        if self.error:
            raise self.error
        waits = self.waits and not self.finishes
        return StepResult(run, self.finishes, self.counts, self.control, waits)

    def release(
        self, run: Path, version: str, *, require_review: bool, gates: Gates | None
    ) -> Path:
        asked = (" reviewed" if require_review else "") + (" gated" if gates else "")
        self.did.append(f"release {version}{asked}")
        if self.refused:
            raise self.refused
        there = self.workspace.releases / self.name / version
        there.mkdir(parents=True)
        return there

    def gate(self, release: Path, gates: Gates) -> None:
        self.did.append(f"gate {release.name}")
        if self.refused:
            raise self.refused

    def find_release(self, workspace: Workspace, name: str, version: str) -> Path | None:
        there = workspace.releases / name / version
        return there if there.exists() else None

    def find_latest(self, workspace: Workspace, name: str) -> Path | None:
        return max((workspace.releases / name).glob("*"), default=None)

    def run_hooks(
        self, hooks: Sequence[HookConfig], news: HookEvent, folder: Path
    ) -> tuple[HookResult, ...]:
        assert folder == self.folder
        self.told += [news for _ in hooks]
        names = [hook.description for hook in hooks]
        unreached = set(names) if self.unreached is None else self.unreached
        return tuple(HookResult(one, 1, self.problem if one in unreached else "") for one in names)
