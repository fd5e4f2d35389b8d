"""The nodes of the run graph and their stages: each does its remaining work and reports it.

Reading and writing of files runs in threads, so that the event loop never waits for a disk. The one
exception is the look-up of a call by its key, an indexed read that would take twice as long in a
thread.
"""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.comparability.verdict import Comparability
from coreeval.graph.money import list_price_remarks
from coreeval.graph.refresh import refresh_control, refresh_samples
from coreeval.graph.report import gather_findings
from coreeval.graph.run_context import RunContext
from coreeval.graph.run_detectors import ASK
from coreeval.graph.run_origin import open_keeper
from coreeval.graph.setup import check_subset
from coreeval.graph.state import DetectorNode, RunState, RunUpdate
from coreeval.graph.target_questions import iter_arm_chunks, put_to_targets
from coreeval.releases.sample_tables import read_evidence_dates
from coreeval.runs.arms import shard_name, write_arms, write_control
from coreeval.runs.card import write_card
from coreeval.schema import BadRow
from coreeval.tools.formatting import format_quantity
from coreeval.tools.stores.run_tables import ReleaseSample

KEEP_BATCH = 200


def plan_samples(run: RunContext) -> RunUpdate:
    """Read the benchmark into the run store, once."""
    if run.store.total() == 0 and not run.store.bad_rows():  # all may have been taken down
        run.tell("plan")
        _read_benchmark(run)
        for note in run.current_manifest().notes:
            run.tell("plan", note=note)
    for note in (*run.setup.remarks, *list_price_remarks(run.config, run.now().date())):
        run.tell("plan", note=note)
    return RunUpdate(planned=run.store.total(), bad_rows=len(run.store.bad_rows()))


def _read_benchmark(run: RunContext) -> None:
    """Store the samples, with the results that are kept from the previous release."""
    rows, chosen = iter_benchmark(run.config.dataset, run.task), run.manifest.subset
    if chosen:
        ids = check_subset(run.setup, chosen)
        rows = (row for row in rows if isinstance(row, BadRow) or row.id in ids)
    parent = run.manifest.parent
    if parent is None:
        run.store.add_samples(rows, limit=run.manifest.limit)
        return
    keeper = open_keeper(parent, run.setup, run.workspace)
    run.store.add_samples(keeper.iter_rows(rows), limit=run.manifest.limit)
    run.tell("plan", note=keeper.describe(parent))


def _keep_unrenewed(run: RunContext) -> None:
    """Restore stale samples from the release if their renewal found nothing newer.

    Raises:
        ReleaseError: the release no longer exists, or was edited.
    """
    parent = run.manifest.parent
    if parent is None or parent.stale_after is None or run.manifest.cassette:
        return
    dates, again = read_evidence_dates(run.store), list[ReleaseSample]()
    keeper = open_keeper(parent, run.setup, run.workspace)
    for ended in run.store.sample_results():
        newest = dates[ended.sample.id][1] if ended.sample.id in dates else None
        if kept := keeper.keep_again(ended, newest):
            again.append(kept)
    for start in range(0, len(again), KEEP_BATCH):
        run.store.keep(again[start : start + KEEP_BATCH])
    if again:
        one = format_quantity(len(again), "sample was", "samples were")
        run.tell(
            "assemble",
            note=f"{one} kept although stale, because no news newer than the old evidence was "
            "found",
        )


def assemble_arms(run: RunContext) -> RunUpdate:
    """Write the arms, their provenance and the dataset card."""
    done = run.store.stage("assemble")
    if done is None or not _has_arms(run, done):
        run.tell("assemble")
        _keep_unrenewed(run)
        done = write_arms(
            run.store,
            run.task,
            run.files.dataset,
            split=run.config.dataset.split,
            on_reject=run.config.run.on_reject,
        )
        if run.control:
            done["control"] = write_control(
                run.control.store, run.task, run.files.dataset, split=run.config.dataset.split
            )
        write_card(run.files.dataset, run.task, run.config, run.current_manifest(), done)
        run.store.finish_stage("assemble", done)
    return RunUpdate(assembled=done)


def _has_arms(run: RunContext, arms: Iterable[str]) -> bool:
    """Return whether the files of a finished stage still exist: a takedown may delete them."""
    folder, shard = run.files.dataset, shard_name(run.config.dataset.split)
    files = (folder / "README.md", *(folder / arm / shard for arm in arms))
    return all(path.exists() for path in files)


def report_run(run: RunContext) -> RunUpdate:
    """Write the report; it is the last stage, so a run is complete when it is done."""
    from coreeval.evaluation.comparability.rows import read_comparability
    from coreeval.evaluation.report.report_document import write_report

    written = run.files.report_json.exists() and run.files.report_html.exists()
    if run.store.stage("report") is None or not written:
        run.tell("report")
        found = gather_findings(run)
        write_report(found, run.files)
        _write_card_again(run, read_comparability({"comparability": found.comparability}))
        run.store.finish_stage("report", {})
    return RunUpdate(report=str(run.files.report_html))


def _write_card_again(run: RunContext, comparability: Comparability | None) -> None:
    """Write the dataset card with the report's comparability of the arms."""
    rows, manifest = run.store.stage("assemble") or {}, run.current_manifest()
    write_card(run.files.dataset, run.task, run.config, manifest, rows, comparability=comparability)


async def evaluate_targets(run: RunContext) -> list[str]:
    """Ask the targets about every arm and store the answers; return the targets that were asked.

    Raises:
        CoreEvalError: a target cannot be used, or left questions without an answer.
    """
    done = await asyncio.to_thread(run.store.stage, "evaluate")
    if done is None:
        done = await put_to_targets(run, "evaluate", run.label_targets, iter_arm_chunks)
    return list(done["targets"])


class RunNode(Protocol):
    """A node of the run graph."""

    async def __call__(self, state: RunState) -> RunUpdate:
        """Run the node and return its update of the state."""


class RunNodes:
    """The node functions, bound to one run."""

    def __init__(self, run: RunContext) -> None:
        self._run = run

    async def plan(self, state: RunState) -> RunUpdate:
        """Read the benchmark into the run store, once."""
        return await asyncio.to_thread(plan_samples, self._run)

    async def refresh(self, state: RunState) -> RunUpdate:
        """Bring every sample that has no outcome to one."""
        counts = await asyncio.to_thread(self._run.counts)
        if counts["pending"]:
            await refresh_samples(self._run)
            counts = await asyncio.to_thread(self._run.counts)
        return RunUpdate(pending=counts["pending"], counts=counts)

    async def control(self, state: RunState) -> RunUpdate:
        """Refresh every sample again, with the news of the control window."""
        left = await refresh_control(self._run)
        return RunUpdate(control_pending=left)

    async def assemble(self, state: RunState) -> RunUpdate:
        """Write the arms, their provenance and the dataset card."""
        return await asyncio.to_thread(assemble_arms, self._run)

    async def evaluate(self, state: RunState) -> RunUpdate:
        """Ask the targets about the arms."""
        asked = await evaluate_targets(self._run)
        return RunUpdate(asked={"evaluate": asked}, stopped=self._run.stop.asked)

    def detector(self, name: DetectorNode) -> RunNode:
        """Return the node that asks the targets a detector's questions."""

        async def ask(state: RunState) -> RunUpdate:
            asked = await ASK[name](self._run)
            return RunUpdate(asked={name: asked}, stopped=self._run.stop.asked)

        return ask

    async def report(self, state: RunState) -> RunUpdate:
        """Write the report as HTML and JSON."""
        return await asyncio.to_thread(report_run, self._run)
