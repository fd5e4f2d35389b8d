"""The newest period of a schedule, the name of its release, and the recorded state.

`explain_schedule` describes a schedule's past and future without writing anything.
"""

import hashlib
import os
import re
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, ValidationError

from coreeval.config import ROLES, Config, load_config
from coreeval.config.schedule import (
    FIRST_MOMENT,
    LAST_MOMENT,
    Cron,
    HookConfig,
    ScheduleConfig,
    format_version,
)
from coreeval.config.user_files import read_text
from coreeval.errors import (
    ConfigError,
    CoreEvalError,
    CredentialError,
    GateNotMet,
    RunCorrupt,
    RunLocked,
    UsageError,
)
from coreeval.schema import Value
from coreeval.tools.env_file import address_of_hook, read_env_file, restore_environment
from coreeval.tools.files import hold_lock, special_kind, write_json
from coreeval.tools.stores.places import URL_VARIABLE
from coreeval.tools.workspace import Workspace, workspace_for

if TYPE_CHECKING:
    from coreeval.releases.gates.limits import Gates


TryOutcome = Literal["running", "interrupted", "waiting", "failed", "gate"]


class ErrorRecord(Value):
    """The reason that there is no release yet."""

    kind: str
    message: str
    where: str = ""
    hint: str = ""

    @classmethod
    def from_error(cls, error: CoreEvalError) -> "ErrorRecord":
        """Return an error in its recorded and reported form."""
        return cls.model_validate(error.as_dict())

    def make_key(self, outcome: str, hook: HookConfig) -> str:
        """Return the key that records that a hook has received this error.

        For a gate, the key depends on the message's words, which name the violation. Numbers and
        other messages are ignored, because they may differ at each try although nothing has
        changed.
        """
        words = self.message if self.kind == GateNotMet.kind else ""
        said = f"{hook.description}\n{re.sub(r'[0-9]+(?:[.][0-9]+)?', '', words)}"
        return f"{outcome}:{self.kind}:{hashlib.sha256(said.encode()).hexdigest()[:12]}"


def _check_moment(moment: datetime) -> datetime:
    if not FIRST_MOMENT <= moment <= LAST_MOMENT:
        raise ValueError("the year is at the limit of the calendar")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_check_moment)]
"""A time that all time zones can represent."""


class OpenPeriod(Value):
    """A period that has no release yet."""

    due_at: Moment
    version: str
    run: str
    """The run's directory; empty if the refresh failed before there was one."""
    began_at: AwareDatetime
    tried_at: AwareDatetime
    tries: int
    pid: int
    host: str
    """The host of the last try."""
    outcome: TryOutcome = "running"
    """The result of the last try; `running` also if it was killed."""
    retried: bool = False
    """Whether the failed samples of the run have been retried while it waited for batches."""
    trouble: ErrorRecord | None = None
    told: tuple[str, ...] = ()
    """Errors that hooks have received, as `outcome:kind:` and a hash of hook and violation."""

    @property
    def holder(self) -> str:
        """Describe the process at work."""
        return f"process {self.pid} on {self.host} since {self.tried_at.isoformat()}"


class PeriodRelease(Value):
    """The newest period that has a release."""

    due_at: Moment
    version: str
    run: str
    release: str
    ended_at: AwareDatetime


class ScheduleState(Value):
    """The stored state of a schedule."""

    schema_version: Literal[1] = 1
    name: str
    config: str = ""
    """The path of the config, from the workspace; empty if it is not recorded."""
    finished: PeriodRelease | None = None
    begun: OpenPeriod | None = None


def describe_process() -> dict[str, object]:
    """Return the id and host of this process, as fields of `OpenPeriod`."""
    return {"pid": os.getpid(), "host": socket.gethostname()}


@dataclass(frozen=True)
class ScheduleFile:
    """The file with the schedule state of one config."""

    workspace: Workspace
    name: str

    @property
    def path(self) -> Path:
        """Return the path of the state file."""
        return self.workspace.root / "schedule" / f"{self.name}.json"

    def read(self) -> ScheduleState:
        """Return the state, which is empty before the first period.

        Raises:
            RunCorrupt: the file is damaged, is not a regular file, or cannot be read.
        """
        if kind := special_kind(self.path.resolve()):
            raise self._unreadable(f"it is {kind}")
        try:
            return ScheduleState.model_validate_json(read_text(self.path))
        except FileNotFoundError:
            return ScheduleState(name=self.name)
        except OSError as error:
            raise self._unreadable(error.strerror or type(error).__name__) from None
        except (ValidationError, UnicodeDecodeError):
            raise self._unreadable("it is damaged") from None

    def _unreadable(self, why: str) -> RunCorrupt:
        return RunCorrupt(
            f"cannot read the schedule's state: {why}",
            where=str(self.path),
            hint="restore the file from a backup, or remove it: existing releases are not made "
            "again, but a run that has begun is started again",
        )

    def write(self, state: ScheduleState) -> None:
        """Write the state."""
        write_json(self.path, state.model_dump(mode="json"))

    @contextmanager
    def lease(self) -> Iterator[None]:
        """Hold the schedule's lock; the system releases it if the process dies.

        Raises:
            RunLocked: another process is at work.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        busy = RunLocked("another process is using this schedule", where=str(self.path))
        with hold_lock(self.path.with_suffix(".lock"), busy):
            yield


MOST_MISSED = 1000
"""The number of missed periods at which counting stops."""


@dataclass(frozen=True)
class SchedulePeriod:
    """A time at which a release is due, and the release's version."""

    due_at: datetime
    version: str


@dataclass(frozen=True, kw_only=True)
class SchedulePlan:
    """Everything about one config that its schedule needs."""

    path: Path
    config: Config
    schedule: ScheduleConfig
    workspace: Workspace

    @property
    def name(self) -> str:
        """Return the config's name, under which releases and state are kept."""
        return self.config.name

    @property
    def state_file(self) -> ScheduleFile:
        """Return the file with the schedule's state."""
        return ScheduleFile(self.workspace, self.name)

    def save(self, state: ScheduleState) -> None:
        """Write the schedule's state, with the config that it belongs to."""
        own = Path(os.path.relpath(self.path, self.workspace.root.resolve())).as_posix()
        self.state_file.write(state.model_copy(update={"config": own}))

    def refuse_other_config(self, state: ScheduleState) -> None:
        """Refuse the state of another config of the same name; one that is gone was renamed.

        Raises:
            UsageError: the other config is still there.
        """
        other = (self.workspace.root / state.config).resolve()
        if state.config and other != self.path and other.is_file():
            raise _make_duplicate_error(self.name, other, self.path)

    @property
    def times(self) -> Cron:
        """Return the times at which the schedule falls due."""
        return self.schedule.cron_times

    def find_newest(self, now: datetime) -> SchedulePeriod | None:
        """Return the newest period that is due; None before the first one."""
        due_at = self.times.find_latest(now)
        if due_at is None:
            return None
        return SchedulePeriod(
            due_at, format_version(due_at, self.times, self.schedule.version_pattern)
        )

    def list_coming(self, now: datetime, count: int) -> list[SchedulePeriod]:
        """Return the next `count` periods."""
        pattern = self.schedule.version_pattern
        return [
            SchedulePeriod(due_at, format_version(due_at, self.times, pattern))
            for due_at in islice(self.times.iter_after(now), count)
        ]

    def count_missed(self, since: datetime, newest: datetime) -> int:
        """Count the periods between two that were never begun, up to `MOST_MISSED`."""
        between = takewhile(lambda due_at: due_at < newest, self.times.iter_after(since))
        return sum(1 for _ in islice(between, MOST_MISSED))

    def to_local(self, moment: datetime) -> datetime:
        """Return a time in the schedule's time zone."""
        return moment.astimezone(self.times.zone)

    @property
    def hooks(self) -> tuple[HookConfig, ...]:
        """Return all hooks, for any event."""
        return self.schedule.hooks.all

    @property
    def secrets(self) -> set[str]:
        """Return the variables that hold secrets: model keys and addresses with passwords."""
        models, judges = self.config.models, self.config.detect.judges
        asked = [*(models.for_role(role) for role in ROLES), *models.targets, *judges]
        keyed = [
            each
            for each in asked
            if not (each.is_rule_based or each.is_plugin or each.is_on_this_machine)
        ]
        database = {URL_VARIABLE} if self.uses_database else set()
        keys = {model.key_variable for model in keyed}
        return keys | self.schedule.webhook_variables | database

    @property
    def uses_database(self) -> bool:
        """Return whether runs are stored in PostgreSQL."""
        return self.config.run.store == "postgresql"

    def load_gates(self) -> "Gates | None":
        """Return the gates that releases must pass; None if the schedule sets none.

        Raises:
            ConfigError: the file of gates is missing or invalid.
        """
        if self.schedule.gates is None:
            return None
        from coreeval.releases.gates.limits import resolve_gates  # most checks find nothing due

        return resolve_gates(self.schedule.gates, base=self.path.parent)

    def check_hooks(self) -> None:
        """Refuse hooks without an address, before anything is spent.

        Raises:
            CredentialError: the variable of a webhook is not set.
        """
        for name in sorted(self.schedule.webhook_variables):
            if not address_of_hook(name, self.path.parent):
                raise CredentialError(
                    f"{name} is not set, but a hook takes its address from this variable",
                    where=str(self.path),
                    hint="set it in the environment or in the .env file beside the config",
                )


@contextmanager
def open_plan(path: Path) -> Iterator[SchedulePlan]:
    """Yield the plan of a config; its .env applies only inside the block, as others have their own.

    Raises:
        ConfigError: the config is invalid, or has no schedule.
    """
    config_path = path.resolve()
    with restore_environment():
        try:
            _close_tracing()
            config = load_config(config_path)
            read_env_file(config_path.parent, config, quiet=True)
            if config.schedule is None:
                raise ConfigError(
                    "this config has no schedule",
                    where=str(path),
                    hint='add one, for example schedule: "0 3 * * MON"',
                )
            yield SchedulePlan(
                path=config_path,
                config=config,
                schedule=config.schedule,
                workspace=workspace_for(config_path.parent),
            )
        finally:
            _close_tracing()


def _close_tracing() -> None:
    """Close the client of LangSmith, which has the key of one config's .env.

    Only configs that ask models import the module; most checks find nothing due.
    """
    tracing = sys.modules.get("coreeval.models.tracing")
    if tracing is not None:
        tracing.TRACING.report_unsent()


def refuse_duplicates(plans: Iterable[SchedulePlan]) -> None:
    """Refuse two configs that would share state and versions.

    Raises:
        UsageError: two configs share a name in one workspace.
    """
    seen = dict[Path, Path]()
    for plan in plans:
        other = seen.setdefault(plan.state_file.path.resolve(), plan.path)
        if other != plan.path:
            raise _make_duplicate_error(plan.name, other, plan.path)


def _make_duplicate_error(name: str, one: Path, other: Path) -> UsageError:
    return UsageError(
        f"two configs in this workspace are named {name!r}",
        where=f"{one} and {other}",
        hint="change `name` in one of them, or move a config that you no longer use elsewhere",
    )


SHOWN_PERIODS = 5
"""The number of future periods to show."""


@dataclass(frozen=True, kw_only=True)
class ScheduleSummary:
    """The current state of a schedule."""

    config: Path
    name: str
    cron: str
    words: str
    timezone: str
    pattern: str
    """The strftime pattern of versions."""
    newest: SchedulePeriod | None
    coming: list[SchedulePeriod]
    """The next due times, as local times of the schedule's zone."""
    state: ScheduleState


def explain_schedule(config: Path, now: datetime) -> ScheduleSummary:
    """Describe a config's schedule.

    Raises:
        ConfigError: the config is invalid, or has no schedule.
        RunCorrupt: the schedule's state is damaged.
    """
    with open_plan(config) as plan:
        newest = plan.find_newest(now)
        return ScheduleSummary(
            config=plan.path,
            name=plan.name,
            cron=plan.schedule.cron,
            words=plan.times.describe(),
            timezone=plan.schedule.timezone,
            pattern=plan.schedule.version_pattern,
            newest=newest and _to_local(newest, plan.to_local(newest.due_at)),
            coming=[
                _to_local(one, plan.to_local(one.due_at))
                for one in plan.list_coming(now, SHOWN_PERIODS)
            ],
            state=plan.state_file.read(),
        )


def _to_local(period: SchedulePeriod, local: datetime) -> SchedulePeriod:
    return SchedulePeriod(local, period.version)
