"""The audit of a run: its targets are asked once, and the report counts what they said."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from coreeval.config import TargetConfig
from coreeval.evaluation.numleak.defences.utility import UtilityReply, read_utility, write_utility
from coreeval.evaluation.numleak.probes import write_replies
from coreeval.evaluation.numleak.replies import read_replies
from coreeval.graph.campaign import CampaignStopped, QuestionRunner
from coreeval.graph.item_campaign import file_names
from coreeval.graph.numleak.defence_trials import ask_utility
from coreeval.graph.numleak.plan import SeriesSet, TargetAudit, iter_notes, plan_run_audits
from coreeval.graph.numleak.series_questions import ask_series, missing_logprobs_notes
from coreeval.graph.run_context import RunContext
from coreeval.graph.target_questions import build_step, record_asking
from coreeval.models import ModelPool, close_models, open_model_pool, record_calls
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.trust import load_trusted_endpoints

AUDIT_STAGE = "numleak"


async def audit_series(job: RunContext) -> list[str]:
    """Ask the run's targets about the series of its config; return the targets that were asked.

    A target's file is written only when complete; a target that has a file is not asked.

    Raises:
        CoreEvalError: a series cannot be opened, a target cannot be used, or left questions without
            an answer.
    """
    if not job.series_targets:
        return []
    done = await asyncio.to_thread(job.store.stage, AUDIT_STAGE)
    if done is None:
        try:
            done = await _ask_targets(job)
        except CampaignStopped:
            return []
        await asyncio.to_thread(job.store.finish_stage, AUDIT_STAGE, done)
    return list(done["targets"])


def list_run_audits(job: RunContext) -> tuple[SeriesSet, tuple[TargetAudit, ...]]:
    """Return the series of a run, and the questions to each target that it audits.

    Raises:
        UsageError: a series cannot be opened, or has no value in the period.
    """
    return plan_run_audits(
        job.config,
        job.series_targets,
        source=Path(job.manifest.source.path),
        workspace=job.workspace,
        today=job.setup.now.date(),
    )


def list_run_notes(job: RunContext) -> list[str]:
    """Return notes on settings that could not be applied; empty until all questions are asked."""
    done = job.store.stage(AUDIT_STAGE)
    return list(done["notes"]) if done else []


def list_reply_files(job: RunContext, targets: Sequence[TargetConfig]) -> dict[str, Path]:
    """Return the file of each target's replies, by the target's name."""
    return {name: job.files.numleak / file for name, file in file_names(targets).items()}


def read_run_utility(job: RunContext, targets: Sequence[TargetConfig]) -> list[UtilityReply]:
    """Return each target's answers to ordinary questions under defences, with their scores."""
    files = [_utility_file(file) for file in list_reply_files(job, targets).values()]
    return [one for file in files if file.exists() for one in read_utility(file).good]


def _utility_file(replies: Path) -> Path:
    """Return the file of answers to ordinary questions that belongs to a file of replies."""
    return replies.with_name(f"{replies.stem}.utility.jsonl")


async def _ask_targets(job: RunContext) -> dict[str, list[str]]:
    universe, audits = await asyncio.to_thread(list_run_audits, job)
    files = list_reply_files(job, job.config.models.targets)
    calls = await asyncio.to_thread(open_calls, job.workspace.calls, job.payer)
    try:
        exchange = open_model_pool(
            job.config,
            calls,
            trusted=load_trusted_endpoints(job.workspace),
            active_calls=job.active_calls,
        )
        for audit in audits:
            file = files[audit.target.model]
            if not file.exists():
                await _audit_target(job, exchange, audit, universe, file)
            if audit.judged and not _utility_file(file).exists():
                await _judge_target(job, exchange, audit, _utility_file(file))
    finally:
        await close_models()
        await asyncio.to_thread(calls.close)
        job.tell_counts(AUDIT_STAGE)
    asked = [files[audit.target.model] for audit in audits]
    replies = [reply for file in asked for reply in read_replies(file).good]
    return {
        "targets": [audit.target.model for audit in audits],
        "notes": [*iter_notes(universe, audits), *missing_logprobs_notes(audits, replies)],
    }


async def _audit_target(
    job: RunContext, exchange: ModelPool, audit: TargetAudit, universe: SeriesSet, file: Path
) -> None:
    """Ask one target about series, and save the answers once all have been given."""
    seed = job.config.run.seed

    async def ask(runner: QuestionRunner) -> None:
        replies = await ask_series(
            runner, exchange, audit, universe.all, seed=seed, stage=AUDIT_STAGE
        )
        await asyncio.to_thread(write_replies, file, replies)

    await _record_calls(job, audit, 0, ask)


async def _judge_target(
    job: RunContext, exchange: ModelPool, audit: TargetAudit, file: Path
) -> None:
    """Ask one target ordinary questions; save the answers once all have been judged."""

    async def ask(runner: QuestionRunner) -> None:
        if audit.judged:
            replies = await ask_utility(runner, exchange, audit.target, audit.judged)
            await asyncio.to_thread(write_utility, file, replies)

    await _record_calls(job, audit, 1, ask)


async def _record_calls(
    job: RunContext, audit: TargetAudit, turn: int, ask: Callable[[QuestionRunner], Awaitable[None]]
) -> None:
    """Ask, and record the calls whether or not asking succeeds."""
    runner = QuestionRunner(concurrency=job.config.run.concurrency, watch=job.watch, stop=job.stop)
    with record_calls() as made:
        try:
            await ask(runner)
        finally:
            if made:
                record_asking(
                    job, build_step(job, audit.target.model, turn, AUDIT_STAGE, made), made
                )
                await job.store.history.flush_steps()
