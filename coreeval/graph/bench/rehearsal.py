"""Situations of a benchmark that has not been run: rules play the sample graph up to the role."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coreeval.agents.roles import Team
from coreeval.agents.team import TeamInputs, build_team
from coreeval.config import ModelConfig, ModelsConfig
from coreeval.graph.bench.situations import Missed, Reached, Situation, StandIn, task_for
from coreeval.graph.build import build_sample_graph
from coreeval.graph.job import Job
from coreeval.graph.news import open_news
from coreeval.graph.nodes import END, SampleNodes
from coreeval.graph.refreshing import crew_of
from coreeval.graph.run import first_manifest, source_of
from coreeval.graph.setup import Setup
from coreeval.graph.state import SampleNode, SampleState, SampleUpdate, fresh_sample
from coreeval.graph.threads import STEPS_BEFORE, STEPS_PER_ATTEMPT
from coreeval.graph.work import Surroundings, job_of
from coreeval.schema import RoleName, Sample, Task
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import RunFiles, Workspace

BESIDE: Mapping[RoleName, tuple[str, SampleUpdate]] = {
    "rewriter": ("retrieve", SampleUpdate(route=END)),
    "replacer": ("judge_semantic", SampleUpdate()),
}
"""The node that runs beside a role's own and what stands for it: nothing may be in flight, such as
a search for news, when the graph is stopped."""


class FirstLook:
    """Situations of the two roles that are shown nothing but the sample."""

    def __init__(self, setup: Setup, role: RoleName) -> None:
        self._setup, self._role = setup, role

    async def situation(self, sample: Sample) -> Situation:
        """Return the sample, or for the label judge its texts alone."""
        given: Mapping[str, Any] = (
            {"sample": sample} if self._role == "extractor" else {"fields": sample.fields}
        )
        task = task_for(self._setup, sample)
        return Situation(role=self._role, sample=sample, task=task, given=given)


class Rehearsal:
    """The sample graph with rules in all roles but one, which is only listened to.

    Args:
        setup: The benchmark and its news; its models are not looked at.
        role: The role whose first call is caught.
        config: The file that the setup was read from.
        workspace: Where the news lies ready for searching, or is made so.
    """

    def __init__(self, setup: Setup, role: RoleName, config: Path, workspace: Workspace) -> None:
        self._setup, self._role = setup, role
        self._stack = ExitStack()
        try:
            self._job = self._open_job(config, workspace)
            self._graph = self._open_graph(workspace)
        except BaseException:
            self._stack.close()
            raise

    def close(self) -> None:
        """Let go of the news and of what was written meanwhile."""
        self._stack.close()

    async def situation(self, sample: Sample) -> Situation | Missed:
        """Play one sample until the role is called for the first time."""
        self._job.store.add_samples([sample])
        limit = STEPS_BEFORE + STEPS_PER_ATTEMPT * self._job.config.run.max_attempts
        try:
            ended = await self._graph.ainvoke(fresh_sample(sample.id), {"recursion_limit": limit})
        except Reached as reached:
            task = task_for(self._setup, sample)
            return Situation(role=self._role, sample=sample, task=task, given=reached.given)
        why = f"with rules it ends before as {ended['outcome']}: {ended.get('reason', '')}"
        return Missed(sample_id=sample.id, reason=why.rstrip(": "))

    def _open_job(self, config: Path, workspace: Workspace) -> Job:
        folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="coreeval-bench-")))
        rules = ModelsConfig(default=ModelConfig(model="offline"))
        setup = replace(self._setup, config=self._setup.config.model_copy(update={"models": rules}))
        files = RunFiles(folder)
        manifest = first_manifest(setup, workspace, files, source_of(config), limit=None)
        job = job_of(setup, manifest, files, workspace, Surroundings(hire=self._hire))
        self._stack.callback(job.close)
        return job

    def _open_graph(self, workspace: Workspace) -> Any:  # noqa: ANN401 - LangGraph's own type
        knowledge = open_news(self._job.setup, workspace)
        self._stack.callback(knowledge.close)
        calls = open_calls(self._job.files.root / "calls.db")
        self._stack.callback(calls.close)
        crew = crew_of(self._job, knowledge, calls)
        return build_sample_graph(SampleNodes(crew), self._wrap).compile()

    def _hire(self, task: Task, materials: TeamInputs) -> Team:
        caught: Mapping[str, Any] = {self._role: StandIn(self._role)}
        return replace(build_team(task, materials), **caught)

    def _wrap(self, name: str, node: SampleNode) -> SampleNode:
        left_out, update = BESIDE.get(self._role, ("", SampleUpdate()))
        if name != left_out:
            return node

        async def nothing(state: SampleState) -> SampleUpdate:
            return update

        return nothing
