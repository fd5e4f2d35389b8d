"""The nodes of the run graph: each looks at what is done, does the rest, and says how much."""

from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.report import write_report
from coreeval.graph.detection import compare, evaluate_targets
from coreeval.graph.job import Job
from coreeval.graph.refreshing import refresh_samples
from coreeval.graph.state import RunState, RunUpdate
from coreeval.releases.arms import write_arms
from coreeval.releases.card import write_card


class RunNodes:
    """The node functions, bound to one run."""

    def __init__(self, job: Job) -> None:
        self._job = job

    async def plan(self, state: RunState) -> RunUpdate:
        """Read the benchmark into the run store, once."""
        job = self._job
        if job.store.total() == 0:
            job.tell("plan")
            rows = iter_benchmark(job.config.dataset, job.task)
            job.store.add_samples(rows, limit=job.manifest.limit)
        return RunUpdate(planned=job.store.total(), bad_rows=len(job.store.bad_rows()))

    async def refresh(self, state: RunState) -> RunUpdate:
        """Bring every sample that has no outcome to one."""
        job = self._job
        if job.counts()["pending"]:
            job.store.reopen_stages()
            await refresh_samples(job)
        counts = job.counts()
        return RunUpdate(pending=counts["pending"], counts=counts)

    async def assemble(self, state: RunState) -> RunUpdate:
        """Write the arms, their provenance and the dataset card."""
        job = self._job
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
            write_card(job.files.dataset, job.task, job.config, job.current_manifest(), done)
            job.store.finish_stage("assemble", done)
        return RunUpdate(assembled=done)

    async def evaluate(self, state: RunState) -> RunUpdate:
        """Ask the configured targets the arms."""
        job = self._job
        done = job.store.stage("evaluate")
        if done is None and job.config.detect.evaluate and not job.stop.asked:
            done = {"targets": await evaluate_targets(job)}
            job.store.finish_stage("evaluate", done)
        return RunUpdate(evaluated=(done or {}).get("targets", []))

    async def report(self, state: RunState) -> RunUpdate:
        """Write the report for people and for programs."""
        job = self._job
        if job.store.stage("report") is None:
            job.tell("report")
            write_report(
                json_path=job.files.report_json,
                html_path=job.files.report_html,
                manifest=job.current_manifest().model_dump(mode="json"),
                arms=compare(job),
            )
            job.store.finish_stage("report", {})
        return RunUpdate(report=str(job.files.report_html))
