"""The stages that touch only files: plan, assemble, report; each runs in a thread."""

from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.graph.job import Job
from coreeval.graph.lineage import keeper_of
from coreeval.graph.reporting import gather_findings
from coreeval.graph.state import RunUpdate
from coreeval.releases.arms import write_arms, write_control
from coreeval.releases.card import write_card


def plan(job: Job) -> RunUpdate:
    """Read the benchmark into the run store, once."""
    if job.store.total() == 0:
        job.tell("plan")
        _read_benchmark(job)
        for note in job.current_manifest().notes:
            job.tell("plan", note=note)
    return RunUpdate(planned=job.store.total(), bad_rows=len(job.store.bad_rows()))


def _read_benchmark(job: Job) -> None:
    """Store the samples, with their results where they are kept from the release before."""
    rows = iter_benchmark(job.config.dataset, job.task)
    parent = job.manifest.parent
    if parent is None:
        job.store.add_samples(rows, limit=job.manifest.limit)
        return
    keeper = keeper_of(parent, job.setup)
    job.store.add_samples(keeper.through(rows), limit=job.manifest.limit)
    job.tell("plan", note=keeper.told(parent))


def assemble(job: Job) -> RunUpdate:
    """Write the arms, their provenance and the dataset card."""
    done = job.store.stage("assemble")
    if done is None:
        job.tell("assemble")
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


def report(job: Job) -> RunUpdate:
    """Write the report; it is the last stage, so a run is complete when it is done."""
    from coreeval.evaluation.report.writing import write_report  # a resumed run asks before that

    if job.store.stage("report") is None:
        job.tell("report")
        write_report(gather_findings(job), job.files)
        job.store.finish_stage("report", {})
    return RunUpdate(report=str(job.files.report_html))
