"""Estimates as values: ranges of calls, tokens, money and time, each with its basis.

An estimate is stored in the workspace, and compared with the actual cost of a run.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import ValidationError, model_validator

from coreeval.errors import RunCorrupt
from coreeval.graph.state import DetectorNode
from coreeval.runs.manifest import Cost, Manifest
from coreeval.schema import Value, Window
from coreeval.tools.cutoffs import LatestDate
from coreeval.tools.files import write_json
from coreeval.tools.workspace import Workspace

SLACK = 0.1
"""The smallest assumed relative error of a mean for other samples."""


class Range(Value):
    """The lowest, the likely and the highest value; none is negative."""

    low: float
    likely: float
    high: float

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if not 0 <= self.low <= self.likely <= self.high:
            raise ValueError(f"no range: {self.low} <= {self.likely} <= {self.high}")
        return self

    def __add__(self, other: "Range") -> "Range":
        """Return the sum; low ends are added together, and so are high ends."""
        return between(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def __mul__(self, other: "Range") -> "Range":
        """Return the product; low ends are multiplied together, and so are high ends."""
        return between(self.low * other.low, self.likely * other.likely, self.high * other.high)

    def times(self, factor: float) -> "Range":
        """Return the range multiplied by a factor."""
        return between(self.low * factor, self.likely * factor, self.high * factor)

    def widen(self, factor: float) -> "Range":
        """Return the range with its ends moved outwards by a factor."""
        return between(self.low / factor, self.likely, self.high * factor)

    def whole(self) -> "Range":
        """Return the range rounded to whole numbers."""
        return between(round(self.low), round(self.likely), round(self.high))

    def at_most(self, limit: float) -> "Range":
        """Return the range capped at a limit."""
        return between(min(self.low, limit), min(self.likely, limit), min(self.high, limit))


class FigureBasis(Value):
    """The basis of a figure."""

    origin: str
    """The basis in words."""
    n: int = 0
    """The number of observations; 0 for an assumption."""


class KnownRange(Value):
    """A range with its basis."""

    range: Range
    basis: FigureBasis


def between(low: float, likely: float, high: float) -> Range:
    """Return a range."""
    return Range(low=low, likely=likely, high=high)


def exactly(value: float) -> Range:
    """Return a range of zero width."""
    return between(value, value, value)


def sum_ranges(ranges: Iterable[Range]) -> Range:
    """Return the sum of ranges."""
    return sum(ranges, exactly(0.0))


def estimate_mean(values: Sequence[float]) -> Range:
    """Return the range of the mean of many more such values: two standard errors each way.

    A single value may be off by a factor of two.
    """
    mean = statistics.fmean(values)
    if len(values) == 1:
        return between(mean / 2, mean, mean * 2)
    off = max(2 * statistics.stdev(values) / len(values) ** 0.5, SLACK * mean)
    return between(max(0.0, mean - off), mean, mean + off)


Stage = Literal["run", "control", DetectorNode]
Measure = Literal["calls", "prompt_tokens", "completion_tokens", "usd"]


RESTS_ON = ("calls", "prompts", "tokens", "answers", "seconds")
"""Figures of a line that state their basis."""


class EstimateLine(Value):
    """The demand of one role on one model, in the whole run or in a separate stage."""

    role: str
    """A role, or `target`."""
    model: str
    stage: Stage = "run"
    """`control`, or a detector's node, for calls made only for that stage."""
    calls: Range
    prompt_tokens: Range
    cached_tokens: Range = exactly(0)
    """Prompt tokens that come from the provider's cache; none at the low end."""
    completion_tokens: Range
    call_seconds: Range
    """Total duration of all calls in sequence."""
    usd: Range | None
    """Cost in US dollars; None if the model has no known price."""
    price: str
    """The source of the price; empty if there is none."""
    rests_on: Mapping[str, FigureBasis]
    """The basis of each figure."""


class EstimateTotals(Value):
    """Sums over all lines."""

    calls: Range
    prompt_tokens: Range
    cached_tokens: Range = exactly(0)
    """Prompt tokens that come from the providers' caches."""
    completion_tokens: Range
    usd: Range | None
    """Total cost in US dollars; None if a model that is asked has no known price."""
    priced_usd: Range
    """Cost in US dollars of the models with a known price."""


class UnpricedModel(Value):
    """A model without a known price, with the priced names that are most similar to its own."""

    model: str
    nearest: tuple[str, ...]


class BudgetFit(Value):
    """Whether the budget covers the estimate; None if the cost is not known."""

    usd: float
    likely: bool | None
    high: bool | None


class BatchEstimate(Value):
    """The cost and time of the same calls in batches."""

    usd: Range | None
    """Cost in US dollars; None if a model that is asked has no known price."""
    unpriced: tuple[str, ...]
    """The models without a batch price, which are asked live."""
    rounds: Range
    """The number of rounds, each of which waits for the previous one."""
    seconds: Range


class PreviewCost(Value):
    """The samples refreshed for the estimate, and their cost."""

    run: str
    samples: int
    billed_calls: int
    usd: float | None
    """Cost in US dollars; None if a call has no known price."""
    failed: int


class NewsDefect(Value):
    """The reason that there is no news for a run, and what to do."""

    message: str
    to_do: str


class CostEstimate(Value):
    """The cost of refreshing a benchmark and asking its targets."""

    version: Literal[1] = 1
    name: str
    task: str
    config: str
    made_at: str
    samples: int
    """The number of samples in the run."""
    to_pay: int
    """Samples that the run pays for: all except those of a preview and those kept from a
    release."""
    window: Window | None = None
    """The news window; None in estimates made before it was recorded."""
    window_start: LatestDate | None = None
    """The basis of `window.start: auto`; None if the config gives the date."""
    by_target: Mapping[str, int] = {}
    """Samples per stance target, if there are several."""
    lines: tuple[EstimateLine, ...]
    totals: EstimateTotals
    seconds: Range
    batch: BatchEstimate | None = None
    """The estimate in batches; None if no model has a batch price or the command has no batches."""
    concurrency: int
    unpriced: tuple[UnpricedModel, ...] = ()
    budget: BudgetFit | None = None
    preview: PreviewCost | None = None
    notes: tuple[str, ...] = ()
    missing_news: NewsDefect | None = None
    """The reason that a run would be refused for lack of news; None if there is some or a remote
    backend."""


def sum_lines(lines: tuple[EstimateLine, ...]) -> EstimateTotals:
    """Return the sums of lines; all low ends are added together, and so are all high ends."""
    prices = [line.usd for line in lines if line.usd is not None]
    asked = [line for line in lines if line.calls.high]
    return EstimateTotals(
        calls=sum_ranges(line.calls for line in lines),
        prompt_tokens=sum_ranges(line.prompt_tokens for line in lines),
        cached_tokens=sum_ranges(line.cached_tokens for line in lines),
        completion_tokens=sum_ranges(line.completion_tokens for line in lines),
        usd=sum_ranges(prices) if all(line.usd is not None for line in asked) else None,
        priced_usd=sum_ranges(prices),
    )


def fit_budget(budget_usd: float | None, totals: EstimateTotals) -> BudgetFit | None:
    """Return whether a budget covers an estimate; None without a budget."""
    if budget_usd is None:
        return None
    if totals.usd is None:
        return BudgetFit(usd=budget_usd, likely=None, high=None)
    return BudgetFit(
        usd=budget_usd,
        likely=totals.usd.likely <= budget_usd,
        high=totals.usd.high <= budget_usd,
    )


# -- kept in the workspace ------------------------------------------------------------------------


def find_estimate_path(workspace: Workspace, name: str) -> Path:
    """Return the path of the last estimate of a config."""
    return workspace.estimate(name)


def save_estimate(workspace: Workspace, estimate: CostEstimate) -> Path:
    """Save an estimate in place of the config's last one; return the file."""
    path = find_estimate_path(workspace, estimate.name)
    write_json(path, estimate.model_dump(mode="json"))
    return path


def read_estimate(workspace: Workspace, name: str) -> CostEstimate | None:
    """Return the last estimate of a config; None if there is none or it cannot be read."""
    try:
        return CostEstimate.model_validate_json(find_estimate_path(workspace, name).read_bytes())
    except (OSError, ValidationError, RunCorrupt):
        return None


def find_estimate(manifest: Manifest) -> CostEstimate | None:
    """Return the estimate made before a run for exactly its samples; None if there is none.

    An estimate made after the run began is not a forecast.
    """
    found = read_estimate(Workspace(Path(manifest.workspace)), manifest.name)
    if found is None or found.samples != manifest.counts["total"]:
        return None
    return found if found.made_at <= manifest.created_at else None


# -- held against what a run cost -----------------------------------------------------------------


class MeasureError(Value):
    """One figure of an estimate compared with its actual value."""

    measure: Measure
    estimated: Range
    actual: float
    ratio: float | None
    """Actual divided by likely value; None if nothing was expected."""
    inside: bool
    """Whether the actual value lies between the low and the high end."""


class EstimateError(Value):
    """The error of an estimate."""

    misses: tuple[MeasureError, ...]
    known_calls: int
    """Calls without cost because they were already answered; the estimate includes their cost."""


def measure_error(estimate: CostEstimate, cost: Cost) -> EstimateError:
    """Return the error of an estimate compared with the paid usage of the run.

    The cost is left out if it was or is not known.
    """
    totals = estimate.totals
    pairs: list[tuple[Measure, Range | None, float | None]] = [
        ("calls", totals.calls, cost.billed_calls),
        ("prompt_tokens", totals.prompt_tokens, cost.prompt_tokens),
        ("completion_tokens", totals.completion_tokens, cost.completion_tokens),
        ("usd", totals.usd, cost.billed_usd),
    ]
    misses = tuple(
        _measure_one(measure, expected, actual)
        for measure, expected, actual in pairs
        if expected is not None and actual is not None
    )
    return EstimateError(misses=misses, known_calls=cost.cached_calls)


def _measure_one(measure: Measure, expected: Range, actual: float) -> MeasureError:
    return MeasureError(
        measure=measure,
        estimated=expected,
        actual=actual,
        ratio=actual / expected.likely if expected.likely else None,
        inside=expected.low <= actual <= expected.high,
    )
