"""What asking targets costs where nothing is refreshed: lines as an estimate of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from coreeval.config import ItemConfig, ModelConfig, SeriesConfig
from coreeval.graph.forecast.estimates import Estimate, Line, fit_of, summed
from coreeval.graph.forecast.history import remembered
from coreeval.graph.forecast.learning import STATED, Seen
from coreeval.graph.forecast.lines import REUSED
from coreeval.graph.forecast.players import Cast, cast_of_targets
from coreeval.graph.forecast.reckoning import seconds_of_run
from coreeval.tools.clock import Clock
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import Workspace

THOUGHTS = (
    "how long answers are is not known: a model that reasons first writes a hundred times as much "
    "as one that names a letter or a number; ask little ({key}) and estimate again"
)


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is asked, as far as an estimate shows it."""

    source: Path
    """The config's file."""
    config: ItemConfig | SeriesConfig
    workspace: Workspace
    payer: str
    task: str
    """What is asked about, in words."""
    samples: int
    """Items or questions."""
    asked: Sequence[ModelConfig]
    """The models."""
    fewer: str
    """The key by which less is asked."""
    notes: Sequence[str] = ()

    def estimate(
        self, lines_of: Callable[[Cast, Sequence[Seen]], Iterator[Line]], *, now: Clock
    ) -> Estimate:
        """Return what it will cost; nothing is asked or kept.

        Args:
            lines_of: Makes the lines, given who is asked and what recorded calls tell.
            now: The time of day.

        Raises:
            ConfigError: the file of prices cannot be used.
            RunCorrupt: the call store is damaged.
        """
        cast, seen = cast_of_targets(self.config, self.asked), remembered(self.workspace)
        lines = tuple(lines_of(cast, seen))
        totals, budget = summed(lines), self.config.run.budget_usd
        return Estimate(
            name=self.config.name,
            task=self.task,
            config=str(self.source),
            made_at=now().isoformat(timespec="seconds"),
            samples=self.samples,
            to_pay=self.samples,
            lines=lines,
            totals=totals,
            seconds=seconds_of_run(
                lines, cast.lanes(), concurrency=cast.concurrency, samples=self.samples
            ),
            concurrency=cast.concurrency,
            unpriced=cast.unpriced(lines),
            budget=fit_of(None if budget is None else max(0.0, budget - self._spent()), totals),
            notes=(*self.notes, *self._hints(lines, seen)),
        )

    def _spent(self) -> float:
        if not self.workspace.calls.exists():
            return 0.0
        with closing(open_calls(self.workspace.calls, self.payer)) as calls:
            spent = calls.ledger.spent()
        return spent.billed_usd + spent.unknown_usd

    def _hints(self, lines: Sequence[Line], seen: Sequence[Seen]) -> Iterator[str]:
        if any(line.rests_on["answers"] == STATED for line in lines):
            yield THOUGHTS.format(key=self.fewer)
        if {line.model for line in lines} & {one.model for one in seen}:
            yield REUSED
