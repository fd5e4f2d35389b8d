"""What came of the attempts of a case."""

from dataclasses import dataclass, field

from benchmarks.chaos.cases import Outcome


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
