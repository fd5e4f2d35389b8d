"""Figures of earlier runs and recorded calls, for the estimate of the next run."""

from collections.abc import Sequence
from dataclasses import dataclass

from coreeval.config import RunConfig
from coreeval.graph.estimate.call_figures import (
    ARM_SHARES,
    REPEATED_QUESTIONS,
    REWORDING_CALLS,
    STATED_BASIS,
    CallUsage,
    assume_calls,
    estimate_spread,
)
from coreeval.graph.estimate.history import ENOUGH_SAMPLES, PastRuns
from coreeval.graph.estimate.model import FigureBasis, KnownRange, Range, exactly, sum_ranges
from coreeval.schema import Arm, RoleName


@dataclass(frozen=True, kw_only=True)
class PastFigures:
    """Figures from earlier runs, and the settings of the next one."""

    past_calls: Sequence[CallUsage]
    earlier: PastRuns
    run: RunConfig
    gold_questions: int = 1
    """Questions to the label judge about a text with new facts."""
    reworded: float = 1
    """The share of samples that are short enough to be reworded."""

    def calls(self, role: RoleName) -> KnownRange:
        """Return the number of calls of a role for one sample."""
        counts = self.earlier.calls[role]
        if len(counts) >= ENOUGH_SAMPLES:
            return KnownRange(range=estimate_spread(counts), basis=self._of_runs(len(counts)))
        stated = assume_calls(role, self.run, self.gold_questions, self.reworded)
        return KnownRange(range=stated, basis=STATED_BASIS)

    def questions(self, templates: int) -> KnownRange:
        """Return the number of questions to a target about a sample: one per arm and template."""
        arms = self.arms()
        return arms.model_copy(update={"range": arms.range.times(templates)})

    def rewordings(self, role: RoleName) -> KnownRange:
        """Return the number of calls of a role for one train item."""
        if role == "label_judge":
            return KnownRange(range=REWORDING_CALLS[role] * REPEATED_QUESTIONS, basis=STATED_BASIS)
        return self.calls(role)

    def share(self, arm: Arm) -> KnownRange:
        """Return the probability that a sample is in an arm."""
        if arm == "semantic" and arm not in self.run.arms:
            return KnownRange(range=exactly(0), basis=STATED_BASIS)
        counts = self.earlier.arms[arm]
        if len(counts) >= ENOUGH_SAMPLES:
            return KnownRange(range=estimate_spread(counts), basis=self._of_runs(len(counts)))
        return KnownRange(range=self._assume_share(arm), basis=STATED_BASIS)

    def arms(self) -> KnownRange:
        """Return the number of arms that a sample is in."""
        written = [arm for arm in self.earlier.arms if arm == "original" or arm in self.run.arms]
        each = [self.earlier.arms[arm] for arm in written]
        if all(len(shares) >= ENOUGH_SAMPLES for shares in each):
            counts = [sum(arms) for arms in zip(*each, strict=True)]
            return KnownRange(range=estimate_spread(counts), basis=self._of_runs(len(counts)))
        return KnownRange(range=sum_ranges(map(self._assume_share, written)), basis=STATED_BASIS)

    def _assume_share(self, arm: Arm) -> Range:
        return ARM_SHARES[arm].times(self.reworded if arm == "semantic" else 1)

    def _of_runs(self, samples: int) -> FigureBasis:
        newest, more = self.earlier.runs[0], len(self.earlier.runs) - 1
        others = f" and {more} more" if more else ""
        return FigureBasis(origin=f"samples of the run {newest}{others}", n=samples)
