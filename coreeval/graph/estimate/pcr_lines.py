"""Estimates PCR: questions about items, or rewording and questions about both splits."""

from collections.abc import Iterator, Mapping, Sequence

from coreeval.config import ModelConfig
from coreeval.evaluation.pcr.study import COSINE
from coreeval.graph.embedding_budget import list_embedding_notes
from coreeval.graph.estimate.assignments import RoleAssignments, find_recorded_name
from coreeval.graph.estimate.call_figures import (
    REPEATED_QUESTIONS,
    REWORDING_CALLS,
    STATED_BASIS,
    CallUsage,
)
from coreeval.graph.estimate.campaign_estimator import CampaignEstimator
from coreeval.graph.estimate.costing import estimate_line
from coreeval.graph.estimate.model import (
    CostEstimate,
    EstimateLine,
    FigureBasis,
    KnownRange,
    estimate_mean,
    exactly,
)
from coreeval.graph.estimate.past_figures import PastFigures
from coreeval.graph.estimate.workload import PromptSize, SampleCount
from coreeval.graph.pcr.item_campaign import ITEM_ROLE, PARAPHRASE_ROLE, ItemPlan
from coreeval.graph.pcr.split_questions import MOST_TEST_SAMPLES
from coreeval.graph.prompt_lab.lab import PromptLab
from coreeval.prompts import load_built_in_prompt
from coreeval.schema import Item, RoleName
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.formatting import format_quantity

CHARACTERS_PER_WIDE = 4
"""The number of Latin letters that one other character counts as, if no call of the model was
recorded: one token's worth. Assumed; replaced by the first recorded calls."""


def estimate_items(plan: ItemPlan, *, now: Clock = utc_now) -> CostEstimate:
    """Return the cost of all questions in a plan, without sending or storing anything.

    Raises:
        ConfigError: the file of prices cannot be used.
        RunCorrupt: the call store is damaged.
    """
    asking = CampaignEstimator(
        source=plan.source,
        config=plan.config,
        workspace=plan.workspace,
        payer=plan.payer,
        task=f"PCR of {plan.config.dataset.format}, {plan.modification.replace('_', ' ')}",
        samples=plan.items,
        asked=plan.models,
        fewer="detect.pcr.samples",
        notes=[*([] if plan.twins else [_PARAPHRASE_NOTE]), *_list_embedding_notes(plan)],
        questions={item.input for each in plan.drawn for item in each.items},
    )
    return asking.estimate(
        lambda assignments, past_calls: _item_lines(plan, assignments, past_calls), now=now
    )


def _list_embedding_notes(plan: ItemPlan) -> Iterator[str]:
    if plan.needs_embeddings:
        sent = (
            []
            if plan.twins
            else [f"{format_quantity(plan.items, 'item')} and every paraphrase of an item"]
        )
        if plan.settings.consistency == COSINE:
            sent.append(f"up to {2 * plan.items * len(plan.config.models.targets)} answers")
        yield from list_embedding_notes(plan.config, " and ".join(sent))


_PARAPHRASE_NOTE = "items whose paraphrase fails are skipped, but the estimate includes them"


def _item_lines(
    plan: ItemPlan, assignments: RoleAssignments, past_calls: Sequence[CallUsage]
) -> Iterator[EstimateLine]:
    items = [item for each in plan.drawn for item in each.items]
    rewriter = plan.config.models.rewriter
    if rewriter in plan.models and rewriter is not None:
        told = len(load_built_in_prompt("paraphraser").text)
        calls = KnownRange(range=REPEATED_QUESTIONS, basis=STATED_BASIS)
        size = _measure_items(rewriter, items, past_calls, fixed=told)
        yield estimate_line(
            PARAPHRASE_ROLE, rewriter, calls, size, len(items), assignments, past_calls
        )
    for target in plan.config.models.targets:
        basis = FigureBasis(origin="the benchmark's items and their twins", n=plan.items)
        calls = KnownRange(range=exactly(2), basis=basis)
        size = _measure_items(target, items, past_calls)
        yield estimate_line(ITEM_ROLE, target, calls, size, plan.items, assignments, past_calls)


def _measure_items(
    model: ModelConfig, items: Sequence[Item], past_calls: Sequence[CallUsage], *, fixed: int = 0
) -> PromptSize:
    """Return the length of the questions about items; their twins are about as long."""
    wide = (
        1 if find_recorded_name(model) in {one.model for one in past_calls} else CHARACTERS_PER_WIDE
    )
    sizes = [len(item.input) + (wide - 1) * _count_wide(item.input) for item in items]
    basis = FigureBasis(origin="the benchmark's items", n=len(items))
    return PromptSize(fixed=fixed, varied=KnownRange(range=estimate_mean(sizes), basis=basis))


def _count_wide(text: str) -> int:
    """Return the number of characters outside the Latin range."""
    return sum(sign > "\N{LATIN SMALL LETTER EZH WITH CARON}" for sign in text)


def rewording_lines(
    counted: SampleCount,
    assignments: RoleAssignments,
    memory: PastFigures,
    sizes: Mapping[RoleName, PromptSize],
) -> list[EstimateLine]:
    """Return the cost of rewording train items."""
    return [
        estimate_line(
            role,
            assignments.roles[role],
            memory.rewordings(role),
            sizes[role],
            counted.train,
            assignments,
            memory.past_calls,
            stage="pcr",
        )
        for role in REWORDING_CALLS
        if role in assignments.roles and counted.train
    ]


def split_lines(
    lab: PromptLab,
    counted: SampleCount,
    assignments: RoleAssignments,
    memory: PastFigures,
    size: PromptSize,
) -> list[EstimateLine]:
    """Return the cost of the questions for PCR: each reworded item, original and reworded.

    Items of the test split cost nothing here if targets are already asked about the arms.
    """
    if not counted.train:
        return []
    test = 0 if lab.setup.config.detect.evaluate else min(counted.samples, MOST_TEST_SAMPLES)
    texts = 2 * (counted.train + test)
    share = memory.share("semantic")
    questions = share.range.times(len(lab.setup.task.templates) * texts)
    calls = share.model_copy(update={"range": questions})
    return [
        estimate_line("target", model, calls, size, 1, assignments, memory.past_calls, stage="pcr")
        for model in assignments.targets
    ]
