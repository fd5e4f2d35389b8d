"""What becomes of a config that a schedule looks at, and who does the work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from coreeval.config.schedule import HookConfig
from coreeval.schedule.consent import require_consent
from coreeval.schedule.does import Does
from coreeval.schedule.hooks import News, Told
from coreeval.schedule.plan import Period, Plan
from coreeval.schedule.state import Trouble
from coreeval.tools.clock import Clock, utc_now

Ending = Literal["released", "failed", "gate", "interrupted", "held", "nothing", "clock_back"]
IDLE: frozenset[Ending] = frozenset({"nothing", "held"})
"""Endings of a look that had nothing to do."""
Tell = Callable[[Sequence[HookConfig], News, Path], tuple[Told, ...]]


@dataclass(frozen=True, kw_only=True)
class Hands:
    """What does the work, and the clock; tests put in their own."""

    does: Does
    tell: Tell
    now: Clock = utc_now
    consent: Callable[[Plan], None] = require_consent
    """Raises a UsageError where nobody has agreed to a schedule's hooks and endpoints."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """What became of one config, or of one of its periods."""

    config: Path
    name: str
    ending: Ending
    exit_code: int = 0
    period: Period | None = None
    next_due: datetime | None = None
    """On the wall clock of the schedule's zone; None while there is something to do."""
    missed: int = 0
    """Periods before this one that have no release and will not have one."""
    run: str = ""
    release: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    trouble: Trouble | None = None
    told: tuple[Told, ...] = ()
    note: str = ""
