"""The sample graph for texts of a caller's own, alone or inside the caller's graph.

A text is processed by the nodes, stores and limits of a run, with its own run store in a temporary
folder. Calls are stored in the workspace's call store and made only once.
"""

import asyncio
import hashlib
import json
import shutil
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Final, NotRequired, cast
from weakref import WeakKeyDictionary, finalize

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import Field
from typing_extensions import TypedDict

from coreeval.config import ConfigLike, LoadedConfig, read_config
from coreeval.config.run import DetectConfig
from coreeval.errors import ConfigError, CoreEvalError, DatasetError, UsageError
from coreeval.evaluation.benchmarks.rows import SourceRow, make_checker
from coreeval.graph.build import build_sample_graph
from coreeval.graph.event_offers import EventOffers
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks, build_run_context
from coreeval.graph.inputs import open_embedder, open_news
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.recorder import build_recorder
from coreeval.graph.refresh import build_node_context
from coreeval.graph.run import build_manifest, describe_source
from coreeval.graph.run_context import RunContext
from coreeval.graph.setup import check_models, load_rules, set_up
from coreeval.graph.state import SampleState, start_sample
from coreeval.graph.threads import (
    SampleApp,
    build_failure,
    conclude_sample,
    limit_steps,
)
from coreeval.models import close_models
from coreeval.models.activity import limit_sample_time
from coreeval.models.running_steps import track_steps
from coreeval.models.sample_cost import limit_sample_cost
from coreeval.runs.arms import fact_rows
from coreeval.runs.history import SampleHistory, read_sample_history
from coreeval.schema import BadRow, Result, Sample, Verdict
from coreeval.tasks import ALL_TARGETS
from coreeval.tools.env_file import hold_env_file, read_env_file
from coreeval.tools.stores.call_store import CallStore, create_calls, open_calls
from coreeval.tools.workspace import RunFiles, workspace_for

WHERE: Final = "coreeval.sample_graph"
SPLIT: Final = "own"
"""The split of a caller's texts, and part of their ids."""
_FILE: Final = "test.jsonl"
_ID_DIGITS: Final = 12

SampleText = str | dict[str, str]
"""The text of a sample; of a task with several fields, the text of each."""


class SampleGraphInput(TypedDict):
    """The input of the graph."""

    text: Annotated[SampleText, Field(title="Text")]
    """The text, or the text of each field of the task."""
    label: Annotated[str | int, Field(title="Label")]
    """The name or the number of the label; of other kinds of task, what their files have."""
    id: NotRequired[Annotated[str, Field(title="Id")]]
    """A name for the text; by default it is made from the text and the label."""


class AttemptStory(TypedDict):
    """One attempt at a text with new facts."""

    number: int
    text: SampleText | None
    """The text; None if the attempt ended before one was written."""
    verdicts: list[dict[str, object]]
    """What checks and judges said: `name`, `passed` and `reason`."""


class SampleStory(TypedDict):
    """The history of a text."""

    id: str
    text: SampleText
    label: str
    outcome: str
    reason: str
    """Why it was not accepted; empty if it was."""
    original_label: str
    """What the blind judge said about the text: a label, `unclear`, or empty."""
    updated: SampleText | None
    """The text with new facts; None if none was accepted."""
    semantic: SampleText | None
    """The text in other words with the same facts; None if there is none."""
    semantic_status: str
    attempts: list[AttemptStory]
    verdicts: list[dict[str, object]]
    """All verdicts: `name`, `attempt` (0 before the first one), `passed` and `reason`."""
    provenance: list[dict[str, object]]
    """Each replaced fact with the news that supports it, in the columns of a run's provenance."""
    billed_usd: float | None
    """The cost of the calls in US dollars; None if a price is not known."""
    seconds: float


class SampleGraphOutput(TypedDict):
    """The output of the graph."""

    outcome: str
    updated: SampleText | None
    """The text with new facts; None if none was accepted."""
    story: SampleStory


class SampleGraphState(SampleGraphInput, SampleGraphOutput):
    """The state of the graph."""

    sample_id: str
    """The id of the text in the graph's store."""


StoryGraph = CompiledStateGraph[SampleGraphState, None, SampleGraphInput, SampleGraphOutput]


@hold_env_file()
def build_story_graph(
    config: ConfigLike, overrides: Sequence[str] = (), around: RunHooks = DEFAULT_HOOKS
) -> StoryGraph:
    """Return a compiled graph that refreshes texts of the caller's own.

    The graph is asynchronous: call `ainvoke`, `astream` or `abatch`, or add it as a node to a graph
    of which these are called.

    Args:
        config: The path of a YAML config, or a config in memory. A mapping needs no `dataset` and
            no `name`. Settings of targets and batches do not apply.
        overrides: `key.path=value` settings that override the config's.
        around: Clock and team builder.

    Raises:
        UsageError: the config, the task or the news cannot be used, or a variable would be sent to
            an unapproved endpoint (UntrustedEndpoint).
    """
    folder = Path(mkdtemp(prefix="coreeval-graph-"))
    stack = ExitStack()
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    try:
        work = _SampleWork(_open_run(config, overrides, folder, around, stack), stack)
    except BaseException:
        stack.close()
        raise
    builder = StateGraph(
        SampleGraphState, input_schema=SampleGraphInput, output_schema=SampleGraphOutput
    )
    builder.add_node("prepare", work.prepare)
    builder.add_node("refresh", work.refresh)
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", "refresh")
    builder.add_edge("refresh", END)
    graph = builder.compile(name="sample")
    finalize(graph, stack.close)
    return graph


def _open_run(
    config: ConfigLike,
    overrides: Sequence[str],
    folder: Path,
    around: RunHooks,
    stack: ExitStack,
) -> RunContext:
    """Prepare a run of no samples yet in a folder; the stack closes it."""
    given = _read_config(config, overrides, folder)
    read_env_file(given.folder, given.config)
    workspace, files = workspace_for(given.folder), RunFiles(folder / "run")
    setup = set_up(given.config, around.now(), workspace=workspace, base=given.source.parent)
    check_models(setup, workspace)
    source = describe_source(given.source, setup.config, given.overrides)
    manifest = build_manifest(setup, workspace, files, source, limit=None)
    create_calls(workspace.calls, setup.config.run.store)
    files.root.mkdir()
    run = build_run_context(setup, manifest, files, workspace, around)
    stack.callback(run.close)
    return run


def _read_config(config: ConfigLike, overrides: Sequence[str], folder: Path) -> LoadedConfig:
    """Return a config without what applies only to the samples of a benchmark."""
    if isinstance(config, Mapping):
        (folder / _FILE).touch()
        usual = {"name": SPLIT, "dataset": {"format": "jsonl", "path": str(folder / _FILE)}}
        config = {**usual, **config}
    given = read_config(config, overrides)
    own = given.config
    if own.knowledge.text == "article":
        raise ConfigError(
            "articles are only read in a run",
            where="knowledge.text",
            hint="set text: description for the sample graph",
        )
    if own.dataset.target == ALL_TARGETS:
        raise ConfigError(
            "the config has several targets",
            where="dataset.target",
            hint="name the target that the texts are about",
        )
    alone = {"label_batch": 1, "batch": None, "control_window": None}
    changes = {
        "run": own.run.model_copy(update=alone),
        "detect": DetectConfig(evaluate=False),
    }
    return replace(given, config=own.model_copy(update=changes))


_WORKING: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
"""The number of texts that the graphs of a loop are working on."""


@asynccontextmanager
async def _hold_models() -> AsyncIterator[None]:
    """Keep connections to models open while a text in this loop needs them.

    The caller of a graph has nothing to close, and connections must not outlive their loop.
    """
    loop = asyncio.get_running_loop()
    _WORKING[loop] = _WORKING.get(loop, 0) + 1
    try:
        yield
    finally:
        _WORKING[loop] -= 1
        if not _WORKING[loop]:
            await close_models()


class _SampleWork:
    """The nodes of the graph, and their context.

    Args:
        run: The run that the texts are samples of.
        stack: Closes what is opened.
    """

    def __init__(self, run: RunContext, stack: ExitStack) -> None:
        self._calls: CallStore = open_calls(run.workspace.calls, run.payer)
        stack.callback(self._calls.close)
        # a takedown lists its names and then refuses an open call store, so this list has them all
        rules = load_rules(run.config, run.workspace)
        self._run = run = replace(run, setup=replace(run.setup, rules=rules))
        news = open_news(run.setup, run.workspace, run)
        stack.callback(news.close)
        embeds = stack.enter_context(open_embedder(run.config, run.workspace))
        context = build_node_context(run, news, self._calls, embeds)
        if isinstance(context.retrieve, EventOffers) and context.retrieve.nearest:
            context.retrieve.nearest.embed(lambda done, total: True)
        wrap = build_recorder(run.store, run.monitor.in_flight, run.now, run.payer)
        self._app: SampleApp = build_sample_graph(SampleNodes(context), wrap).compile()
        self._adding = threading.Lock()

    async def prepare(self, state: SampleGraphInput) -> dict[str, str]:
        """Check the text and add it to the samples.

        Raises:
            DatasetError: the text is not a sample of the task.
            UsageError: its id belongs to another text.
        """
        sample = self._read_sample(state)
        await asyncio.to_thread(self._add_sample, sample)
        return {"sample_id": sample.id}

    async def refresh(self, state: SampleGraphState) -> SampleGraphOutput:
        """Bring the text to its outcome, unless it has one.

        Raises:
            CoreEvalError: an error that would affect every other text, too.
        """
        store, sample_id = self._run.store, state["sample_id"]
        result = await asyncio.to_thread(store.result, sample_id)
        if result is None:
            async with _hold_models():
                result = await self._finish(sample_id)
            await store.history.flush_steps()
            await store.commit(result)
        story = await asyncio.to_thread(self._tell_story, sample_id)
        return SampleGraphOutput(outcome=story["outcome"], updated=story["updated"], story=story)

    def _read_sample(self, state: SampleGraphInput) -> Sample:
        """Return the input as a sample of the task."""
        task, given = self._run.task, state.get("text", "")
        fields = given if isinstance(given, Mapping) else {task.shown_fields[0]: given}
        values: dict[str, object] = {**fields, "label": state.get("label")}
        raw = json.dumps(values, ensure_ascii=False, default=str)
        digest = hashlib.sha256(raw.encode("utf-8", "replace")).hexdigest()[:_ID_DIGITS]
        row = SourceRow(
            file=WHERE,
            line=1,
            number=1,
            values=values,
            id=str(state.get("id") or f"{task.name}/{SPLIT}/{digest}"),
            raw=raw,
        )
        found = make_checker(task, SPLIT)(row)
        if isinstance(found, BadRow):
            raise DatasetError(
                f"the text is not a sample of the task {task.name}: {found.reason}",
                where=WHERE,
                hint=f"provide text ({', '.join(task.fields)}) and label",
            )
        return found

    def _add_sample(self, sample: Sample) -> None:
        """Store a sample; one that failed before is open again."""
        store = self._run.store
        with self._adding:
            try:
                known = store.sample(sample.id)
            except KeyError:
                store.add_samples([sample])
                return
            if known != sample:
                raise UsageError(
                    f"the id {sample.id!r} belongs to another text",
                    where=WHERE,
                    hint="use a different id for each text, or none",
                )
            result = store.result(sample.id)
            if result is not None and result.outcome == "failed":
                store.forget("failed")

    async def _finish(self, sample_id: str) -> Result:
        """Run the nodes of a sample as a graph inside this one, and return its result."""
        run, state = self._run, start_sample(sample_id)
        settings = run.config.run
        config: RunnableConfig = {"recursion_limit": limit_steps(settings.max_attempts)}
        try:
            async with limit_sample_time(settings.sample_timeout_s):
                with track_steps(), limit_sample_cost(settings.max_usd_per_sample):
                    async for reached in self._app.astream(
                        start_sample(sample_id), config, stream_mode="values"
                    ):
                        state = cast("SampleState", reached)
            return await conclude_sample(state, run.store, run.setup.target_dates)
        except (CoreEvalError, GraphBubbleUp):
            raise
        except Exception as error:  # noqa: BLE001 - a text that fails has an outcome as well
            return build_failure(state, error, settings.sample_timeout_s)
        finally:
            run.monitor.in_flight.leave(sample_id)

    def _tell_story(self, sample_id: str) -> SampleStory:
        run = self._run
        history = read_sample_history(
            run.store, self._calls, sample_id, prompts=run.manifest.prompts
        )
        return _build_story(history, list(fact_rows(run.store, sample_id)))


def _build_story(history: SampleHistory, provenance: list[dict[str, object]]) -> SampleStory:
    sample, result = history.sample, cast("Result", history.result)
    accepted = result.outcome == "accepted"
    return SampleStory(
        id=sample.id,
        text=_show_text(sample, sample.fields),
        label=sample.label_text,
        outcome=result.outcome,
        reason=result.reason,
        original_label=result.original_label,
        updated=_show_text(sample, result.updated) if accepted and result.updated else None,
        semantic=_show_text(sample, result.semantic) if result.semantic else None,
        semantic_status=result.semantic_status,
        attempts=[
            AttemptStory(
                number=each.number,
                text=_show_text(sample, each.text) if each.text else None,
                verdicts=[_dump_verdict(verdict) for verdict in each.verdicts],
            )
            for each in history.attempts
        ],
        verdicts=[
            {**_dump_verdict(verdict), "attempt": verdict.attempt}
            for step in history.steps
            for verdict in step.verdicts
        ],
        provenance=provenance,
        billed_usd=history.billed_usd,
        seconds=history.seconds,
    )


def _dump_verdict(verdict: Verdict) -> dict[str, object]:
    return {"name": verdict.name, "passed": verdict.passed, "reason": verdict.reason}


def _show_text(sample: Sample, fields: Mapping[str, str]) -> SampleText:
    """Return texts in the form of the input: a string if the sample has one field."""
    return dict(fields) if len(sample.fields) > 1 else next(iter(fields.values()))
