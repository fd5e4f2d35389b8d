"""What a run tells whoever watches it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coreeval.tools.stores.heartbeat import ProgressSnapshot


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run is."""

    stage: str
    """`plan`, `extract`, `gather`, `refresh`, `control`, `assemble`, `evaluate`, `reword`, `pcr`,
    `report`, `telemetry`."""
    done: int = 0
    total: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Samples by outcome so far."""
    note: str = ""
    pulse: "ProgressSnapshot | None" = None
    """How fast a run goes, what it has spent and waits for; None for what is no run."""


Watch = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Tell nobody."""
