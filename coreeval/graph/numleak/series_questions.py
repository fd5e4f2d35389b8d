"""Asks the questions of an audit: models through the call store, personas directly.

Log-probabilities are requested as long as a target accepts such requests. A stop or a kill loses
only the calls in progress.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from coreeval.errors import RequestRejected
from coreeval.evaluation.detectors.base import TextAnswer
from coreeval.evaluation.numleak.defences.attacks import DefenceQuestion
from coreeval.evaluation.numleak.defences.utility import UtilityReply, write_utility
from coreeval.evaluation.numleak.probes import SeriesQuestion, write_replies
from coreeval.evaluation.numleak.replies import TOP_TOKENS, Reply, Token
from coreeval.evaluation.numleak.series import Series
from coreeval.graph.campaign import (
    Campaign,
    CampaignPlan,
    ask_text,
    run_campaign,
)
from coreeval.graph.monitor import Progress, Watch, ignore_progress
from coreeval.graph.numleak.defence_trials import ask_utility
from coreeval.graph.numleak.plan import (
    SERIES_ROLE,
    NumleakPlan,
    TargetAudit,
    allow_tokens,
    find_question_role,
)
from coreeval.models import ModelClient, ModelPool


class LogprobRunner:
    """Asks one target for values with log-probabilities, as long as it accepts such requests.

    If a request is rejected, it is repeated without them; if that one is answered, the rest are
    sent without them too.

    Args:
        exchange: The exchange that opens models.
        audit: The target and its questions.
        plain: Asks the target without log-probabilities.
    """

    def __init__(self, exchange: ModelPool, audit: TargetAudit, plain: ModelClient) -> None:
        self._plain = plain
        self._peeking = exchange.open_client(
            audit.target, SERIES_ROLE, max_draws=1, settle=True, logprobs=TOP_TOKENS
        )
        self._takes = plain.model.has_logprobs

    async def ask(self, question: SeriesQuestion) -> TextAnswer:
        """Return the answer to a question, with its first tokens if the provider returns them.

        Raises:
            ModelCallError: the question failed.
            CoreEvalError: no more questions can be asked.
        """
        if self._takes:
            try:
                return await ask_text(self._peeking, question.messages)
            except RequestRejected:
                said = await ask_text(self._plain, question.messages)
                self._takes = False
                return said
        return await ask_text(self._plain, question.messages)


class _TokenCandidate(BaseModel):
    token: str
    logprob: float


class _TokenPosition(_TokenCandidate):
    top_logprobs: list[_TokenCandidate]


_TOKEN_POSITIONS = TypeAdapter(list[_TokenPosition])


def parse_tokens(said: TextAnswer) -> tuple[Token, ...] | None:
    """Return the first tokens of an answer from its record; None if it has none."""
    if not said.logprobs:
        return None
    return tuple(
        Token(
            text=place.token,
            logprob=place.logprob,
            top=tuple((one.token, one.logprob) for one in place.top_logprobs),
        )
        for place in _TOKEN_POSITIONS.validate_json(said.logprobs)
    )


def missing_logprobs_notes(
    audits: Sequence[TargetAudit], replies: Sequence[Reply]
) -> Iterator[str]:
    """Yield the targets that were asked for log-probabilities but returned none."""
    telling = {reply.model for reply in replies if reply.first_tokens}
    for audit in audits:
        name = audit.target.model
        wanted = any(one.logprobs for asked in audit.asked for one in asked.questions)
        if wanted and name not in telling:
            why = "a persona has none" if audit.target.is_embedded else "the model returned none"
            yield f"{name} has no read-out entropy, which needs log-probabilities: {why}"


REPEAT_TEMPERATURE = 1.0
"""Temperature of repeated answers, as in NumLeak's probe specification (research: appendix O)."""


async def ask_series(
    campaign: Campaign,
    audit: TargetAudit,
    taught: Sequence[Series],
    *,
    seed: int,
    stage: str = "ask",
) -> list[Reply]:
    """Return a target's answer to each question, in the order of the questions.

    Args:
        campaign: Asks models; personas are not asked through it.
        audit: The target and its questions.
        taught: The data that a persona learns, up to its cutoff.
        seed: The seed of a persona's learning and answers.
        stage: The stage shown as progress.

    Raises:
        CampaignStopped: a signal stopped the run.
        RunError: some questions failed.
        CoreEvalError: no more questions can be asked: no budget, no key, no such model.
    """
    if audit.target.is_embedded:
        return await asyncio.to_thread(_by_persona, campaign, audit, taught, seed, stage)
    questions = [question for asked in audit.asked for question in asked.questions]
    said = await _by_model(campaign, audit, questions, stage)
    return [_build_reply(question, audit.target.model, said[question]) for question in questions]


async def _by_model(
    campaign: Campaign,
    audit: TargetAudit,
    questions: Sequence[SeriesQuestion],
    stage: str,
) -> dict[SeriesQuestion, TextAnswer]:
    """Ask through the call store; a repeated question is a separate draw without a fixed seed.

    Draw 0 is the question for the value itself, with the same wording.
    """
    target = audit.target
    warm = target.model_copy(update={"temperature": REPEAT_TEMPERATURE, "seed": None})
    sampler = campaign.models.open_client(warm, SERIES_ROLE, max_draws=1, settle=True)
    askers = {
        room: campaign.models.open_client(
            allow_tokens(target, room), find_question_role(room), max_draws=1, settle=True
        )
        for room in {0, *(question.room for question in questions)}
    }
    reading = LogprobRunner(campaign.models, audit, askers[0])

    async def ask(question: SeriesQuestion) -> TextAnswer:
        if question.logprobs:
            return await reading.ask(question)
        if question.variant == "repeated":
            return await ask_text(sampler, question.messages, draw=question.draw + 1)
        return await ask_text(askers[question.room], question.messages)

    return await campaign.gather(target.model, stage, questions, ask, lambda words: words.kind)


def _build_reply(question: SeriesQuestion, model: str, said: TextAnswer) -> Reply:
    """Return the record of an answer; a truncated or declined answer keeps its words."""
    silent = said.kind != "answered" and not said.text
    reply = question.reply(model, None if silent else said.text, said.kind)
    return reply.model_copy(update={"first_tokens": parse_tokens(said)})


# -- personas -------------------------------------------------------------------------------------


def _by_persona(
    campaign: Campaign, audit: TargetAudit, taught: Sequence[Series], seed: int, stage: str
) -> list[Reply]:
    from coreeval.evaluation.numleak.personas import open_persona  # numpy

    model, replies = audit.target.model, list[Reply]()
    total = sum(len(asked.questions) for asked in audit.asked)
    campaign.watch(Progress(stage=stage, note=model))
    persona = open_persona(model, [_cut_series(each, audit.cutoff) for each in taught], seed=seed)
    for asked in audit.asked:
        for one in asked.questions:
            kept = _find_persona_refusal(model, one)
            replies.append(one.reply(model, kept or persona.answer(one)))
        counts = {"answered": len(replies)}
        campaign.watch(Progress(stage=stage, done=len(replies), total=total, counts=counts))
    return replies


def _find_persona_refusal(persona: str, question: SeriesQuestion) -> str | None:
    """Return the refusal of a persona that obeys a defence; None if it gives in or has none."""
    from coreeval.evaluation.numleak.personas.memory import DEFENCE_REFUSAL, gives_way

    if not isinstance(question, DefenceQuestion):
        return None
    given = gives_way(persona, question.defence, question.suffix, question.period)
    return None if given else DEFENCE_REFUSAL


def _cut_series(series: Series, cutoff: date | None) -> Series:
    """Return a series in its version of the last day that a persona knows."""
    return series if cutoff is None else replace(series, values=series.available_on(cutoff))


RESPONSES, UTILITY = "responses.jsonl", "utility.jsonl"


@dataclass(frozen=True, kw_only=True)
class NumleakAnswers:
    """The results of a numleak campaign."""

    replies: tuple[Reply, ...]
    """Replies, target by target."""
    file: Path
    """The replies as JSON lines; `--responses` gives the same result with this file."""
    plan: NumleakPlan
    utility: tuple[UtilityReply, ...] = ()
    """Judged answers to ordinary questions under defences."""
    utility_file: Path | None = None
    """The same answers as JSON lines, for `--utility`; None if no questions were asked."""

    def notes(self) -> Iterator[str]:
        """Yield one note per question left out, answer missing, or setting that was not applied."""
        yield from self.plan.notes()
        yield from missing_logprobs_notes(self.plan.audits, self.replies)


def ask_numleak(plan: NumleakPlan, *, watch: Watch = ignore_progress) -> NumleakAnswers:
    """Ask each target about the series and write its answers.

    Args:
        plan: The plan, from `build_numleak_plan`.
        watch: Receives progress.

    Raises:
        BudgetSpent: another call may cost more than the budget has left.
        Interrupted: a signal stopped it. In both cases the same call continues from there.
        RunLocked: another process is running this config.
        RunError: questions got no answer, or a model cannot be used; the answers received are kept.
    """
    folder = plan.workspace.numleak / plan.config.name
    campaign = CampaignPlan(
        source=plan.source,
        config=plan.config,
        workspace=plan.workspace,
        payer=plan.payer,
        lock=folder / "numleak.lock",
    )
    replies, utility = run_campaign(
        campaign, lambda opened: _ask_targets(plan, opened, folder), watch=watch
    )
    return NumleakAnswers(
        replies=tuple(replies),
        file=folder / RESPONSES,
        plan=plan,
        utility=tuple(utility),
        utility_file=folder / UTILITY if utility else None,
    )


async def _ask_targets(
    plan: NumleakPlan, campaign: Campaign, folder: Path
) -> tuple[list[Reply], list[UtilityReply]]:
    replies, utility = list[Reply](), list[UtilityReply]()
    for audit in plan.audits:
        taught, seed = plan.universe.all, plan.config.run.seed
        replies += await ask_series(campaign, audit, taught, seed=seed)
        if audit.judged:
            utility += await ask_utility(campaign, audit.target, audit.judged)
    await asyncio.to_thread(write_replies, folder / RESPONSES, replies)
    if utility:
        await asyncio.to_thread(write_utility, folder / UTILITY, utility)
    return replies, utility
