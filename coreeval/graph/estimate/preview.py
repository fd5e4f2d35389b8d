"""Estimates from a few samples that are really refreshed; their answers are stored and reused.

A bootstrap over those samples gives the usage of many more.
"""

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
from numpy.typing import NDArray

from coreeval.config import ConfigLike
from coreeval.errors import Interrupted
from coreeval.evaluation.benchmarks.subset import Subset
from coreeval.graph.embedding_budget import list_embedding_notes
from coreeval.graph.estimate.assignments import (
    ModelPrice,
    RoleAssignments,
    assign_roles,
    find_recorded_name,
    iter_role_models,
)
from coreeval.graph.estimate.costing import rules_note
from coreeval.graph.estimate.history import (
    MEASURES,
    BySample,
    RolePair,
    RunUsage,
    Usage,
    read_run_usage,
)
from coreeval.graph.estimate.model import (
    RESTS_ON,
    CostEstimate,
    EstimateLine,
    EstimateTotals,
    FigureBasis,
    PreviewCost,
    Range,
    between,
    fit_budget,
    save_estimate,
)
from coreeval.graph.estimate.run_estimate import EMBEDDED_TEXTS, estimate_lab
from coreeval.graph.estimate.workload import count_samples
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks, RunSummary
from coreeval.graph.prompt_lab.lab import open_lab
from coreeval.graph.run import refresh
from coreeval.tools.workspace import RunFiles, command

CONFIDENCE_LEVEL = 0.95
BOOTSTRAP_DRAWS = 2000
"""Bootstrap draws; another seed moves an end by about 1/50 of the interval's width."""
FEWEST_SAMPLES = 2
"""The fewest samples for which a spread can be computed."""
UsageTable = NDArray[np.float64]
"""One row per sample, one column per quantity used."""


def extrapolate(
    used: UsageTable, samples: int, *, seed: int, draws: int = BOOTSTRAP_DRAWS
) -> list[Range]:
    """Return the expected total of each column for a number of further samples.

    The interval covers two errors: that of the observed samples' mean (they are resampled with
    replacement), and the variation of further samples of the same kind.

    Args:
        used: The observed usage; a single sample may be off by a factor of two.
        samples: The number of further samples.
        seed: The random seed.
        draws: The number of resamples.
    """
    if len(used) < FEWEST_SAMPLES:
        return [between(each / 2, each, each * 2) for each in (used[0] * samples).tolist()]
    past_calls = len(used)
    chance = np.random.default_rng(seed)
    means = np.empty((draws, used.shape[1]))
    for draw in range(draws):  # one at a time, so memory does not grow with the samples
        means[draw] = used[chance.integers(0, past_calls, past_calls)].mean(axis=0)
    noise = chance.standard_normal((draws, 1)) * used.std(axis=0, ddof=1) * np.sqrt(samples)
    sums = np.maximum(means * samples + noise, 0.0)
    tail = (1 - CONFIDENCE_LEVEL) / 2
    low, high = np.quantile(sums, [tail, 1 - tail], axis=0)
    likely = used.mean(axis=0) * samples
    return [
        between(min(first, middle), middle, max(last, middle))
        for first, middle, last in zip(low.tolist(), likely.tolist(), high.tolist(), strict=True)
    ]


def preview(
    config: ConfigLike,
    samples: int,
    *,
    limit: int | None = None,
    subset: Subset | None = None,
    rows: int | None = None,
    overrides: Sequence[str] = (),
    around: RunHooks = DEFAULT_HOOKS,
) -> CostEstimate:
    """Refresh the first samples and estimate the cost of the others from their usage.

    It is a normal run in the workspace: a later run reuses the answers without paying
    again, and the estimate leaves them out. It does not wait for batches.

    Args:
        config: The path of a YAML config, or a config in memory.
        samples: The number of samples to refresh, at least two.
        limit: Take only this many samples from the start of the benchmark.
        subset: Take only these samples, with a limit of its own.
        rows: Estimate for a benchmark of this many samples like its own.
        overrides: `key.path=value` settings that override the config's.
        around: Progress callback, clock and team builder.

    Raises:
        UsageError: the config, the benchmark, the news or the prices cannot be used.
        RunError: the run could not continue; it can be resumed.
        Interrupted: a signal stopped it; it can be resumed.
    """
    lab = open_lab(config, overrides)
    counted = count_samples(lab.setup, limit, subset=subset, rows=rows)
    assignments = assign_roles(lab.setup.config)
    live = [*overrides, "run.batch=false"] if lab.setup.config.run.batch else overrides
    few = min(samples, counted.samples)
    part = subset and subset.model_copy(update={"limit": few})
    done = refresh(config, limit=None if part else few, subset=part, overrides=live, around=around)
    _refuse_stopped(done)
    config_run = lab.setup.config.run
    bill = read_run_usage(
        RunFiles(done.run_dir),
        lab.workspace,
        assignments,
        templates=len(lab.setup.task.templates),
        arms=lab.setup.config.detect.evaluate,
    )
    rest, train = counted.samples - len(bill.by_sample), counted.train - len(bill.by_train)
    forecast = _Extrapolation(
        bill, assignments, run=done.manifest.run, rest=(rest, train), seed=config_run.seed
    )
    made = estimate_lab(
        lab,
        counted,
        assignments,
        forecast.lines(),
        now=around.now,
        notes=[
            *counted.notes,
            *rules_note(lab.setup.config),
            *list_embedding_notes(lab.setup.config, EMBEDDED_TEXTS),
        ],
    ).model_copy(
        update={
            "to_pay": rest,
            "totals": forecast.totals(),
            "budget": fit_budget(config_run.budget_usd, forecast.totals()),
            "preview": _describe_preview(done, bill, priced=forecast.priced),
        }
    )
    save_estimate(lab.workspace, made)
    return made


def _refuse_stopped(done: RunSummary) -> None:
    if done.manifest.status != "complete":
        raise Interrupted(
            "the preview was stopped; answers are kept",
            where=str(done.run_dir),
            hint=f"{command('resume', done.run_dir)}, then estimate again",
        )


def _describe_preview(done: RunSummary, bill: RunUsage, *, priced: bool) -> PreviewCost:
    return PreviewCost(
        run=str(done.run_dir),
        samples=len(bill.by_sample),
        billed_calls=round(bill.paid.calls),
        usd=bill.paid.usd if priced else None,
        failed=done.manifest.counts["failed"],
    )


class _Extrapolation:
    """Expected usage of the remaining samples, per player and in total, with intervals.

    `rest` is the number of remaining samples, and of remaining items of the train split.
    """

    def __init__(
        self,
        bill: RunUsage,
        assignments: RoleAssignments,
        *,
        run: str,
        rest: tuple[int, int],
        seed: int,
    ) -> None:
        self._prices = {
            (role, find_recorded_name(model)): assignments.find_price(model)
            for role, model in iter_role_models(assignments)
        }
        self._basis = FigureBasis(origin=f"samples of the run {run}", n=len(bill.by_sample))
        who = list(self._prices)
        found = extrapolate(_tabulate_usage(bill.by_sample, who), rest[0], seed=seed)
        if bill.by_train:
            more = extrapolate(_tabulate_usage(bill.by_train, who), rest[1], seed=seed)
            found = [one + other for one, other in zip(found, more, strict=True)]
        width = len(MEASURES)
        self._parts = [found[at : at + width] for at in range(0, len(found), width)]
        asked = {player for used in (*bill.by_sample, *bill.by_train) for player in used}
        self.priced = all(priced.price for who, priced in self._prices.items() if who in asked)
        """Whether every model that was asked has a known price."""

    def lines(self) -> tuple[EstimateLine, ...]:
        """Return a line for each player."""
        named = zip(self._prices.items(), self._parts[:-1], strict=True)
        return tuple(self._line(player, priced, part) for (player, priced), part in named)

    def _line(self, player: RolePair, priced: ModelPrice, part: Sequence[Range]) -> EstimateLine:
        calls, prompt, cached, answer, seconds, usd = part
        return EstimateLine(
            role=player[0],
            model=player[1],
            calls=calls.whole(),
            prompt_tokens=prompt.whole(),
            cached_tokens=cached.whole(),
            completion_tokens=answer.whole(),
            call_seconds=seconds,
            usd=usd if priced.price else None,
            price=priced.origin,
            rests_on=dict.fromkeys(RESTS_ON, self._basis),
        )

    def totals(self) -> EstimateTotals:
        """Return the sums, whose interval is narrower than the sum of the intervals."""
        calls, prompt, cached, answer, _, usd = self._parts[-1]
        return EstimateTotals(
            calls=calls.whole(),
            prompt_tokens=prompt.whole(),
            cached_tokens=cached.whole(),
            completion_tokens=answer.whole(),
            usd=usd if self.priced else None,
            priced_usd=usd,
        )


def _tabulate_usage(by_sample: BySample, who: Sequence[RolePair]) -> UsageTable:
    """Return a row for each sample: the usage of each player, then the total."""
    rows = []
    for used in by_sample:
        each = [used.get(player, Usage()) for player in who]
        rows.append([value for one in (*each, sum(each, Usage())) for value in astuple(one)])
    return np.array(rows, dtype=np.float64)
