"""What asking the targets of a run that has ended will cost: its questions are counted."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from coreeval.config import TargetConfig
from coreeval.graph.estimate.call_figures import STATED_BASIS, CallUsage
from coreeval.graph.estimate.costing import (
    REUSED_NOTE,
    RoleAssignments,
    assign_targets,
    estimate_line,
    estimate_run_seconds,
)
from coreeval.graph.estimate.history import load_recent_calls
from coreeval.graph.estimate.model import (
    CostEstimate,
    EstimateLine,
    FigureBasis,
    KnownRange,
    estimate_mean,
    exactly,
    fit_budget,
    sum_lines,
)
from coreeval.graph.estimate.run_estimate import REASONING_NOTE
from coreeval.graph.estimate.workload import PromptSize, measure_question
from coreeval.graph.evaluate import EvaluationPlan, prepare_evaluation, refuse_open
from coreeval.graph.execute import DEFAULT_HOOKS, build_run_context
from coreeval.graph.run import open_workspace
from coreeval.graph.run_context import RunContext
from coreeval.graph.setup import check_targets
from coreeval.graph.target_questions import (
    Chunk,
    iter_arm_chunks,
    iter_open_questions,
    iter_train_chunks,
)

REWORDING_NOTE = (
    "items of the train split are still to be reworded for PCR: neither that nor the questions "
    "about them are in these figures; coreeval estimate CONFIG has them"
)
RENDERED_QUESTIONS = 300
"""Most questions measured for length: the first unanswered ones."""


def estimate_evaluation(
    run_dir: Path | str, *, targets: Sequence[str] = (), budget_usd: float | None = None
) -> CostEstimate:
    """Return the cost of `evaluate` with the same arguments; nothing is asked or kept.

    Raises:
        RunStateError: there is no run, or some of its samples are unfinished.
        ConfigError: the target does not exist, or there is no target at all.
    """
    found = prepare_evaluation(run_dir, targets, None)
    workspace = open_workspace(found.manifest)
    check_targets(found.setup, found.asked_targets, workspace)
    job = build_run_context(found.setup, found.manifest, found.files, workspace, DEFAULT_HOOKS)
    with closing(job):
        refuse_open(job.store, found.files)
        return _estimate(found, job, budget_usd or job.config.run.budget_usd)


def _estimate(found: EvaluationPlan, job: RunContext, budget_usd: float | None) -> CostEstimate:
    config, samples = job.config, job.store.total()
    cast, seen = assign_targets(config, found.asked_targets), load_recent_calls(job.workspace)
    asked = [target for target in found.asked_targets if not target.is_embedded]
    lines = tuple(_target_line(job, target, cast, seen) for target in asked)
    totals, cost = sum_lines(lines), job.manifest.cost
    spent = (cost.billed_usd or 0.0) + cost.unknown_usd
    left = None if budget_usd is None else max(0.0, budget_usd - spent)
    thoughts = any(line.rests_on["answers"] == STATED_BASIS for line in lines)
    return CostEstimate(
        name=config.name,
        task=job.task.name,
        config=str(found.files.root),
        made_at=job.now().isoformat(timespec="seconds"),
        samples=samples,
        to_pay=samples,
        window=job.setup.window,
        window_start=job.setup.window_start,
        lines=lines,
        totals=totals,
        seconds=estimate_run_seconds(
            lines, cast.list_throughputs(), concurrency=cast.concurrency, samples=samples
        ),
        concurrency=cast.concurrency,
        unpriced=cast.list_unpriced(lines),
        budget=fit_budget(left, totals),
        notes=(
            *([REASONING_NOTE] if thoughts else []),
            *([REUSED_NOTE] if seen else []),
            *([REWORDING_NOTE] if _has_open_train(job) else []),
        ),
    )


def _iter_chunks(job: RunContext) -> Iterator[Chunk]:
    """Yield the texts of the arms, and those of train items if PCR is measured."""
    yield from iter_arm_chunks(job)
    if job.pcr_targets:
        yield from iter_train_chunks(job)


def _has_open_train(job: RunContext) -> bool:
    """Return whether some train items have not been reworded yet."""
    counts = job.store.train.counts()
    return bool(job.pcr_targets) and (not counts or "open" in counts)


def _target_line(
    job: RunContext, target: TargetConfig, cast: RoleAssignments, seen: Sequence[CallUsage]
) -> EstimateLine:
    """Return the cost of the questions left for a target, each about one sample."""
    left = iter_open_questions(job, target, lambda: _iter_chunks(job))
    first = list(islice(left, RENDERED_QUESTIONS))
    number = len(first) + sum(1 for _ in left)
    sizes = [measure_question(asked, job.load_task_of(asked.sample)) for asked in first] or [0]
    basis = FigureBasis(origin="questions of the run without an answer", n=number)
    return estimate_line(
        "target",
        target,
        KnownRange(range=exactly(1), basis=basis),
        PromptSize(fixed=0, varied=KnownRange(range=estimate_mean(sizes), basis=basis)),
        number,
        cast,
        seen,
    )
