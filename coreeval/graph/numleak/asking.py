"""Putting an audit's questions to its target: a model through the call store, a persona here."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from coreeval.evaluation.numleak.defences.attacking import DefendedQuestion
from coreeval.evaluation.numleak.probes import Question
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from coreeval.graph.desk import Desk, Words, in_words
from coreeval.graph.numleak.plan import TARGET_ROLE, Audit
from coreeval.graph.numleak.readout import ReadOutDesk, tokens_of
from coreeval.graph.numleak.rooms import role_of, roomy
from coreeval.graph.progress import Progress
from coreeval.models import ModelPool

WARM = 1.0
"""Temperature of repeated answers, as in NumLeak's probe specification (research: appendix O)."""


async def replies_of(
    desk: Desk,
    exchange: ModelPool,
    audit: Audit,
    taught: Sequence[Series],
    *,
    seed: int,
    stage: str = "ask",
) -> list[Reply]:
    """Return what a target says to each question, in their order.

    Args:
        desk: What asking shares.
        exchange: Where models are opened; no persona is.
        audit: Whom to ask what.
        taught: What a persona learns, as far as its cutoff goes.
        seed: Of what a persona learns and how it speaks.
        stage: What is shown meanwhile.

    Raises:
        Stopped: a signal stopped it.
        RunError: some questions did not get through.
        CoreEvalError: no more can be asked: no budget, no key, no such model.
    """
    if audit.target.is_embedded:
        return await asyncio.to_thread(_by_persona, desk, audit, taught, seed, stage)
    questions = [question for asked in audit.asked for question in asked.questions]
    said = await _by_model(desk, exchange, audit, questions, stage)
    return [_reply(question, audit.target.model, said[question]) for question in questions]


async def _by_model(
    desk: Desk,
    exchange: ModelPool,
    audit: Audit,
    questions: Sequence[Question],
    stage: str,
) -> dict[Question, Words]:
    """Ask through the call store; a repeated question is a draw of its own, from no fixed seed.

    Draw 0 there is the question for the value itself, in the same words.
    """
    target = audit.target
    warm = target.model_copy(update={"temperature": WARM, "seed": None})
    sampler = exchange.open_client(warm, TARGET_ROLE, max_draws=1, settle=True)
    askers = {
        room: exchange.open_client(roomy(target, room), role_of(room), max_draws=1, settle=True)
        for room in {0, *(question.room for question in questions)}
    }
    reading = ReadOutDesk(exchange, audit, askers[0])

    async def ask(question: Question) -> Words:
        if question.logprobs:
            return await reading.ask(question)
        if question.variant == "repeated":
            return await in_words(sampler, question.messages, draw=question.draw + 1)
        return await in_words(askers[question.room], question.messages)

    return await desk.gather(target.model, stage, questions, ask, lambda words: words.kind)


def _reply(question: Question, model: str, said: Words) -> Reply:
    """Return the record of an answer; what was cut off or declined keeps the words it had."""
    silent = said.kind != "answered" and not said.text
    reply = question.reply(model, None if silent else said.text, said.kind)
    return reply.model_copy(update={"first_tokens": tokens_of(said)})


# -- personas -------------------------------------------------------------------------------------


def _by_persona(
    desk: Desk, audit: Audit, taught: Sequence[Series], seed: int, stage: str
) -> list[Reply]:
    from coreeval.evaluation.numleak.embedded import PersonaQuestion, open_persona  # numpy

    model, replies = audit.target.model, list[Reply]()
    total = sum(len(asked.questions) for asked in audit.asked)
    desk.watch(Progress(stage=stage, note=model))
    persona = open_persona(model, [_until(each, audit.cutoff) for each in taught], seed=seed)
    for asked in audit.asked:
        for one in asked.questions:
            question = PersonaQuestion(
                variant=one.variant,
                series=one.series,
                period=one.period,
                other=one.other,
                name=one.name,
                draw=one.draw,
                phrasing=one.phrasing,
                stated=one.stated,
                following=one.following,
                shown_date=one.shown_date,
            )
            kept = _kept_back(model, one)
            replies.append(one.reply(model, kept or persona.answer(question)))
        counts = {"answered": len(replies)}
        desk.watch(Progress(stage=stage, done=len(replies), total=total, counts=counts))
    return replies


def _kept_back(persona: str, question: Question) -> str | None:
    """Return what a persona says that keeps to a defence; None where it gives in, or has none."""
    from coreeval.evaluation.numleak.embedded.defended import DECLINED, yields  # numpy

    if not isinstance(question, DefendedQuestion):
        return None
    given = yields(persona, question.defence, question.suffix, question.period)
    return None if given else DECLINED


def _until(series: Series, cutoff: date | None) -> Series:
    """Return a series as it was published on the last day of what a persona knows."""
    return series if cutoff is None else replace(series, values=series.available_on(cutoff))
