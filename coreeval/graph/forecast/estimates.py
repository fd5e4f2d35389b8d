"""An estimate as a value: kept in the workspace, read again, and held against what a run cost."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from coreeval.graph.forecast.ranges import Basis, Range, total
from coreeval.releases.manifest import Cost, Manifest
from coreeval.schema import Value, Window
from coreeval.tools.cutoffs import LatestDate
from coreeval.tools.files import write_json
from coreeval.tools.workspace import Workspace

Stage = Literal["run", "control", "pcr", "numleak"]
Measure = Literal["calls", "prompt_tokens", "completion_tokens", "usd"]


RESTS_ON = ("calls", "prompts", "tokens", "answers", "seconds")
"""Figures of a line that say what they were taken from."""


class Line(Value):
    """What one role asks of one model in the whole run, or in a stage of its own."""

    role: str
    """A role, or `target`."""
    model: str
    stage: Stage = "run"
    """`control`, `pcr` and `numleak` for what is asked only because of them."""
    calls: Range
    prompt_tokens: Range
    completion_tokens: Range
    call_seconds: Range
    """Of all calls, one after the other."""
    usd: Range | None
    """None where the model has no known price."""
    price: str
    """Where the price is from; empty where there is none."""
    rests_on: Mapping[str, Basis]
    """What each figure was taken from."""


class Totals(Value):
    """The sums of all lines."""

    calls: Range
    prompt_tokens: Range
    completion_tokens: Range
    usd: Range | None
    """None where a model that is asked has no known price."""
    priced_usd: Range
    """Of the models whose price is known."""


class Unpriced(Value):
    """A model without a known price, and the priced names that are nearest to its own."""

    model: str
    nearest: tuple[str, ...]


class Fit(Value):
    """Whether the budget covers the estimate; None where money is not known."""

    usd: float
    likely: bool | None
    high: bool | None


class Preview(Value):
    """Samples that were refreshed for the estimate, and what that cost."""

    run: str
    samples: int
    billed_calls: int
    usd: float | None
    """None where a call has no known price."""
    failed: int


class Estimate(Value):
    """What refreshing a benchmark and asking its targets will cost."""

    version: Literal[1] = 1
    name: str
    task: str
    config: str
    made_at: str
    samples: int
    """Samples that the run has."""
    to_pay: int
    """Samples that it pays for: all but those of a preview, and those kept from a release."""
    window: Window | None = None
    """None in estimates from before it was recorded."""
    window_start: LatestDate | None = None
    """What `window.start: auto` rests on; None where the config gives the day."""
    by_target: Mapping[str, int] = {}
    """Samples for each stance target, where there are several."""
    lines: tuple[Line, ...]
    totals: Totals
    seconds: Range
    concurrency: int
    unpriced: tuple[Unpriced, ...] = ()
    budget: Fit | None = None
    preview: Preview | None = None
    notes: tuple[str, ...] = ()


def summed(lines: tuple[Line, ...]) -> Totals:
    """Return the sums of lines, as if all came out low, or all high."""
    prices = [line.usd for line in lines if line.usd is not None]
    asked = [line for line in lines if line.calls.high]
    return Totals(
        calls=total(line.calls for line in lines),
        prompt_tokens=total(line.prompt_tokens for line in lines),
        completion_tokens=total(line.completion_tokens for line in lines),
        usd=total(prices) if all(line.usd is not None for line in asked) else None,
        priced_usd=total(prices),
    )


def fit_of(budget_usd: float | None, totals: Totals) -> Fit | None:
    """Return whether a budget covers an estimate; None without a budget."""
    if budget_usd is None:
        return None
    if totals.usd is None:
        return Fit(usd=budget_usd, likely=None, high=None)
    return Fit(
        usd=budget_usd,
        likely=totals.usd.likely <= budget_usd,
        high=totals.usd.high <= budget_usd,
    )


# -- kept in the workspace ------------------------------------------------------------------------


def path_of(workspace: Workspace, name: str) -> Path:
    """Return where the last estimate of a config is kept."""
    return workspace.estimates / f"{name}.json"


def keep(workspace: Workspace, estimate: Estimate) -> Path:
    """Keep an estimate in place of the last one of its config; return the file."""
    path = path_of(workspace, estimate.name)
    write_json(path, estimate.model_dump(mode="json"))
    return path


def read_estimate(workspace: Workspace, name: str) -> Estimate | None:
    """Return the last estimate of a config; None where there is none that can be read."""
    try:
        return Estimate.model_validate_json(path_of(workspace, name).read_bytes())
    except (OSError, ValidationError):
        return None


def estimate_of(manifest: Manifest) -> Estimate | None:
    """Return the estimate that a run was preceded by, of the very samples that it has; else None.

    An estimate made after the run began is no forecast of it.
    """
    found = read_estimate(Workspace(Path(manifest.workspace)), manifest.name)
    if found is None or found.samples != manifest.counts["total"]:
        return None
    return found if found.made_at <= manifest.created_at else None


# -- held against what a run cost -----------------------------------------------------------------


class Miss(Value):
    """One figure of an estimate beside what it came to."""

    measure: Measure
    estimated: Range
    actual: float
    ratio: float | None
    """Actual to likely; None where nothing was expected."""
    inside: bool
    """Whether it lies between the low and the high end."""


class EstimateError(Value):
    """How far an estimate was off."""

    misses: tuple[Miss, ...]
    known_calls: int
    """Calls that cost nothing since they had been answered before: the estimate paid for them."""


def error_of(estimate: Estimate, cost: Cost) -> EstimateError:
    """Return how far an estimate was off, given what the run paid for.

    Money is left out where it was not known before or is not known now.
    """
    totals = estimate.totals
    pairs: list[tuple[Measure, Range | None, float | None]] = [
        ("calls", totals.calls, cost.billed_calls),
        ("prompt_tokens", totals.prompt_tokens, cost.prompt_tokens),
        ("completion_tokens", totals.completion_tokens, cost.completion_tokens),
        ("usd", totals.usd, cost.billed_usd),
    ]
    misses = tuple(
        _miss(measure, expected, actual)
        for measure, expected, actual in pairs
        if expected is not None and actual is not None
    )
    return EstimateError(misses=misses, known_calls=cost.cached_calls)


def _miss(measure: Measure, expected: Range, actual: float) -> Miss:
    return Miss(
        measure=measure,
        estimated=expected,
        actual=actual,
        ratio=actual / expected.likely if expected.likely else None,
        inside=expected.low <= actual <= expected.high,
    )
