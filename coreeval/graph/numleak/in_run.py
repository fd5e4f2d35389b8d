"""The audit of a run: its targets are asked once, and the report counts what they said."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from coreeval.config import TargetConfig
from coreeval.evaluation.numleak.probes import write_replies
from coreeval.evaluation.numleak.recorded import read_replies
from coreeval.graph.asking import note_asked, step_of
from coreeval.graph.desk import Desk, Stopped
from coreeval.graph.items.work import file_names
from coreeval.graph.job import Job
from coreeval.graph.numleak.asking import replies_of
from coreeval.graph.numleak.plan import Audit, notes_on, run_audits
from coreeval.graph.numleak.readout import untold
from coreeval.graph.numleak.universe import Universe
from coreeval.models import Exchange, close_models, open_exchange, record_calls
from coreeval.tools.stores.calls import open_calls

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


async def _asked(job: Job) -> dict[str, list[str]]:
    universe, audits = await asyncio.to_thread(audits_in_run, job)
    files = files_in_run(job, job.config.models.targets)
    calls = await asyncio.to_thread(open_calls, job.workspace.calls, job.payer)
    try:
        exchange = open_exchange(job.config, calls, traffic=job.traffic)
        for audit in audits:
            if not files[audit.target.model].exists():
                await _audited(job, exchange, audit, universe, files[audit.target.model])
    finally:
        await close_models()
        await asyncio.to_thread(calls.close)
    asked = [files[audit.target.model] for audit in audits]
    replies = [reply for file in asked for reply in read_replies(file).good]
    return {
        "targets": [audit.target.model for audit in audits],
        "notes": [*notes_on(universe, audits), *untold(audits, replies)],
    }


async def _audited(
    job: Job, exchange: Exchange, audit: Audit, universe: Universe, file: Path
) -> None:
    """Ask one target, note its calls however it ends, and keep what it said when that is all."""
    desk = Desk(concurrency=job.config.run.concurrency, watch=job.watch, stop=job.stop)
    seed = job.config.run.seed
    with record_calls() as made:
        try:
            replies = await replies_of(desk, exchange, audit, universe.all, seed=seed, stage=STAGE)
        finally:
            if made:
                note_asked(job, step_of(job, audit.target.model, 0, STAGE, made), made)
                await job.store.recorded()
    await asyncio.to_thread(write_replies, file, replies)
