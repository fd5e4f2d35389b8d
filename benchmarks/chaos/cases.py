"""What a case of the campaign is, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a case."""

    tried: int
    """How often something was done to CoreEval."""
    held: int
    """How often the promise held."""
    measured: str = ""
    """What was measured, with its unit; empty where only the promise counts."""
    broken: tuple[str, ...] = ()
    """What happened each time that the promise did not hold."""


@dataclass
class Score:
    """What came of the attempts so far."""

    tried: int = 0
    broken: list[str] = field(default_factory=list)
    again: int = 0
    """Calls that were asked again."""
    lost: int = 0
    """Calls that were in flight."""

    def add(self, name: str, problems: list[str]) -> None:
        """Count an attempt, and what did not hold."""
        self.tried += 1
        self.broken += [f"{name}: {'; '.join(problems)}"] if problems else []

    def outcome(self, measured: str = "") -> Outcome:
        """Return all of it."""
        held = self.tried - len(self.broken)
        return Outcome(tried=self.tried, held=held, measured=measured, broken=tuple(self.broken))


def always_possible() -> str:
    """Return that a case needs nothing that a machine might lack."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One misfortune or attack."""

    name: str
    """What happens, as a row of the table: "power fails while a run is written"."""
    promise: str
    """What holds nevertheless: "nothing that was answered is asked again"."""
    attempt: Callable[[Path, Random], Outcome]
    """Tries it, given an empty folder and a source of chance."""
    obstacle: Callable[[], str] = always_possible
    """Why it cannot be tried on this machine; empty where it can."""
