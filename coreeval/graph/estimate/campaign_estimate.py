"""What questions to targets will cost if nothing is refreshed: about items, or about series.

Questions are counted and measured, not sent; nothing is asked or kept.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from coreeval.config import ItemConfig, ModelConfig, SeriesConfig
from coreeval.evaluation.numleak.defences.utility import JUDGEMENT_SHAPE, JudgeInput
from coreeval.evaluation.numleak.probes import SeriesQuestion
from coreeval.graph.estimate.call_figures import REPEATED_QUESTIONS, STATED_BASIS, CallUsage
from coreeval.graph.estimate.costing import (
    REUSED_NOTE,
    RoleAssignments,
    assign_targets,
    build_estimate,
    estimate_line,
    find_recorded_name,
)
from coreeval.graph.estimate.history import load_recent_calls
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
from coreeval.graph.estimate.workload import PromptSize, measure_prompt
from coreeval.graph.item_campaign import ITEM_ROLE, PARAPHRASE_ROLE, ItemPlan
from coreeval.graph.numleak.defence_trials import JUDGE_DRAWS, JUDGE_ROLE, UTILITY_ROLE, UtilityPlan
from coreeval.graph.numleak.plan import NumleakPlan, TargetAudit, allow_tokens, find_question_role
from coreeval.prompts import load_built_in_prompt
from coreeval.schema import Item
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import Workspace

ANSWER_LENGTH_NOTE = (
    "how long answers are is not known: a model that reasons first writes a hundred times as much "
    "as one that names a letter or a number; ask little ({key}) and estimate again"
)


@dataclass(frozen=True, kw_only=True)
class CampaignEstimator:
    """The parts of a campaign that an estimate shows."""

    source: Path
    """Path of the config file."""
    config: ItemConfig | SeriesConfig
    workspace: Workspace
    payer: str
    task: str
    """The subject of the questions, in words."""
    samples: int
    """The number of items or questions."""
    asked: Sequence[ModelConfig]
    """The models that are asked."""
    fewer: str
    """The config key that reduces the number of questions."""
    notes: Sequence[str] = ()

    def estimate(
        self,
        lines_of: Callable[[RoleAssignments, Sequence[CallUsage]], Iterator[EstimateLine]],
        *,
        now: Clock,
    ) -> CostEstimate:
        """Return the expected cost; nothing is asked or kept.

        Args:
            lines_of: Returns the lines, given the models that are asked and the recorded calls.
            now: The current time.

        Raises:
            ConfigError: the file of prices cannot be used.
            RunCorrupt: the call store is damaged.
        """
        cast, seen = assign_targets(self.config, self.asked), load_recent_calls(self.workspace)
        lines = tuple(lines_of(cast, seen))
        budget = self.config.run.budget_usd
        return build_estimate(
            self.config,
            cast,
            lines,
            task=self.task,
            source=self.source,
            samples=self.samples,
            budget_usd=None if budget is None else max(0.0, budget - self._spent()),
            now=now(),
            notes=(*self.notes, *self._hints(lines, seen)),
        )

    def _spent(self) -> float:
        if not self.workspace.calls.exists():
            return 0.0
        with closing(open_calls(self.workspace.calls, self.payer)) as calls:
            spent = calls.ledger.spent()
        return spent.billed_usd + spent.unknown_usd

    def _hints(self, lines: Sequence[EstimateLine], seen: Sequence[CallUsage]) -> Iterator[str]:
        if any(line.rests_on["answers"] == STATED_BASIS for line in lines):
            yield ANSWER_LENGTH_NOTE.format(key=self.fewer)
        if {line.model for line in lines} & {one.model for one in seen}:
            yield REUSED_NOTE


CHARACTERS_PER_WIDE = 4
"""Latin letters that one other character counts as if no call of the model was recorded: as many as
make a token. Assumed; the first recorded calls replace it."""


def estimate_items(plan: ItemPlan, *, now: Clock = utc_now) -> CostEstimate:
    """Return the cost of asking everything in a plan; nothing is asked or kept.

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
        notes=[] if plan.twins else [_PARAPHRASE_NOTE],
    )
    return asking.estimate(lambda cast, seen: _item_lines(plan, cast, seen), now=now)


_PARAPHRASE_NOTE = "items whose paraphrase fails are not asked about; the estimate pays for all"


def _item_lines(
    plan: ItemPlan, cast: RoleAssignments, seen: Sequence[CallUsage]
) -> Iterator[EstimateLine]:
    items = [item for each in plan.drawn for item in each.items]
    rewriter = plan.config.models.rewriter
    if rewriter in plan.models and rewriter is not None:
        told = len(load_built_in_prompt("paraphraser").text)
        calls = KnownRange(range=REPEATED_QUESTIONS, basis=STATED_BASIS)
        size = _measure_items(rewriter, items, seen, fixed=told)
        yield estimate_line(PARAPHRASE_ROLE, rewriter, calls, size, len(items), cast, seen)
    for target in plan.config.models.targets:
        basis = FigureBasis(origin="the benchmark's items and their twins", n=plan.items)
        calls = KnownRange(range=exactly(2), basis=basis)
        size = _measure_items(target, items, seen)
        yield estimate_line(ITEM_ROLE, target, calls, size, plan.items, cast, seen)


def _measure_items(
    model: ModelConfig, items: Sequence[Item], seen: Sequence[CallUsage], *, fixed: int = 0
) -> PromptSize:
    """Return the length of the questions about items; their twins are about as long."""
    wide = 1 if find_recorded_name(model) in {one.model for one in seen} else CHARACTERS_PER_WIDE
    sizes = [len(item.input) + (wide - 1) * _count_wide(item.input) for item in items]
    basis = FigureBasis(origin="the benchmark's items", n=len(items))
    return PromptSize(fixed=fixed, varied=KnownRange(range=estimate_mean(sizes), basis=basis))


def _count_wide(text: str) -> int:
    """Return the number of characters outside the Latin range."""
    return sum(sign > "\N{LATIN SMALL LETTER EZH WITH CARON}" for sign in text)


SERIES_ANSWERS = between(200, 1000, 4000)
"""Characters per answer to an ordinary question."""


def estimate_numleak(plan: NumleakPlan, *, now: Clock = utc_now) -> CostEstimate:
    """Return the cost of asking everything in a plan; nothing is asked or kept.

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
    return asking.estimate(lambda cast, seen: audit_lines(plan.audits, cast, seen), now=now)


def audit_lines(
    audits: Iterable[TargetAudit],
    cast: RoleAssignments,
    seen: Sequence[CallUsage],
    *,
    stage: Stage = "run",
) -> Iterator[EstimateLine]:
    """Yield the cost of each target that is not embedded; it is asked every question once."""
    for audit in audits:
        if not audit.target.is_embedded:
            for (role, room), questions in _group_questions(audit).items():
                basis = FigureBasis(origin="a question is asked once", n=len(questions))
                calls = KnownRange(range=exactly(1), basis=basis)
                yield estimate_line(
                    role,
                    allow_tokens(audit.target, room),
                    calls,
                    _measure_series(questions),
                    len(questions),
                    cast,
                    seen,
                    stage=stage,
                )
        if audit.judged:
            yield from _utility_lines(audit, audit.judged, cast, seen, stage)


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


# -- ordinary questions, and those who score the answers ------------------------------------------


def _list_judges(plan: NumleakPlan) -> list[ModelConfig]:
    defences = plan.config.detect.numleak.defences
    return list(defences.judges) if defences else []


def _utility_lines(
    audit: TargetAudit,
    judged: UtilityPlan,
    cast: RoleAssignments,
    seen: Sequence[CallUsage],
    stage: Stage,
) -> Iterator[EstimateLine]:
    """Yield the cost of ordinary questions and of scoring their answers."""
    texts = {one.text: one for one in judged.questions}
    basis = FigureBasis(origin="a question is asked once in the same words", n=len(texts))
    once = KnownRange(range=exactly(1), basis=basis)
    if not audit.target.is_embedded:
        sizes = [measure_prompt(one.messages, {}) for one in texts.values()]
        size = PromptSize(fixed=0, varied=KnownRange(range=estimate_mean(sizes), basis=basis))
        yield estimate_line(
            UTILITY_ROLE, audit.target, once, size, len(texts), cast, seen, stage=stage
        )
    own = sum(one.key(audit.target.model) in judged.again for one in judged.questions)
    for judge, answers in ((judged.judge, len(texts)), (judged.second_judge, own)):
        if judge and answers and not judge.is_rule_based:
            shown = _measure_judge(judged)
            tries = KnownRange(range=between(1, 1, JUDGE_DRAWS), basis=basis)
            yield estimate_line(JUDGE_ROLE, judge, tries, shown, answers, cast, seen, stage=stage)


def _measure_judge(judged: UtilityPlan) -> PromptSize:
    """Return the length of a judge's prompts, which contain answers of a stated length."""
    exhibits = [JudgeInput(question=one.asked.question, points=one.asked.points, answer="")
                for one in judged.questions]  # fmt: skip
    fixed = measure_prompt(exhibits[0].messages[:1], JUDGEMENT_SHAPE.schema)
    sizes = estimate_mean([measure_prompt(one.messages[1:], {}) for one in exhibits])
    return PromptSize(
        fixed=fixed, varied=KnownRange(range=sizes + SERIES_ANSWERS, basis=STATED_BASIS)
    )
