"""The stages that touch only files: plan, assemble, report; each runs in a thread."""

from coreeval.errors import ReleaseError
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.graph.job import Job
from coreeval.graph.lineage import keeper_of
from coreeval.graph.reporting import gather_findings
from coreeval.graph.state import RunUpdate
from coreeval.releases.arms import write_arms, write_control
from coreeval.releases.card import write_card
from coreeval.releases.sample_rows import evidence_dates
from coreeval.tools.stores.run_records import ReleaseSample

KEPT_AT_A_TIME = 200


def plan(job: Job) -> RunUpdate:
    """Read the benchmark into the run store, once."""
    if job.store.total() == 0 and not job.store.bad_rows():  # all may have been taken down
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


def _keep_what_found_nothing_newer(job: Job) -> None:
    """Put stale samples back as the release has them where their renewal found nothing newer."""
    if job.manifest.parent is None:
        return
    dates, again = evidence_dates(job.store), list[ReleaseSample]()
    try:
        keeper = keeper_of(job.manifest.parent, job.setup)
        for ended in job.store.sample_results():
            newest = dates[ended.sample.id][1] if ended.sample.id in dates else None
            if kept := keeper.kept_again(ended, newest):
                again.append(kept)
    except ReleaseError as error:
        job.tell("assemble", note=f"renewed samples are not compared with the release: {error}")
        return
    for start in range(0, len(again), KEPT_AT_A_TIME):
        job.store.keep(again[start : start + KEPT_AT_A_TIME])
    if again:
        one = "1 sample was" if len(again) == 1 else f"{len(again)} samples were"
        job.tell("assemble", note=f"{one} kept, still stale: nothing newer was found")


def assemble(job: Job) -> RunUpdate:
    """Write the arms, their provenance and the dataset card."""
    done = job.store.stage("assemble")
    if done is None:
        job.tell("assemble")
        _keep_what_found_nothing_newer(job)
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
