"""What a call store holds, counted: by model and role, and by who paid."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from coreeval.tools.stores.call_rows import CallRecord, model_of


@dataclass
class Tally:
    """Sums over some calls."""

    calls: int = 0
    valid: int = 0
    invalid: Counter[str] = field(default_factory=Counter)
    """Calls that are no answer, by kind: `truncated`, `refusal`, `empty`, `invalid`."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that a provider had in its cache."""
    completion_tokens: int = 0
    usd: float = 0.0
    """Of the calls whose price is known."""
    unpriced: int = 0
    """Calls whose price is not."""

    def add(self, call: CallRecord) -> None:
        """Count one call."""
        self.calls += 1
        self.valid += call.valid
        if not call.valid:
            self.invalid[call.error.partition(":")[0]] += 1
        self.prompt_tokens += call.prompt_tokens
        self.cached_tokens += call.cached_tokens
        self.completion_tokens += call.completion_tokens
        self.usd += call.usd or 0.0
        self.unpriced += call.usd is None

    @property
    def known_usd(self) -> float | None:
        """What the calls cost, as far as that is known; None where no price is."""
        return None if self.unpriced == self.calls > 0 else self.usd

    @property
    def cached_share(self) -> float | None:
        """Share of the prompt tokens that were cached; None where none were counted."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


@dataclass
class Stats:
    """Sums over all whole calls of a store."""

    total: Tally = field(default_factory=Tally)
    by_player: dict[tuple[str, str], Tally] = field(default_factory=dict)
    """By model, as the config spells it, and role."""
    by_payer: dict[str, Tally] = field(default_factory=dict)

    def add(self, call: CallRecord) -> None:
        """Count one call."""
        player = (model_of(call.request), call.role)
        self.total.add(call)
        self.by_player.setdefault(player, Tally()).add(call)
        self.by_payer.setdefault(call.paid_by, Tally()).add(call)


def stats_of(calls: Iterable[CallRecord]) -> Stats:
    """Count calls."""
    stats = Stats()
    for call in calls:
        stats.add(call)
    return stats


def size_on_disk(path: Path) -> int:
    """Return the bytes of a database and of what SQLite keeps beside it."""
    files = (path.with_name(path.name + end) for end in ("", "-wal", "-shm"))
    return sum(file.stat().st_size for file in files if file.exists())
