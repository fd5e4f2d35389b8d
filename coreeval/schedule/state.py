"""What a schedule has done and begun: one small file for each config, and the lease to write it."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, ValidationError

from coreeval.errors import CoreEvalError, RunCorrupt, RunLocked
from coreeval.schema import Value
from coreeval.tools.files import hold_lock, write_json
from coreeval.tools.workspace import Workspace

TryOutcome = Literal["running", "interrupted", "failed", "gate"]


class ErrorRecord(Value):
    """Why there is no release yet."""

    kind: str
    message: str
    where: str = ""
    hint: str = ""

    @classmethod
    def from_error(cls, error: CoreEvalError) -> "ErrorRecord":
        """Return an error as it is recorded and told."""
        return cls.model_validate(error.as_dict())


class OpenPeriod(Value):
    """A period whose release is not made yet."""

    due_at: AwareDatetime
    version: str
    run: str
    """The run's directory; there is none yet where the refresh failed at once."""
    began_at: AwareDatetime
    tried_at: AwareDatetime
    tries: int
    pid: int
    host: str
    """Where the last try is or was at work."""
    outcome: TryOutcome = "running"
    """How the last try ended; a killed one is left as running."""
    trouble: ErrorRecord | None = None
    told: tuple[str, ...] = ()
    """Troubles that hooks were told of, as `outcome:kind`; of gates with a hash of the words."""

    @property
    def holder(self) -> str:
        """Who is at work, in words."""
        return f"process {self.pid} on {self.host} since {self.tried_at.isoformat()}"


class ReleasedPeriod(Value):
    """The newest period that has its release."""

    due_at: AwareDatetime
    version: str
    run: str
    release: str
    ended_at: AwareDatetime


class ScheduleState(Value):
    """All that a schedule remembers."""

    schema_version: Literal[1] = 1
    name: str
    finished: ReleasedPeriod | None = None
    begun: OpenPeriod | None = None


def describe_process() -> dict[str, object]:
    """Return who is at work, as `Begun` has it."""
    return {"pid": os.getpid(), "host": socket.gethostname()}


@dataclass(frozen=True)
class ScheduleFile:
    """Where the state of one config is kept."""

    workspace: Workspace
    name: str

    @property
    def path(self) -> Path:
        """The state."""
        return self.workspace.root / "schedule" / f"{self.name}.json"

    def read(self) -> ScheduleState:
        """Return the state; an empty one before the first period.

        Raises:
            RunCorrupt: the file is damaged.
        """
        try:
            return ScheduleState.model_validate_json(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ScheduleState(name=self.name)
        except (ValidationError, UnicodeDecodeError):
            raise RunCorrupt(
                "what the schedule has done cannot be read",
                where=str(self.path),
                hint="restore the file from a copy, or remove it: releases that are there are not "
                "made again, a run that was begun is",
            ) from None

    def write(self, state: ScheduleState) -> None:
        """Keep the state."""
        write_json(self.path, state.model_dump(mode="json"))

    @contextmanager
    def lease(self) -> Iterator[None]:
        """Be the only one that works on the schedule; the system ends a dead process's lease.

        Raises:
            RunLocked: another process is at work.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        busy = RunLocked("another process works on this schedule", where=str(self.path))
        with hold_lock(self.path.with_suffix(".lock"), busy):
            yield
