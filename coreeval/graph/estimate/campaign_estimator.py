"""Estimates the cost of questions to targets without a refresh.

Questions are counted and measured but not sent, and nothing is stored.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from coreeval.config import ItemConfig, ModelConfig, SeriesConfig
from coreeval.graph.estimate.assignments import RoleAssignments, assign_targets
from coreeval.graph.estimate.call_figures import STATED_BASIS, CallUsage
from coreeval.graph.estimate.costing import REUSED_NOTE, build_estimate
from coreeval.graph.estimate.history import load_recent_calls
from coreeval.graph.estimate.model import CostEstimate, EstimateLine
from coreeval.tools.clock import Clock
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.places import has_store
from coreeval.tools.workspace import Workspace

ANSWER_LENGTH_NOTE = (
    "the length of answers is unknown: a reasoning model may write a hundred times as much as "
    "one that names a letter or a number; send a few questions ({key}), then estimate again"
)


@dataclass(frozen=True, kw_only=True)
class CampaignEstimator:
    """The parts of a campaign that an estimate shows."""

    source: Path
    """Path of the config file."""
    config: ItemConfig | SeriesConfig
    workspace: Workspace
    payer: str
    task: str
    """The subject of the questions, in words."""
    samples: int
    """The number of items or questions."""
    asked: Sequence[ModelConfig]
    """The models to ask."""
    fewer: str
    """The config key that reduces the number of questions."""
    notes: Sequence[str] = ()
    questions: Collection[str] = ()
    """The texts that targets answer in their own words, as far as they are known."""

    def estimate(
        self,
        lines_of: Callable[[RoleAssignments, Sequence[CallUsage]], Iterator[EstimateLine]],
        *,
        now: Clock,
    ) -> CostEstimate:
        """Return the expected cost, without sending or storing anything.

        Args:
            lines_of: Returns the lines, given the models that are asked and the recorded calls.
            now: The current time.

        Raises:
            ConfigError: the file of prices cannot be used.
            RunCorrupt: the call store is damaged.
        """
        assignments, past_calls = (
            assign_targets(self.config, self.asked),
            load_recent_calls(self.workspace, (self.payer,), self.questions),
        )
        lines = tuple(lines_of(assignments, past_calls))
        budget = self.config.run.budget_usd
        return build_estimate(
            self.config,
            assignments,
            lines,
            task=self.task,
            source=self.source,
            samples=self.samples,
            budget_usd=None if budget is None else max(0.0, budget - self._spent()),
            now=now(),
            notes=(*self.notes, *self._hints(lines, past_calls)),
        )

    def _spent(self) -> float:
        if not has_store(self.workspace.calls):
            return 0.0
        with closing(open_calls(self.workspace.calls, self.payer)) as calls:
            spent = calls.ledger.spent()
        return spent.billed_usd + spent.unknown_usd

    def _hints(
        self, lines: Sequence[EstimateLine], past_calls: Sequence[CallUsage]
    ) -> Iterator[str]:
        if any(line.rests_on["answers"] == STATED_BASIS for line in lines):
            yield ANSWER_LENGTH_NOTE.format(key=self.fewer)
        if {line.model for line in lines} & {one.model for one in past_calls}:
            yield REUSED_NOTE
