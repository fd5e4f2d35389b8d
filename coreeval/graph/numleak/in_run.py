"""The audit of a run: its targets are asked once, and the report counts what they said."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from coreeval.config import TargetConfig
from coreeval.evaluation.numleak.defences.answers import (
    UtilityReply,
    read_utility,
    write_utility,
)
from coreeval.evaluation.numleak.probes import write_replies
from coreeval.evaluation.numleak.recorded import read_replies
from coreeval.graph.asking import note_asked, step_of
from coreeval.graph.desk import Desk, Stopped
from coreeval.graph.items.work import file_names
from coreeval.graph.job import Job
from coreeval.graph.numleak.asking import replies_of
from coreeval.graph.numleak.defending import judged_answers
from coreeval.graph.numleak.plan import Audit, notes_on, run_audits
from coreeval.graph.numleak.readout import untold
from coreeval.graph.numleak.universe import Universe
from coreeval.models import ModelPool, close_models, open_model_pool, record_calls
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.trust import load_trusted_endpoints

STAGE = "numleak"


async def audit_series(job: Job) -> list[str]:
    """Ask the run's targets about the series of its config; return those that were asked.

    What a target has said is in its file, whole or not at all; a target that has one is not asked.

    Raises:
        CoreEvalError: a series cannot be opened, a target cannot be used, or left questions without
            an answer.
    """
    if not job.audited_targets:
        return []
    done = await asyncio.to_thread(job.store.stage, STAGE)
    if done is None:
        try:
            done = await _asked(job)
        except Stopped:
            return []
        await asyncio.to_thread(job.store.finish_stage, STAGE, done)
    return list(done["targets"])


def audits_in_run(job: Job) -> tuple[Universe, tuple[Audit, ...]]:
    """Return the series of a run, and what each target that it audits is asked.

    Raises:
        UsageError: a series cannot be opened, or has no value in the period.
    """
    return run_audits(
        job.config,
        job.audited_targets,
        source=Path(job.manifest.source.path),
        workspace=job.workspace,
        today=job.setup.now.date(),
    )


def notes_in_run(job: Job) -> list[str]:
    """Return what could not be asked as it was meant; nothing before all was asked."""
    done = job.store.stage(STAGE)
    return list(done["notes"]) if done else []


def files_in_run(job: Job, targets: Sequence[TargetConfig]) -> dict[str, Path]:
    """Return the file of each target's replies, by the name of the target."""
    return {name: job.files.numleak / file for name, file in file_names(targets).items()}


def utility_in_run(job: Job, targets: Sequence[TargetConfig]) -> list[UtilityReply]:
    """Return each target's answers to ordinary questions under defences, with their scores."""
    files = [_beside(file) for file in files_in_run(job, targets).values()]
    return [one for file in files if file.exists() for one in read_utility(file).good]


def _beside(replies: Path) -> Path:
    """Return the file of answers to ordinary questions that goes with one of replies."""
    return replies.with_name(f"{replies.stem}.utility.jsonl")


async def _asked(job: Job) -> dict[str, list[str]]:
    universe, audits = await asyncio.to_thread(audits_in_run, job)
    files = files_in_run(job, job.config.models.targets)
    calls = await asyncio.to_thread(open_calls, job.workspace.calls, job.payer)
    try:
        exchange = open_model_pool(
            job.config, calls, trusted=load_trusted_endpoints(job.workspace), traffic=job.traffic
        )
        for audit in audits:
            file = files[audit.target.model]
            if not file.exists():
                await _audited(job, exchange, audit, universe, file)
            if audit.judged and not _beside(file).exists():
                await _judged(job, exchange, audit, _beside(file))
    finally:
        await close_models()
        await asyncio.to_thread(calls.close)
        job.tell_counts(STAGE)
    asked = [files[audit.target.model] for audit in audits]
    replies = [reply for file in asked for reply in read_replies(file).good]
    return {
        "targets": [audit.target.model for audit in audits],
        "notes": [*notes_on(universe, audits), *untold(audits, replies)],
    }


async def _audited(
    job: Job, exchange: ModelPool, audit: Audit, universe: Universe, file: Path
) -> None:
    """Ask one target about series, and keep what it said when that is all."""
    seed = job.config.run.seed

    async def ask(desk: Desk) -> None:
        replies = await replies_of(desk, exchange, audit, universe.all, seed=seed, stage=STAGE)
        await asyncio.to_thread(write_replies, file, replies)

    await _noted(job, audit, 0, ask)


async def _judged(job: Job, exchange: ModelPool, audit: Audit, file: Path) -> None:
    """Ask one target ordinary questions and have the answers judged; keep them when all are."""

    async def ask(desk: Desk) -> None:
        if audit.judged:
            replies = await judged_answers(desk, exchange, audit.target, audit.judged)
            await asyncio.to_thread(write_utility, file, replies)

    await _noted(job, audit, 1, ask)


async def _noted(job: Job, audit: Audit, turn: int, ask: Callable[[Desk], Awaitable[None]]) -> None:
    """Ask, and note the calls however it ends."""
    desk = Desk(concurrency=job.config.run.concurrency, watch=job.watch, stop=job.stop)
    with record_calls() as made:
        try:
            await ask(desk)
        finally:
            if made:
                note_asked(job, step_of(job, audit.target.model, turn, STAGE, made), made)
                await job.store.flush_steps()
