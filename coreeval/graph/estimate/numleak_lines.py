"""Estimates NumLeak: questions about series, and scoring answers given under defences."""

from collections.abc import Iterable, Iterator, Sequence

from coreeval.config import ModelConfig
from coreeval.evaluation.embedded_targets import is_classifier
from coreeval.evaluation.numleak.defences.utility import JUDGEMENT_SHAPE, JudgeInput
from coreeval.evaluation.numleak.probes import SeriesQuestion
from coreeval.graph.estimate.assignments import RoleAssignments
from coreeval.graph.estimate.call_figures import STATED_BASIS, CallUsage
from coreeval.graph.estimate.campaign_estimator import CampaignEstimator
from coreeval.graph.estimate.costing import estimate_line
from coreeval.graph.estimate.model import (
    CostEstimate,
    EstimateLine,
    FigureBasis,
    KnownRange,
    Stage,
    between,
    estimate_mean,
    exactly,
)
from coreeval.graph.estimate.past_figures import PastFigures
from coreeval.graph.estimate.workload import PromptSize, measure_prompt
from coreeval.graph.numleak.defence_trials import JUDGE_DRAWS, JUDGE_ROLE, UTILITY_ROLE, UtilityPlan
from coreeval.graph.numleak.plan import (
    NumleakPlan,
    TargetAudit,
    allow_tokens,
    find_question_role,
    open_series_set,
    plan_run_audits,
)
from coreeval.graph.prompt_lab.lab import PromptLab
from coreeval.tools.clock import Clock, utc_now

SERIES_ANSWERS = between(200, 1000, 4000)
"""Characters per answer to an ordinary question."""


def estimate_numleak(plan: NumleakPlan, *, now: Clock = utc_now) -> CostEstimate:
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
        task=f"NumLeak of {', '.join(one.definition.id for one in plan.series)}",
        samples=plan.questions,
        asked=[*(audit.target for audit in plan.audits), *_list_judges(plan)],
        fewer="detect.numleak.dates",
        notes=[*plan.universe.notes(), *plan.notes()],
    )
    return asking.estimate(
        lambda assignments, past_calls: audit_lines(plan.audits, assignments, past_calls), now=now
    )


def audit_lines(
    audits: Iterable[TargetAudit],
    assignments: RoleAssignments,
    past_calls: Sequence[CallUsage],
    *,
    stage: Stage = "run",
) -> Iterator[EstimateLine]:
    """Yield the cost of each target that is not embedded; it is asked every question once."""
    for audit in audits:
        if not audit.target.is_embedded:
            for (role, room), questions in _group_questions(audit).items():
                basis = FigureBasis(origin="each question is asked once", n=len(questions))
                calls = KnownRange(range=exactly(1), basis=basis)
                yield estimate_line(
                    role,
                    allow_tokens(audit.target, room),
                    calls,
                    _measure_series(questions),
                    len(questions),
                    assignments,
                    past_calls,
                    stage=stage,
                )
        if audit.judged:
            yield from _utility_lines(audit, audit.judged, assignments, past_calls, stage)


def _group_questions(audit: TargetAudit) -> dict[tuple[str, int], list[SeriesQuestion]]:
    """Return the questions by the role they are recorded under and the answer's token limit."""
    every = [one for asked in audit.asked for one in asked.questions]
    rooms = {find_question_role(one.room): 0 for one in every}
    for one in every:
        rooms[find_question_role(one.room)] = max(one.room, rooms[find_question_role(one.room)])
    return {
        (role, room): [one for one in every if find_question_role(one.room) == role]
        for role, room in rooms.items()
    }


def _measure_series(questions: Sequence[SeriesQuestion]) -> PromptSize:
    sizes = [measure_prompt(one.messages, {}) for one in questions]
    basis = FigureBasis(origin="the questions", n=len(sizes))
    return PromptSize(fixed=0, varied=KnownRange(range=estimate_mean(sizes), basis=basis))


def _list_judges(plan: NumleakPlan) -> list[ModelConfig]:
    defences = plan.config.detect.numleak.defences
    return list(defences.judges) if defences else []


def _utility_lines(
    audit: TargetAudit,
    judged: UtilityPlan,
    assignments: RoleAssignments,
    past_calls: Sequence[CallUsage],
    stage: Stage,
) -> Iterator[EstimateLine]:
    """Yield the cost of ordinary questions and of scoring their answers."""
    texts = {one.text: one for one in judged.questions}
    basis = FigureBasis(origin="identical questions are asked once", n=len(texts))
    once = KnownRange(range=exactly(1), basis=basis)
    if not audit.target.is_embedded:
        sizes = [measure_prompt(one.messages, {}) for one in texts.values()]
        size = PromptSize(fixed=0, varied=KnownRange(range=estimate_mean(sizes), basis=basis))
        yield estimate_line(
            UTILITY_ROLE, audit.target, once, size, len(texts), assignments, past_calls, stage=stage
        )
    own = sum(one.key(audit.target.model) in judged.again for one in judged.questions)
    for judge, answers in ((judged.judge, len(texts)), (judged.second_judge, own)):
        if judge and answers and not judge.is_rule_based:
            shown = _measure_judge(judged)
            tries = KnownRange(range=between(1, 1, JUDGE_DRAWS), basis=basis)
            yield estimate_line(
                JUDGE_ROLE, judge, tries, shown, answers, assignments, past_calls, stage=stage
            )


def _measure_judge(judged: UtilityPlan) -> PromptSize:
    """Return the length of a judge's prompts, which contain answers of a stated length."""
    exhibits = [JudgeInput(question=one.asked.question, points=one.asked.points, answer="")
                for one in judged.questions]  # fmt: skip
    fixed = measure_prompt(exhibits[0].messages[:1], JUDGEMENT_SHAPE.schema)
    sizes = estimate_mean([measure_prompt(one.messages[1:], {}) for one in exhibits])
    return PromptSize(
        fixed=fixed, varied=KnownRange(range=sizes + SERIES_ANSWERS, basis=STATED_BASIS)
    )


def series_lines(
    lab: PromptLab, assignments: RoleAssignments, memory: PastFigures
) -> list[EstimateLine]:
    """Return the cost of asking about series and of judging the answers given under defences."""
    config, setup = lab.setup.config, lab.setup
    asked, cache = config.detect.numleak, lab.workspace.series
    if asked is None or not (assignments.targets or assignments.judges):
        return []
    chosen = [target for target in config.models.targets if not is_classifier(target.model)]
    universe = open_series_set(asked, base=lab.config.parent, cache=cache)
    audits = plan_run_audits(config, chosen, universe, source=lab.config, today=setup.now.date())
    return list(audit_lines(audits, assignments, memory.past_calls, stage="numleak"))
