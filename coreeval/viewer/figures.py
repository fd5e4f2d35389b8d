"""What a run's page adds up from its overview: money by role, ends by label, noise of labels."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from coreeval.evaluation.scores import NO_SCORE, Score, score_proportion
from coreeval.releases.quality import balance_shift, noise_bound
from coreeval.tools.stores.run_overview import CallSum, Overview


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """What one role asked of one model."""

    role: str
    model: str
    billed_calls: int
    cached_calls: int
    """Found in the call store: this run did not pay for them."""
    prompt_tokens: int
    """Of billed calls, as are those of answers."""
    completion_tokens: int
    usd: float
    """Sum of the billed calls whose price is known."""
    unpriced: int
    """Billed calls whose price is not."""

    def __add__(self, other: "CostRow") -> "CostRow":
        return CostRow(
            role=self.role if self.role == other.role else "",
            model=self.model if self.model == other.model else "",
            billed_calls=self.billed_calls + other.billed_calls,
            cached_calls=self.cached_calls + other.cached_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            usd=self.usd + other.usd,
            unpriced=self.unpriced + other.unpriced,
        )


def cost_rows(calls: Sequence[CallSum]) -> list[CostRow]:
    """Return a row for each role and model, the dearest first."""
    rows: dict[tuple[str, str], CostRow] = {}
    for each in calls:
        row, at = _cost(each), (each.role, each.model)
        rows[at] = rows[at] + row if at in rows else row
    return sorted(rows.values(), key=lambda row: (-row.usd, -row.billed_calls, -row.cached_calls))


def _cost(calls: CallSum) -> CostRow:
    billed = not calls.cached
    return CostRow(
        role=calls.role,
        model=calls.model,
        billed_calls=calls.calls if billed else 0,
        cached_calls=0 if billed else calls.calls,
        prompt_tokens=calls.prompt_tokens if billed else 0,
        completion_tokens=calls.completion_tokens if billed else 0,
        usd=(calls.usd or 0.0) if billed else 0.0,
        unpriced=calls.calls - calls.priced if billed else 0,
    )


def total_cost(rows: Sequence[CostRow]) -> CostRow | None:
    """Return the sum of all rows; None where there is none."""
    return sum(rows[1:], rows[0]) if rows else None


@dataclass(frozen=True, kw_only=True)
class LabelRow:
    """How the samples of one label ended."""

    label: str
    total: int
    accepted: int

    @property
    def share(self) -> float:
        """Accepted of all."""
        return self.accepted / self.total


@dataclass(frozen=True, kw_only=True)
class RunQuality:
    """How good the updated arm is, as far as the run itself can tell."""

    acceptance: Score
    labels: tuple[LabelRow, ...]
    balance_shift: float | None
    """Total variation distance between the labels of the benchmark and of the updated arm."""
    noise: float | None
    """See `noise_bound`; of the texts that this run judged."""


def quality_of(overview: Overview) -> RunQuality:
    """Return the quality of a run, of what has ended of it."""
    before = Counter({label: sum(ends.values()) for label, ends in overview.labels.items()})
    after = Counter({label: ends.get("accepted", 0) for label, ends in overview.labels.items()})
    ended = overview.total - overview.outcomes.get("pending", 0)
    return RunQuality(
        acceptance=score_proportion(after.total(), ended),
        labels=tuple(
            LabelRow(label=label, total=before[label], accepted=after[label])
            for label in sorted(before)
        ),
        balance_shift=balance_shift(before, after),
        noise=noise_bound(
            _against(overview, "original_label"), _against(overview, "label_preserved")
        ),
    )


def _against(overview: Overview, name: str) -> Score:
    """Return the share of a judge's verdicts that were against."""
    for said in overview.verdicts:
        if said.name == name:
            return score_proportion(said.failed, said.passed + said.failed)
    return NO_SCORE
