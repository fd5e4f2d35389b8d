"""The nodes of the run graph: each looks at what is done, does the rest, and says how much.

The event loop waits for no disk: what reads or writes files runs in a thread. The one exception is
looking up a call by its key, an indexed read that a thread would make twice as dear.
"""

import asyncio

from coreeval.graph import stages
from coreeval.graph.control import refresh_control
from coreeval.graph.detection import compare_splits, evaluate_targets
from coreeval.graph.job import Job
from coreeval.graph.refreshing import refresh_samples
from coreeval.graph.state import RunState, RunUpdate


class RunNodes:
    """The node functions, bound to one run."""

    def __init__(self, job: Job) -> None:
        self._job = job

    async def plan(self, state: RunState) -> RunUpdate:
        """Read the benchmark into the run store, once."""
        return await asyncio.to_thread(stages.plan, self._job)

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
        return await asyncio.to_thread(stages.assemble, self._job)

    async def evaluate(self, state: RunState) -> RunUpdate:
        """Ask the targets about the arms."""
        asked = await evaluate_targets(self._job)
        return RunUpdate(evaluated=asked, stopped=self._job.stop.asked)

    async def pcr(self, state: RunState) -> RunUpdate:
        """Ask them about items of the train split too, where the config says so."""
        asked = await compare_splits(self._job)
        return RunUpdate(compared=asked, stopped=self._job.stop.asked)

    async def numleak(self, state: RunState) -> RunUpdate:
        """Ask them about series, where the config names any."""
        from coreeval.graph.numleak.in_run import audit_series  # for few configs

        audited = await audit_series(self._job)
        return RunUpdate(audited=audited, stopped=self._job.stop.asked)

    async def report(self, state: RunState) -> RunUpdate:
        """Write the report for people and for programs."""
        return await asyncio.to_thread(stages.report, self._job)
