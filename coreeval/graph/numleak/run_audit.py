"""Audits a run: asks its targets once, and counts their answers for the report."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from coreeval.config import TargetConfig
from coreeval.evaluation.numleak.defences.utility import UtilityReply, read_utility, write_utility
from coreeval.evaluation.numleak.probes import write_replies
from coreeval.evaluation.numleak.replies import read_replies
from coreeval.graph.batch_rounds import work_in_rounds
from coreeval.graph.campaign import Campaign, CampaignQueued, CampaignStopped, file_names
from coreeval.graph.numleak.defence_trials import ask_utility
from coreeval.graph.numleak.plan import (
    SeriesSet,
    TargetAudit,
    iter_notes,
    load_signals,
    open_series_set,
    plan_run_audits,
)
from coreeval.graph.numleak.series_questions import ask_series, missing_logprobs_notes
from coreeval.graph.run_context import RunContext
from coreeval.graph.target_questions import build_step, open_run_campaign, record_asking
from coreeval.models import record_calls
from coreeval.tools.cutoffs import find_target_dates, load_run_cutoffs

AUDIT_STAGE = "numleak"


async def audit_series(run: RunContext) -> list[str]:
    """Ask the run's targets about the series of its config; return the targets that were asked.

    A target's file is written only when complete; a target with a file is not asked again.

    Raises:
        CoreEvalError: a series cannot be opened, or a target cannot be used or left questions
            unanswered.
    """
    if not run.series_targets:
        return []
    done = await asyncio.to_thread(run.store.stage, AUDIT_STAGE)
    if done is None:
        try:
            await work_in_rounds(run, lambda: _ask_targets(run))
        except CampaignStopped:
            return []
        if run.stop.asked:
            return []
        done = await asyncio.to_thread(_finish_audit, run)
    return list(done["targets"])


def list_run_audits(run: RunContext) -> tuple[SeriesSet, tuple[TargetAudit, ...]]:
    """Return the series of a run, and the questions to each audited target.

    Raises:
        UsageError: a series cannot be opened, or has no value in the period.
    """
    return plan_run_audits(
        run.config,
        run.series_targets,
        source=run.manifest.source.file,
        workspace=run.workspace,
        today=run.setup.now.date(),
    )


def list_run_notes(run: RunContext) -> list[str]:
    """Return notes on settings that could not be applied; empty until all questions are asked."""
    done = run.store.stage(AUDIT_STAGE)
    return list(done["notes"]) if done else []


def list_reply_files(run: RunContext, targets: Sequence[TargetConfig]) -> dict[str, Path]:
    """Return the file of each target's replies, by the target's name."""
    return {name: run.files.numleak / file for name, file in file_names(targets).items()}


def read_run_utility(run: RunContext, targets: Sequence[TargetConfig]) -> list[UtilityReply]:
    """Return each target's answers to ordinary questions under defences, with their scores."""
    files = [_utility_file(file) for file in list_reply_files(run, targets).values()]
    return [one for file in files if file.exists() for one in read_utility(file).good]


def _utility_file(replies: Path) -> Path:
    """Return the file of answers to ordinary questions that belongs to a file of replies."""
    return replies.with_name(f"{replies.stem}.utility.jsonl")


def audit_answers(run: RunContext) -> dict[str, Any] | None:
    """Audit the targets' answers about series; return None if the config names no series."""
    from coreeval.evaluation.numleak.audit import numleak_document
    from coreeval.evaluation.numleak.defences.effects import defence_replies_document
    from coreeval.evaluation.numleak.statistics import AuditSettings

    asked = run.config.detect.numleak
    if asked is None:
        return None
    base, targets = run.manifest.config_folder, run.config.models.targets
    universe = open_series_set(asked, base=base, cache=run.workspace.series)
    files = list_reply_files(run, targets).values()
    table = load_run_cutoffs(run.config)
    stated = {target.model: find_target_dates(target, table).cutoff for target in targets}
    replies = [reply for file in files if file.exists() for reply in read_replies(file).good]
    series = {one.definition.id: one for one in universe.all}
    cutoffs = {model: cutoff.last_day if cutoff else None for model, cutoff in stated.items()}
    found = numleak_document(
        replies,
        series,
        AuditSettings(seed=run.config.run.seed),
        cutoffs,
        notes=list_run_notes(run),
        signals=load_signals(asked, base),
    )
    return found | {
        "defences": defence_replies_document(
            replies, read_run_utility(run, targets), series, cutoffs
        )
    }


async def _ask_targets(run: RunContext) -> None:
    """Ask each target once; questions waiting for a batch are asked again in the next pass."""
    universe, audits = await asyncio.to_thread(list_run_audits, run)
    files = list_reply_files(run, run.config.models.targets)
    async with open_run_campaign(run, AUDIT_STAGE) as campaign:
        for audit in audits:
            file = files[audit.target.model]
            if not file.exists():
                with suppress(CampaignQueued):
                    await _audit_target(run, campaign, audit, universe, file)
            if audit.judged and not _utility_file(file).exists():
                with suppress(CampaignQueued):
                    await _judge_target(run, campaign, audit, _utility_file(file))


def _finish_audit(run: RunContext) -> dict[str, Any]:
    """Record that the stage is done, and return its findings."""
    universe, audits = list_run_audits(run)
    files = list_reply_files(run, run.config.models.targets)
    asked = [files[audit.target.model] for audit in audits]
    replies = [reply for file in asked for reply in read_replies(file).good]
    done = {
        "targets": [audit.target.model for audit in audits],
        "notes": [*iter_notes(universe, audits), *missing_logprobs_notes(audits, replies)],
    }
    run.store.finish_stage(AUDIT_STAGE, done)
    return done


async def _audit_target(
    run: RunContext, campaign: Campaign, audit: TargetAudit, universe: SeriesSet, file: Path
) -> None:
    """Ask one target about series, and save the answers once all are complete."""
    async with _record_calls(run, audit, 0):
        replies = await ask_series(
            campaign, audit, universe.all, seed=run.config.run.seed, stage=AUDIT_STAGE
        )
        await asyncio.to_thread(write_replies, file, replies)


async def _judge_target(
    run: RunContext, campaign: Campaign, audit: TargetAudit, file: Path
) -> None:
    """Ask one target ordinary questions; save the answers once all have been judged."""
    if audit.judged:
        async with _record_calls(run, audit, 1):
            replies = await ask_utility(campaign, audit.target, audit.judged)
            await asyncio.to_thread(write_utility, file, replies)


@asynccontextmanager
async def _record_calls(run: RunContext, audit: TargetAudit, turn: int) -> AsyncIterator[None]:
    """Record the calls of the block whether or not it succeeds."""
    with record_calls() as made:
        try:
            yield
        finally:
            if made:
                record_asking(
                    run, build_step(run, audit.target.model, turn, AUDIT_STAGE, made), made
                )
                await run.store.history.flush_steps()
