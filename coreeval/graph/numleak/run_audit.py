"""Audits a run: asks its targets once, and counts their answers for the report."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from coreeval.config import NumleakConfig, TargetConfig, extract_series_config
from coreeval.evaluation.numleak.defences.utility import UtilityReply, read_utility, write_utility
from coreeval.evaluation.numleak.leak import Signal
from coreeval.evaluation.numleak.probes import write_replies
from coreeval.evaluation.numleak.replies import Reply, read_replies
from coreeval.graph.batch_rounds import work_in_rounds
from coreeval.graph.campaign import Campaign, CampaignQueued, CampaignStopped, file_names
from coreeval.graph.numleak.defence_trials import ask_utility
from coreeval.graph.numleak.own_series import open_run_series
from coreeval.graph.numleak.plan import SeriesSet, TargetAudit, iter_notes, plan_run_audits
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
        done = {"targets": [target.model for target in run.series_targets]}
        await asyncio.to_thread(run.store.finish_stage, AUDIT_STAGE, done)
    return list(done["targets"])


def _open_series(
    run: RunContext, asked: NumleakConfig, replies: Iterable[Reply]
) -> tuple[SeriesSet, tuple[Signal, ...]]:
    base, cache = run.manifest.config_folder, run.workspace.series
    return open_run_series(run.files, asked, base=base, cache=cache, replies=replies)


def _plan_audits(
    run: RunContext, targets: Sequence[TargetConfig], universe: SeriesSet
) -> tuple[TargetAudit, ...]:
    source, today = run.manifest.source.file, run.setup.now.date()
    return plan_run_audits(run.config, targets, universe, source=source, today=today)


def _read_replies(run: RunContext, targets: Sequence[TargetConfig]) -> list[Reply]:
    """Return the answers so far of targets about series."""
    files = list_reply_files(run, targets).values()
    return [reply for file in files if file.exists() for reply in read_replies(file).good]


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

    asked, targets = run.config.detect.numleak, run.config.models.targets
    if asked is None:
        return None
    said = _read_replies(run, targets)
    universe, signals = _open_series(run, asked, said)
    table = load_run_cutoffs(run.config)
    stated = {target.model: find_target_dates(target, table).cutoff for target in targets}
    series = {one.definition.id: one for one in universe.all}
    replies = [reply for reply in said if reply.series in series]
    cutoffs = {model: cutoff.last_day if cutoff else None for model, cutoff in stated.items()}
    found = numleak_document(
        replies,
        series,
        AuditSettings(seed=run.config.run.seed),
        cutoffs,
        notes=[*_iter_notes(run, universe, said)],
        signals=signals,
    )
    return found | {
        "defences": defence_replies_document(
            replies, read_run_utility(run, targets), series, cutoffs
        )
    }


def _iter_notes(run: RunContext, universe: SeriesSet, replies: Sequence[Reply]) -> Iterator[str]:
    """Yield notes on settings that could not be applied to the targets that were asked."""
    models = {reply.model for reply in replies}
    asked = [target for target in run.config.models.targets if target.model in models]
    if asked:
        audits = _plan_audits(run, asked, universe)
        yield from iter_notes(universe, audits)
        yield from missing_logprobs_notes(audits, replies)
    for name in sorted(
        {reply.series for reply in replies} - {one.definition.id for one in universe.all}
    ):
        yield f"answers about {name}, which is not a series of the run, are left out"


async def _ask_targets(run: RunContext) -> None:
    """Ask each target once; questions waiting for a batch are asked again in the next pass."""
    universe, audits = await asyncio.to_thread(_plan_questions, run)
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


def _plan_questions(run: RunContext) -> tuple[SeriesSet, tuple[TargetAudit, ...]]:
    """Return the series of a run, and the questions to each audited target.

    Raises:
        UsageError: a series cannot be opened, or has no value in the period.
    """
    asked = extract_series_config(run.config, where=str(run.files.config)).detect.numleak
    universe, _ = _open_series(run, asked, _read_replies(run, run.config.models.targets))
    return universe, _plan_audits(run, run.series_targets, universe)


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
