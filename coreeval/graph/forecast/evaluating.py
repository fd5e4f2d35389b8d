"""What asking the targets of a run that has ended will cost: its questions are counted."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from coreeval.config import TargetConfig
from coreeval.graph.asking import Chunk, questions_left
from coreeval.graph.evaluating import Prepared, prepared, refuse_open
from coreeval.graph.forecast.estimates import Estimate, Line, fit_of, summed
from coreeval.graph.forecast.estimating import THOUGHTS
from coreeval.graph.forecast.history import remembered
from coreeval.graph.forecast.learning import STATED, Seen
from coreeval.graph.forecast.lines import REUSED, expected
from coreeval.graph.forecast.players import Cast, cast_of_targets
from coreeval.graph.forecast.ranges import Basis, Known, exactly, interval
from coreeval.graph.forecast.reckoning import seconds_of_run
from coreeval.graph.forecast.sizes import Size, size_of_question
from coreeval.graph.job import Job
from coreeval.graph.run import workspace_of
from coreeval.graph.setup import check_targets
from coreeval.graph.sources import arm_chunks, train_chunks
from coreeval.graph.work import REAL, job_of

REWORDING = (
    "items of the train split are still to be reworded for PCR: neither that nor the questions "
    "about them are in these figures; coreeval estimate CONFIG has them"
)
RENDERED = 300
"""Questions whose length is measured, the first that are open."""


def estimate_evaluation(
    run_dir: Path | str, *, targets: Sequence[str] = (), budget_usd: float | None = None
) -> Estimate:
    """Return what `evaluate` with the same arguments will cost; nothing is asked or kept.

    Raises:
        RunStateError: no run there, or some of its samples have not ended.
        ConfigError: there is no such target, or no target at all.
    """
    found = prepared(run_dir, targets, None)
    workspace = workspace_of(found.manifest)
    check_targets(found.setup, found.asked, workspace)
    job = job_of(found.setup, found.manifest, found.files, workspace, REAL)
    with closing(job):
        refuse_open(job.store, found.files)
        return _estimate(found, job, budget_usd or job.config.run.budget_usd)


def _estimate(found: Prepared, job: Job, budget_usd: float | None) -> Estimate:
    config, samples = job.config, job.store.total()
    cast, seen = cast_of_targets(config, found.asked), remembered(job.workspace)
    asked = [target for target in found.asked if not target.is_embedded]
    lines = tuple(_line(job, target, cast, seen) for target in asked)
    totals, cost = summed(lines), job.manifest.cost
    spent = (cost.billed_usd or 0.0) + cost.unknown_usd
    left = None if budget_usd is None else max(0.0, budget_usd - spent)
    thoughts = any(line.rests_on["answers"] == STATED for line in lines)
    return Estimate(
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
        seconds=seconds_of_run(lines, cast.lanes(), concurrency=cast.concurrency, samples=samples),
        concurrency=cast.concurrency,
        unpriced=cast.unpriced(lines),
        budget=fit_of(left, totals),
        notes=(
            *([THOUGHTS] if thoughts else []),
            *([REUSED] if seen else []),
            *([REWORDING] if _open_train(job) else []),
        ),
    )


def _chunks(job: Job) -> Iterator[Chunk]:
    """Yield the texts of the arms, and those of train items where PCR is measured."""
    yield from arm_chunks(job)
    if job.compared_targets:
        yield from train_chunks(job)


def _open_train(job: Job) -> bool:
    """Tell whether train items are still to be reworded."""
    counts = job.store.train_counts()
    return bool(job.compared_targets) and (not counts or "open" in counts)


def _line(job: Job, target: TargetConfig, cast: Cast, seen: Sequence[Seen]) -> Line:
    """Return what is left to ask a target: so many questions, each about one sample."""
    left = questions_left(job, target, lambda: _chunks(job))
    first = list(islice(left, RENDERED))
    number = len(first) + sum(1 for _ in left)
    sizes = [size_of_question(asked, job.task_of(asked.sample)) for asked in first] or [0]
    basis = Basis(origin="questions of the run without an answer", n=number)
    return expected(
        "target",
        target,
        Known(range=exactly(1), basis=basis),
        Size(fixed=0, varied=Known(range=interval(sizes), basis=basis)),
        number,
        cast,
        seen,
    )
