"""The nodes of the run graph, and their stages: each does what is left, and says how much.

The event loop waits for no disk: what reads or writes files runs in a thread. The one exception is
looking up a call by its key, an indexed read that would take twice as long in a thread.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence

from coreeval.config import TargetConfig
from coreeval.errors import ReleaseError
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.comparability.verdict import Comparability
from coreeval.graph.refresh import refresh_control, refresh_samples
from coreeval.graph.report import gather_findings
from coreeval.graph.run_context import RunContext
from coreeval.graph.run_origin import open_keeper
from coreeval.graph.state import RunState, RunUpdate
from coreeval.graph.target_questions import Chunk, iter_arm_chunks, iter_split_chunks, put_to_target
from coreeval.graph.train_split import reword_train
from coreeval.releases.sample_tables import read_evidence_dates
from coreeval.runs.arms import write_arms, write_control
from coreeval.runs.card import write_card
from coreeval.tools.stores.run_tables import ReleaseSample

KEEP_BATCH = 200


def plan_samples(job: RunContext) -> RunUpdate:
    """Read the benchmark into the run store, once."""
    if job.store.total() == 0 and not job.store.bad_rows():  # all may have been taken down
        job.tell("plan")
        _read_benchmark(job)
        for note in job.current_manifest().notes:
            job.tell("plan", note=note)
    return RunUpdate(planned=job.store.total(), bad_rows=len(job.store.bad_rows()))


def _read_benchmark(job: RunContext) -> None:
    """Store the samples, with their results where they are kept from the release before."""
    rows = iter_benchmark(job.config.dataset, job.task)
    parent = job.manifest.parent
    if parent is None:
        job.store.add_samples(rows, limit=job.manifest.limit)
        return
    keeper = open_keeper(parent, job.setup)
    job.store.add_samples(keeper.iter_rows(rows), limit=job.manifest.limit)
    job.tell("plan", note=keeper.describe(parent))


def _keep_unrenewed(job: RunContext) -> None:
    """Put stale samples back as the release has them where their renewal found nothing newer."""
    if job.manifest.parent is None:
        return
    dates, again = read_evidence_dates(job.store), list[ReleaseSample]()
    try:
        keeper = open_keeper(job.manifest.parent, job.setup)
        for ended in job.store.sample_results():
            newest = dates[ended.sample.id][1] if ended.sample.id in dates else None
            if kept := keeper.keep_again(ended, newest):
                again.append(kept)
    except ReleaseError as error:
        job.tell("assemble", note=f"renewed samples are not compared with the release: {error}")
        return
    for start in range(0, len(again), KEEP_BATCH):
        job.store.keep(again[start : start + KEEP_BATCH])
    if again:
        one = "1 sample was" if len(again) == 1 else f"{len(again)} samples were"
        job.tell("assemble", note=f"{one} kept, still stale: nothing newer was found")


def assemble_arms(job: RunContext) -> RunUpdate:
    """Write the arms, their provenance and the dataset card."""
    done = job.store.stage("assemble")
    if done is None:
        job.tell("assemble")
        _keep_unrenewed(job)
        done = write_arms(
            job.store,
            job.task,
            job.files.dataset,
            split=job.config.dataset.split,
            on_reject=job.config.run.on_reject,
        )
        if job.control:
            done["control"] = write_control(
                job.control.store, job.task, job.files.dataset, split=job.config.dataset.split
            )
        write_card(job.files.dataset, job.task, job.config, job.current_manifest(), done)
        job.store.finish_stage("assemble", done)
    return RunUpdate(assembled=done)


def report_run(job: RunContext) -> RunUpdate:
    """Write the report; it is the last stage, so a run is complete when it is done."""
    from coreeval.evaluation.comparability.rows import read_comparability
    from coreeval.evaluation.report.report_document import write_report

    if job.store.stage("report") is None:
        job.tell("report")
        found = gather_findings(job)
        write_report(found, job.files)
        _write_card_again(job, read_comparability({"comparability": found.comparability}))
        job.store.finish_stage("report", {})
    return RunUpdate(report=str(job.files.report_html))


def _write_card_again(job: RunContext, comparability: Comparability | None) -> None:
    """Write the dataset card with what the report says of the likeness of the arms."""
    rows, manifest = job.store.stage("assemble") or {}, job.current_manifest()
    write_card(job.files.dataset, job.task, job.config, manifest, rows, comparability=comparability)


async def evaluate_targets(job: RunContext) -> list[str]:
    """Ask the targets about every arm and store the answers; return the targets that were asked.

    Raises:
        CoreEvalError: a target cannot be used, or left questions without an answer.
    """
    done = await asyncio.to_thread(job.store.stage, "evaluate")
    if done is None:
        done = await _ask_targets(job, "evaluate", job.label_targets, iter_arm_chunks)
    return list(done["targets"])


async def ask_about_splits(job: RunContext) -> list[str]:
    """Reword items of the train split and ask the targets about them, where PCR is to be measured.

    Without a target to compare nothing is reworded. Returns the targets that were asked.

    Raises:
        CoreEvalError: what no item could survive; a target that cannot be used, or that left
            questions without an answer.
    """
    if not job.pcr_targets:
        return []
    done = await asyncio.to_thread(job.store.stage, "pcr")
    if done is None:
        await reword_train(job)
        done = await _ask_targets(job, "pcr", job.pcr_targets, iter_split_chunks)
    return list(done["targets"])


async def _ask_targets(
    job: RunContext,
    stage: str,
    targets: Sequence[TargetConfig],
    chunks: Callable[[RunContext], Iterator[Chunk]],
) -> dict[str, list[str]]:
    """Ask one target after the other, and note that the stage is done unless told to stop."""
    asked = list[str]()
    for target in targets:
        if not job.stop.asked:
            await put_to_target(job, target, lambda: chunks(job), stage=stage)
        if job.stop.asked:
            return {"targets": asked}
        asked.append(target.model)
    done = {"targets": asked}
    await asyncio.to_thread(job.store.finish_stage, stage, done)
    return done


class RunNodes:
    """The node functions, bound to one run."""

    def __init__(self, job: RunContext) -> None:
        self._job = job

    async def plan(self, state: RunState) -> RunUpdate:
        """Read the benchmark into the run store, once."""
        return await asyncio.to_thread(plan_samples, self._job)

    async def refresh(self, state: RunState) -> RunUpdate:
        """Bring every sample that has no outcome to one."""
        counts = await asyncio.to_thread(self._job.counts)
        if counts["pending"]:
            await refresh_samples(self._job)
            counts = await asyncio.to_thread(self._job.counts)
        return RunUpdate(pending=counts["pending"], counts=counts)

    async def control(self, state: RunState) -> RunUpdate:
        """Bring every sample to an outcome once more, with the news of the control window."""
        left = await refresh_control(self._job)
        return RunUpdate(control_pending=left)

    async def assemble(self, state: RunState) -> RunUpdate:
        """Write the arms, their provenance and the dataset card."""
        return await asyncio.to_thread(assemble_arms, self._job)

    async def evaluate(self, state: RunState) -> RunUpdate:
        """Ask the targets about the arms."""
        asked = await evaluate_targets(self._job)
        return RunUpdate(evaluated=asked, stopped=self._job.stop.asked)

    async def pcr(self, state: RunState) -> RunUpdate:
        """Ask them about items of the train split too, where the config says so."""
        asked = await ask_about_splits(self._job)
        return RunUpdate(compared=asked, stopped=self._job.stop.asked)

    async def numleak(self, state: RunState) -> RunUpdate:
        """Ask them about series, where the config names any."""
        from coreeval.graph.numleak.run_audit import audit_series  # for few configs

        audited = await audit_series(self._job)
        return RunUpdate(audited=audited, stopped=self._job.stop.asked)

    async def report(self, state: RunState) -> RunUpdate:
        """Write the report for people and for programs."""
        return await asyncio.to_thread(report_run, self._job)
