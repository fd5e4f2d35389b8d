"""Finds the input of a role for a sample.

Inputs come from the records of a run, or from a dry run with rules in the other roles.

In a run, the last attempt at a sample is used.

The call of a role is intercepted with its arguments; its messages and answer schema are those that
would be sent.
"""

import difflib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar, cast, get_type_hints

from pydantic import BaseModel

from coreeval.agents.llm_role import LLMRole
from coreeval.agents.roles import Team
from coreeval.agents.team import TeamInputs, build_team, llm_roles
from coreeval.config import ROLES, ModelConfig, ModelsConfig
from coreeval.errors import RunStateError, UsageError
from coreeval.graph.build import build_sample_graph
from coreeval.graph.execute import RunHooks, build_run_context
from coreeval.graph.inputs import open_embedder, open_news
from coreeval.graph.node_context import NodeContext, TaskTeam
from coreeval.graph.nodes import END, SampleNodes
from coreeval.graph.refresh import build_node_context
from coreeval.graph.run import build_manifest, describe_source
from coreeval.graph.run_context import RunContext
from coreeval.graph.setup import Setup
from coreeval.graph.state import SampleNode, SampleState, SampleUpdate, start_sample
from coreeval.graph.threads import STEPS_BEFORE, STEPS_PER_ATTEMPT
from coreeval.models import ModelClient, OutputSchema
from coreeval.models.client import accept_any
from coreeval.prompts import Message, PromptName, PromptSet
from coreeval.schema import RoleName, Sample, Task
from coreeval.tasks import ALL_TARGETS, adapt_task, load_task
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.places import has_store
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, StepRecord
from coreeval.tools.workspace import RunFiles, Workspace

_SIGNATURES = {
    role: inspect.signature(protocol.__call__)
    for role, protocol in get_type_hints(Team).items()
    if role in ROLES
}


@dataclass(frozen=True, kw_only=True)
class RoleInput:
    """The input of a role for one sample."""

    role: RoleName
    sample: Sample
    task: Task
    given: Mapping[str, Any]
    """The arguments of the call, by parameter name."""
    calls: tuple[CallRow, ...] = ()
    """The model calls of the recorded step that the input is from."""
    player: type[LLMRole]
    """The class with which a model plays the role."""

    @property
    def prompt_name(self) -> PromptName:
        """Return the name of the prompt that the role uses."""
        return self.player.prompt_name(self.task)


@dataclass(frozen=True, kw_only=True)
class SkippedSample:
    """A sample for which the role is not asked."""

    sample_id: str
    reason: str


class RoleReached(Exception):
    """Raised by the stand-in when it is called instead of the role."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__("the role was reached")
        self.given = given


class RoleProbe:
    """A stand-in for a role that raises its arguments."""

    def __init__(self, role: RoleName) -> None:
        self._signature = _SIGNATURES[role]

    async def __call__(self, *values: object, **named: object) -> Any:  # noqa: ANN401 - see Team
        """Raise Reached with the arguments by name."""
        bound = self._signature.bind(self, *values, **named)
        bound.apply_defaults()
        given = dict(bound.arguments)
        del given["self"]
        raise RoleReached(given)


class RoleInputSource(Protocol):
    """A source of inputs for a role."""

    async def situation(self, sample: Sample) -> RoleInput | SkippedSample:
        """Return the role's input for a sample, or the reason that it is not asked."""
        ...


def parse_role(name: str) -> RoleName:
    """Return the role with this name.

    Raises:
        UsageError: the role does not exist.
    """
    for role in ROLES:
        if role == name:
            return role
    raise UsageError(f"there is no role {name!r}", hint=suggest_names(name, ROLES))


def suggest_names(word: str, known: Sequence[str]) -> str:
    """Return a hint with the most similar known word, or with the first few if none is similar.

    Sample ids share a long prefix, so an id with the same last part is preferred.
    """
    last = word.rpartition("/")[2]
    same_end = [each for each in known if each.rpartition("/")[2] == last]
    near = same_end[:1] or difflib.get_close_matches(word, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    more = ", …" if len(known) > len(ROLES) else ""
    return f"known: {', '.join(known[: len(ROLES)])}{more}"


def load_sample_task(setup: Setup, sample: Sample) -> Task:
    """Return the task of a sample: with several stance targets, the task of its own target."""
    from coreeval.evaluation.benchmarks import find_target

    if setup.config.dataset.target != ALL_TARGETS:
        return adapt_task(setup.task, sample.fields)
    return load_task(setup.task_file, find_target(sample.id) or "", setup.config.dataset.language)


T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class RoleRequest:
    """One request as a model receives it."""

    messages: tuple[Message, ...]
    schema_name: str
    schema: Mapping[str, object]


class _RequestCaught(Exception):
    """Raised when the role made its request, which is not answered."""

    def __init__(self, shown: RoleRequest) -> None:
        super().__init__("the role has asked")
        self.shown = shown


class _CatchingClient:
    """A model client that captures the request and stops the role there."""

    async def ask(
        self,
        messages: Sequence[Mapping[str, str]],
        output_schema: OutputSchema[T],
        *,
        check: Callable[[T], None] = accept_any,
    ) -> T:
        """Raise the request."""
        said = tuple(dict(message) for message in messages)
        raise _RequestCaught(
            RoleRequest(messages=said, schema_name=output_schema.name, schema=output_schema.schema)
        )


async def render_request(situation: RoleInput, prompts: PromptSet) -> RoleRequest:
    """Return the role's request in a situation.

    Raises:
        UsageError: the role would ask nothing, for example because there is no news.
    """
    observer = cast(ModelClient, _CatchingClient())
    player = situation.player(situation.task, observer, prompts)
    try:
        await cast("Callable[..., object]", player)(**situation.given)  # type: ignore[misc]
    except _RequestCaught as asked:
        return asked.shown
    raise UsageError(
        f"the {situation.role} calls no model here, so there is nothing to test",
        where=situation.sample.id,
    )


def is_as_sent(situation: RoleInput, shown: RoleRequest, calls: Path) -> bool | None:
    """Return whether the run that a situation comes from sent exactly these messages.

    Return None if that is unknown: no model was asked, its calls are gone, or the run asked about
    several texts in one call.
    """
    if not situation.calls or not has_store(calls):
        return None
    store = open_calls(calls)
    try:
        records = [store.get(call.key) for call in situation.calls]
    finally:
        store.close()
    asked = [json.loads(record.request) for record in records if record]
    sent = [one["messages"] for one in asked if one["schema"]["name"] == shown.schema_name]
    return list(shown.messages) in sent if sent else None


NODES_OF_ROLE: Mapping[RoleName, Sequence[str]] = {
    "extractor": ("extract",),
    "replacer": ("replace",),
    "rewriter": ("reword",),
    "composer": ("compose",),
    "fact_judge": ("reflect",),
    "label_judge": ("judge_original", "judge_semantic", "reflect"),
}
"""The nodes that ask each role."""


class RecordedInputs:
    """The inputs from a finished or running run, which is not changed.

    Only the changes of each node are recorded, not its arguments. The state before a step is the
    sum of the earlier steps; the node is replayed from it up to the role's call.
    """

    def __init__(self, store: RunStore, setup: Setup, role: RoleName) -> None:
        self._store, self._setup, self._role = store, setup, role
        stand_ins: dict[str, Any] = {each: _stay_silent for each in ROLES}
        self._team = Team(**(stand_ins | {role: RoleProbe(role)}))
        self._nodes = SampleNodes(
            NodeContext(
                find_team=lambda sample: TaskTeam(
                    task=load_sample_task(setup, sample), team=self._team
                ),
                knowledge=cast(KnowledgeSource, None),  # no role's node searches for news
                retrieve=_stay_silent,
                window=setup.window,
                store=store,
                rules=setup.rules,
                max_attempts=setup.config.run.max_attempts,
                writes_semantic="semantic" in setup.config.run.arms,
            )
        )

    def samples(self) -> Iterator[Sample]:
        """Yield the run's samples: finished ones first, then the others."""
        yield from (one.sample for one in self._store.sample_results())
        yield from map(self._store.sample, self._store.pending())

    async def situation(self, sample: Sample) -> RoleInput | SkippedSample:
        """Return the role's last input."""
        steps = self._store.history.steps(sample.id)
        for place, step in reversed(list(enumerate(steps))):
            if step.node not in NODES_OF_ROLE[self._role]:
                continue
            given = await self._replay_step(step, _restore_state(sample, steps[:place]))
            if given is not None:
                task = load_sample_task(self._setup, sample)
                calls = tuple(call for call in step.calls if call.role == self._role)
                return RoleInput(
                    role=self._role,
                    sample=sample,
                    task=task,
                    given=given,
                    calls=calls,
                    player=llm_roles(self._setup.config.run, task)[self._role],
                )
        result = self._store.result(sample.id)
        how = f"the sample ended as {result.outcome}" if result else "the sample has not ended"
        return SkippedSample(
            sample_id=sample.id, reason=f"the run did not call the {self._role}: {how}"
        )

    async def _replay_step(self, step: StepRecord, state: SampleState) -> Mapping[str, Any] | None:
        try:
            await getattr(self._nodes, step.node)(state)
        except RoleReached as reached:
            return reached.given
        except KeyError as error:
            raise RunStateError(
                f"the record of {step.sample_id} lacks {error} before the {step.node} step",
                hint="it was written by another version; refresh again, or omit --run",
            ) from None
        return None


async def _stay_silent(*_values: object, **_named: object) -> Any:  # noqa: ANN401 - for any of them
    """Return nothing, as a substitute for the other role in the node that asks two roles."""


def _restore_state(sample: Sample, steps: Sequence[StepRecord]) -> SampleState:
    state: dict[str, Any] = dict(start_sample(sample.id))
    for step in steps:
        state |= step.detail
    return cast(SampleState, state)


PARALLEL_UPDATES: Mapping[RoleName, tuple[str, SampleUpdate]] = {
    "rewriter": ("retrieve", SampleUpdate(route=END)),
    "replacer": ("judge_semantic", SampleUpdate()),
}
"""The node parallel to a role's own node, with a substitute for its result, so that nothing, such
as a search for news, is in progress when the graph is stopped."""


class FirstRoleInputs:
    """The inputs of the two roles that see only the sample."""

    def __init__(self, setup: Setup, role: RoleName) -> None:
        self._setup, self._role = setup, role

    async def situation(self, sample: Sample) -> RoleInput:
        """Return the sample; for the label judge, only its texts."""
        given: Mapping[str, Any] = (
            {"sample": sample} if self._role == "extractor" else {"fields": sample.fields}
        )
        task = load_sample_task(self._setup, sample)
        player = llm_roles(self._setup.config.run, task)[self._role]
        return RoleInput(role=self._role, sample=sample, task=task, given=given, player=player)


class DryRun:
    """The sample graph with rules in all roles but one, whose first call is captured.

    Args:
        setup: The benchmark and its news; its models are ignored.
        role: The role whose first call is captured.
        config: The file from which the setup was read.
        workspace: The workspace with the search index of the news; it is created if missing.
    """

    def __init__(self, setup: Setup, role: RoleName, config: Path, workspace: Workspace) -> None:
        self._setup, self._role = setup, role
        self._stack = ExitStack()
        try:
            self._run = self._open_job(config, workspace)
            self._graph = self._open_graph(workspace)
        except BaseException:
            self._stack.close()
            raise

    def close(self) -> None:
        """Close the news and delete the temporary files."""
        self._stack.close()

    async def situation(self, sample: Sample) -> RoleInput | SkippedSample:
        """Play one sample until the role is called for the first time."""
        self._run.store.add_samples([sample])
        limit = STEPS_BEFORE + STEPS_PER_ATTEMPT * self._run.config.run.max_attempts
        try:
            ended = await self._graph.ainvoke(start_sample(sample.id), {"recursion_limit": limit})
        except RoleReached as reached:
            task = load_sample_task(self._setup, sample)
            return RoleInput(
                role=self._role,
                sample=sample,
                task=task,
                given=reached.given,
                player=llm_roles(self._setup.config.run, task)[self._role],
            )
        if "outcome" not in ended:  # the rewriter has nothing to reword, so its run ends there
            why = f"with rules, the role is not called: {ended['verdicts'][-1]['reason']}"
            return SkippedSample(sample_id=sample.id, reason=why)
        why = (
            f"with rules, the sample ends earlier as {ended['outcome']}: {ended.get('reason', '')}"
        )
        return SkippedSample(sample_id=sample.id, reason=why.rstrip(": "))

    def _open_job(self, config: Path, workspace: Workspace) -> RunContext:
        folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="coreeval-bench-")))
        rules = ModelsConfig(default=ModelConfig(model="offline"))
        setup = replace(self._setup, config=self._setup.config.model_copy(update={"models": rules}))
        files = RunFiles(folder)
        manifest = build_manifest(
            setup, workspace, files, describe_source(config, setup.config), limit=None
        )
        run = build_run_context(setup, manifest, files, workspace, RunHooks(hire=self._hire))
        self._stack.callback(run.close)
        return run

    def _open_graph(self, workspace: Workspace) -> Any:  # noqa: ANN401 - LangGraph's own type
        knowledge = open_news(self._run.setup, workspace)
        self._stack.callback(knowledge.close)
        calls = open_calls(self._run.files.root / "calls.db")
        self._stack.callback(calls.close)
        embeds = self._stack.enter_context(open_embedder(self._run.config, workspace))
        context = build_node_context(self._run, knowledge, calls, embeds)
        return build_sample_graph(SampleNodes(context), self._wrap).compile()

    def _hire(self, task: Task, materials: TeamInputs) -> Team:
        caught: Mapping[str, Any] = {self._role: RoleProbe(self._role)}
        return replace(build_team(task, materials), **caught)

    def _wrap(self, name: str, node: SampleNode) -> SampleNode:
        left_out, update = PARALLEL_UPDATES.get(self._role, ("", SampleUpdate()))
        if name != left_out:
            return node

        async def nothing(state: SampleState) -> SampleUpdate:
            return update

        return nothing
