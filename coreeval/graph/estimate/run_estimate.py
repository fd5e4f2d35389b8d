"""Estimates a run free of charge, from local data, rendered prompts and earlier calls."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from coreeval.agents.edits import explain_length
from coreeval.agents.events import MOST_COMPARED, MOST_RANKED
from coreeval.agents.gold_judging import count_gold_questions
from coreeval.agents.team import labels_in_batches
from coreeval.config import ConfigLike, RunConfig
from coreeval.errors import KnowledgeError
from coreeval.evaluation.benchmarks.subset import Subset
from coreeval.graph.embedding_budget import list_embedding_notes
from coreeval.graph.estimate.assignments import RoleAssignments, assign_roles
from coreeval.graph.estimate.call_figures import (
    AFTER_NEWS,
    REWORDING_CALLS,
    STATED_BASIS,
    CallUsage,
)
from coreeval.graph.estimate.costing import (
    REUSED_NOTE,
    build_estimate,
    estimate_line,
    rules_note,
)
from coreeval.graph.estimate.history import find_payers, load_past_runs, load_recent_calls
from coreeval.graph.estimate.model import (
    CostEstimate,
    EstimateLine,
    KnownRange,
    NewsDefect,
    save_estimate,
)
from coreeval.graph.estimate.numleak_lines import series_lines
from coreeval.graph.estimate.past_figures import PastFigures
from coreeval.graph.estimate.pcr_lines import rewording_lines, split_lines
from coreeval.graph.estimate.workload import (
    PromptSize,
    SampleCount,
    count_samples,
    measure_role,
    measure_target,
)
from coreeval.graph.inputs import open_news
from coreeval.graph.prompt_lab.lab import PromptLab, open_lab
from coreeval.graph.run_origin import build_lineage, find_followed_release, open_keeper
from coreeval.schema import RoleName, Sample, Task
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.gdelt.nearest import MOST_EMBEDDED
from coreeval.tools.loops import run_coroutine

REASONING_NOTE = (
    "a reasoning model bills its reasoning as answer tokens; its length is known only after "
    "a trial: use --preview N"
)


def estimate(
    config: ConfigLike,
    *,
    limit: int | None = None,
    subset: Subset | None = None,
    rows: int | None = None,
    overrides: Sequence[str] = (),
    parent: Path | str | None = None,
    stale_after: str | None = None,
    now: Clock = utc_now,
) -> CostEstimate:
    """Return the cost of a run, and store the estimate in the workspace.

    Args:
        config: The path of a YAML config, or a config in memory.
        limit: Take only this many samples from the start of the benchmark.
        subset: Take only these samples, with a limit of its own.
        rows: Estimate for a benchmark of this many samples like its own.
        overrides: `key.path=value` settings that override the config's.
        parent: The release whose samples are kept if they are still valid.
        stale_after: The maximum age of a kept sample's evidence.
        now: The current time.

    Raises:
        UsageError: the config, the benchmark, the prices or the release cannot be used.
        RunCorrupt: the call store is damaged.
    """
    lineage, lab = build_lineage(parent, stale_after), open_lab(config, overrides)
    before = find_followed_release(lineage, lab.setup, lab.workspace) if lineage else None
    keeper = open_keeper(before, lab.setup, lab.workspace) if before else None
    counted = count_samples(lab.setup, limit, keeper, subset=subset, rows=rows)
    assignments = assign_roles(lab.setup.config)
    task, settings = lab.setup.task.name, lab.setup.config.run
    memory = PastFigures(
        past_calls=load_recent_calls(lab.workspace, find_payers(lab.workspace, task, settings)),
        earlier=load_past_runs(lab.workspace, task, settings),
        run=_plan_batches(lab),
        gold_questions=count_gold_questions(lab.setup.task),
        reworded=_find_reworded_share(lab.setup.task, counted.drawn),
    )
    lines = tuple(run_coroutine(_run_lines(lab, counted, assignments, memory)))
    told = [keeper.describe(before)] if keeper and before else []
    notes = [*counted.notes, *told, *_list_notes(lab, lines, memory.past_calls)]
    made = estimate_lab(lab, counted, assignments, lines, now=now, notes=notes)
    made = made.model_copy(update={"missing_news": _find_missing_news(lab)})
    save_estimate(lab.workspace, made)
    return made


def _find_missing_news(lab: PromptLab) -> NewsDefect | None:
    """Return why the local news is unusable for a run; None if usable or not the only source."""
    if any(backend != "local" for backend in lab.setup.config.knowledge.backends):
        return None
    try:
        open_news(lab.setup, lab.workspace).close()
    except KnowledgeError as error:
        return NewsDefect(message=error.message, to_do=error.hint)
    return None


def _find_reworded_share(task: Task, drawn: Sequence[Sample]) -> float:
    """Return the share of samples that are short enough to be reworded; 1 if none are drawn."""
    return 1 - sum(map(bool, (explain_length(task, each) for each in drawn))) / max(1, len(drawn))


def _plan_batches(lab: PromptLab) -> RunConfig:
    """Return the settings of a run, with single calls if its prompts do not allow batches."""
    run = lab.setup.config.run
    if labels_in_batches(run, lab.setup.prompts, lab.setup.task):
        return run
    return run.model_copy(update={"label_batch": 1})


def estimate_lab(
    lab: PromptLab,
    counted: SampleCount,
    assignments: RoleAssignments,
    lines: tuple[EstimateLine, ...],
    *,
    now: Clock,
    notes: Sequence[str],
) -> CostEstimate:
    """Return an estimate of a run, built from lines."""
    config = lab.setup.config
    return build_estimate(
        config,
        assignments,
        lines,
        task=lab.setup.task.name,
        source=lab.config,
        samples=counted.samples,
        to_pay=counted.refresh_count,
        setup=lab.setup,
        by_target=counted.by_target,
        budget_usd=config.run.budget_usd,
        now=now(),
        notes=notes,
    )


async def _run_lines(
    lab: PromptLab, counted: SampleCount, assignments: RoleAssignments, memory: PastFigures
) -> list[EstimateLine]:
    sizes = {role: await measure_role(lab, role, counted.drawn) for role in assignments.roles}
    lines = [
        estimate_line(
            role,
            model,
            memory.calls(role),
            sizes[role],
            counted.refresh_count,
            assignments,
            memory.past_calls,
        )
        for role, model in assignments.roles.items()
    ]
    rewording = rewording_lines(counted, assignments, memory, sizes)
    lines += _control_lines(lab, counted, assignments, memory, sizes)
    audit = await asyncio.to_thread(series_lines, lab, assignments, memory)
    if not assignments.targets:
        return [*lines, *rewording, *audit]
    size = measure_target(lab, counted.drawn)
    return [*lines, *_evaluation_lines(lab, counted, assignments, memory, size), *rewording,
            *split_lines(lab, counted, assignments, memory, size), *audit]  # fmt: skip


def _evaluation_lines(
    lab: PromptLab,
    counted: SampleCount,
    assignments: RoleAssignments,
    memory: PastFigures,
    size: PromptSize,
) -> list[EstimateLine]:
    """Return the cost of asking about the arms."""
    if not lab.setup.config.detect.evaluate:
        return []
    templates, samples = len(lab.setup.task.templates), counted.samples
    questions = memory.questions(templates)
    lines = [
        estimate_line("target", model, questions, size, samples, assignments, memory.past_calls)
        for model in assignments.targets
    ]
    if lab.setup.control is None:
        return lines
    share = memory.share("updated")  # the same pipeline writes the control arm
    more = share.model_copy(update={"range": share.range.times(templates)})
    return lines + [
        estimate_line(
            "target", model, more, size, samples, assignments, memory.past_calls, stage="control"
        )
        for model in assignments.targets
    ]


def _control_lines(
    lab: PromptLab,
    counted: SampleCount,
    assignments: RoleAssignments,
    memory: PastFigures,
    sizes: Mapping[RoleName, PromptSize],
) -> list[EstimateLine]:
    """Return the cost of the control arm, which repeats the steps after the news.

    For samples kept from a release, earlier steps are repeated too. Each new text is read by the
    label judge as often as by the fact judge.
    """
    if lab.setup.control is None:
        return []
    asked: list[tuple[RoleName, KnownRange, int]] = [
        (role, memory.calls("fact_judge" if role == "label_judge" else role), counted.samples)
        for role in AFTER_NEWS
    ]
    asked += [
        (role, memory.rewordings(role), counted.kept) for role in REWORDING_CALLS if counted.kept
    ]
    return [
        estimate_line(
            role,
            assignments.roles[role],
            calls,
            sizes[role],
            number,
            assignments,
            memory.past_calls,
            stage="control",
        )
        for role, calls, number in asked
        if role in assignments.roles
    ]


EMBEDDED_TEXTS = (
    f"up to {MOST_EMBEDDED:,} headlines of the local store, each once, and for each sample its "
    f"text, up to {MOST_RANKED} events, and up to {MOST_COMPARED} sentences of each event that is "
    "read"
)
"""The texts sent to a provider of `knowledge.embeddings`."""


def _list_notes(
    lab: PromptLab, lines: Sequence[EstimateLine], past_calls: Sequence[CallUsage]
) -> Iterator[str]:
    yield from rules_note(lab.setup.config)
    yield from list_embedding_notes(lab.setup.config, EMBEDDED_TEXTS)
    if any(line.rests_on["answers"] == STATED_BASIS for line in lines):
        yield REASONING_NOTE
    if {line.model for line in lines} & {one.model for one in past_calls}:
        yield REUSED_NOTE
