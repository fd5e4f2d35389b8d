"""Estimates the cost of asking the targets of a finished run, by counting open questions."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

from coreeval.config import TargetConfig
from coreeval.graph.detect import DETECTOR_ROLE, DetectionPlan, list_questions, read_inputs
from coreeval.graph.estimate.assignments import RoleAssignments, assign_targets
from coreeval.graph.estimate.call_figures import STATED_BASIS, CallUsage
from coreeval.graph.estimate.costing import REUSED_NOTE, build_estimate, estimate_line
from coreeval.graph.estimate.history import find_payers, load_recent_calls
from coreeval.graph.estimate.model import (
    CostEstimate,
    EstimateLine,
    FigureBasis,
    KnownRange,
    estimate_mean,
    exactly,
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
    "items of the train split have yet to be reworded for PCR: these figures exclude the "
    "rewording and the questions about these items; coreeval estimate CONFIG includes both"
)
RENDERED_QUESTIONS = 300
"""The most questions measured for length: the first unanswered ones."""


def estimate_evaluation(
    run_dir: Path | str, *, targets: Sequence[str] = (), budget_usd: float | None = None
) -> CostEstimate:
    """Return the cost of `evaluate` with the same arguments, without sending or storing anything.

    Raises:
        RunStateError: there is no run, or some of its samples are unfinished.
        ConfigError: the target does not exist, there is no target at all, or the budget cannot be
            used.
    """
    found = prepare_evaluation(run_dir, targets, budget_usd)
    with _open_context(found, found.asked_targets) as run:
        assignments = assign_targets(run.config, found.asked_targets)
        others = find_payers(run.workspace, run.task.name, run.config.run)
        past_calls = load_recent_calls(run.workspace, (run.payer, *others))
        asked = [target for target in found.asked_targets if not target.is_embedded]
        lines = tuple(_target_line(run, target, assignments, past_calls) for target in asked)
        notes = [REWORDING_NOTE] if _has_open_train(run) else []
        return _estimate(
            run, assignments, lines, budget_usd, [*_list_notes(lines, past_calls), *notes]
        )


def estimate_detection(plan: DetectionPlan, *, budget_usd: float | None = None) -> CostEstimate:
    """Return the cost of running a detector on a run, without sending or storing anything.

    Raises:
        RunStateError: some of the run's samples are unfinished.
    """
    most = {"max_tokens": 1} if plan.detector.scores_texts else {}
    targets = [target.model_copy(update=most) for target in plan.targets]
    with _open_context(plan, plan.targets) as run:
        assignments = assign_targets(run.config, targets)
        questions = list_questions(plan.detector, read_inputs(run))
        asked = {question.text for question in questions}
        past_calls = load_recent_calls(run.workspace, (run.payer,), asked)
        sizes = [len(question.text) for question in questions] or [0]
        basis = FigureBasis(origin="each question is asked once", n=len(questions))
        size = PromptSize(fixed=0, varied=KnownRange(range=estimate_mean(sizes), basis=basis))
        calls = KnownRange(range=exactly(1), basis=basis)
        lines = tuple(
            estimate_line(
                DETECTOR_ROLE, target, calls, size, len(questions), assignments, past_calls
            )
            for target in targets
        )
        return _estimate(run, assignments, lines, budget_usd, _list_notes(lines, past_calls))


@contextmanager
def _open_context(
    found: EvaluationPlan | DetectionPlan, targets: Sequence[TargetConfig]
) -> Iterator[RunContext]:
    """Yield the context of a finished run.

    Raises:
        RunStateError: some of its samples are unfinished.
    """
    workspace = open_workspace(found.manifest)
    check_targets(found.setup, targets, workspace)
    run = build_run_context(found.setup, found.manifest, found.files, workspace, DEFAULT_HOOKS)
    with closing(run):
        refuse_open(run.store, found.files)
        yield run


def _estimate(
    run: RunContext,
    assignments: RoleAssignments,
    lines: tuple[EstimateLine, ...],
    budget_usd: float | None,
    notes: Iterable[str],
) -> CostEstimate:
    cost = run.manifest.cost
    budget = run.config.run.budget_usd if budget_usd is None else budget_usd
    spent = (cost.billed_usd or 0.0) + cost.unknown_usd
    return build_estimate(
        run.config,
        assignments,
        lines,
        task=run.task.name,
        source=run.files.root,
        samples=run.store.total(),
        setup=run.setup,
        budget_usd=None if budget is None else max(0.0, budget - spent),
        now=run.now(),
        notes=notes,
    )


def _list_notes(lines: Sequence[EstimateLine], past_calls: Sequence[CallUsage]) -> Iterator[str]:
    if any(line.rests_on["answers"] == STATED_BASIS for line in lines):
        yield REASONING_NOTE
    if past_calls:
        yield REUSED_NOTE


def _iter_chunks(run: RunContext) -> Iterator[Chunk]:
    """Yield the texts of the arms, and those of train items if PCR is measured."""
    yield from iter_arm_chunks(run)
    if run.pcr_targets:
        yield from iter_train_chunks(run)


def _has_open_train(run: RunContext) -> bool:
    """Return whether some train items have not been reworded yet."""
    counts = run.store.train.counts()
    return bool(run.pcr_targets) and (not counts or "open" in counts)


def _target_line(
    run: RunContext,
    target: TargetConfig,
    assignments: RoleAssignments,
    past_calls: Sequence[CallUsage],
) -> EstimateLine:
    """Return the cost of a target's open questions, each about one sample."""
    left = iter_open_questions(run, target, lambda: _iter_chunks(run))
    first = list(islice(left, RENDERED_QUESTIONS))
    number = len(first) + sum(1 for _ in left)
    sizes = [measure_question(asked, run.load_task_of(asked.sample)) for asked in first] or [0]
    basis = FigureBasis(origin="questions of the run without an answer", n=number)
    return estimate_line(
        "target",
        target,
        KnownRange(range=exactly(1), basis=basis),
        PromptSize(
            fixed=0,
            varied=KnownRange(range=estimate_mean(sizes), basis=basis),
            kind=run.task.kind,
        ),
        number,
        assignments,
        past_calls,
    )
