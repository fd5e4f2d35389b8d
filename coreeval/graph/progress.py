"""What a run tells whoever watches it."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run is."""

    stage: str
    """`plan`, `extract`, `gather`, `refresh`, `assemble`, `evaluate`, `reword`, `pcr`, `report`,
    `telemetry`."""
    done: int = 0
    total: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Samples by outcome so far."""
    note: str = ""


Watch = Callable[[Progress], None]


def unwatched(_: Progress) -> None:
    """Tell nobody."""
