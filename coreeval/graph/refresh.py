"""The refresh stage: runs samples in a pool, with one request for all news of a remote source.

The control pass refreshes the same samples again, with news that every target may have seen
(docs/run.md). It has its own store and checkpoints under `RUN/control` and shares the calls, payer
and budget of the run, so calls that both passes make, such as extraction and rewording, are paid
for once.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from coreeval.agents.events import Similarity
from coreeval.agents.team import TeamInputs, build_team, find_foreign_players
from coreeval.config.models import OWN_CODE
from coreeval.errors import KnowledgeError
from coreeval.graph.batch_rounds import BatchRunner
from coreeval.graph.event_offers import EventOffers
from coreeval.graph.inputs import FILE_INPUTS, NewsSources, describe_news, open_embedder
from coreeval.graph.label_batches import LabelBatches
from coreeval.graph.monitor import Progress
from coreeval.graph.news_search import find_news
from coreeval.graph.node_context import NodeContext, Retrieve, TaskTeam
from coreeval.graph.phases import InProcessRunner, PhaseResult, PhaseRunner, open_sample_work
from coreeval.graph.ray_workers import open_actors
from coreeval.graph.run_context import RunContext
from coreeval.graph.run_origin import open_keeper
from coreeval.graph.sample_groups import group_samples
from coreeval.graph.setup import Setup, check_models
from coreeval.graph.window import CONTROL_KEY
from coreeval.graph.worker_handles import WorkerHandle, build_processes
from coreeval.graph.worker_pool import WorkerPool
from coreeval.graph.worker_shares import refuse_network_filesystem
from coreeval.models import open_model_pool
from coreeval.models.budget import SHARED_PATIENCE_S
from coreeval.runs.manifest import ControlPass, write_manifest
from coreeval.schema import Sample, Task
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.stores.call_store import CallStore, describe_damage, open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.trust import load_trusted_endpoints

if TYPE_CHECKING:
    from coreeval.tools.embeddings import Embedder


async def refresh_samples(run: RunContext) -> None:
    """Bring every open sample to an outcome; return early if the run is stopped.

    Raises:
        CoreEvalError: something that no sample could survive, such as a refused key.
    """
    async with AsyncExitStack() as stack:
        pending, counts = await asyncio.to_thread(_open_samples, run)
        opening = _open_workers if run.config.run.has_workers else _open_in_process
        retrieve, runner = await opening(run, stack)
        if run.batching:
            runner = BatchRunner(run, runner)
        if isinstance(retrieve, EventOffers):
            await find_news(run, retrieve, runner, pending)
            if run.config.knowledge.text == "article" and not run.stop.asked:
                await _read_articles(run, retrieve.similarity)
            pending, counts = await asyncio.to_thread(_open_samples, run)
        total = len(pending) + counts.total()

        def tell() -> None:
            done = counts.total()
            run.watch(Progress(stage=run.stage, done=done, total=total, counts=dict(counts)))

        def count(result: PhaseResult) -> None:
            counts.update([result.outcome] if result.outcome else [])
            tell()

        tell()
        if not run.stop.asked:
            await runner.run("finish", pending, count)


async def _open_in_process(run: RunContext, stack: AsyncExitStack) -> tuple[Retrieve, PhaseRunner]:
    """Open news, models and stores in this process; the stack closes them."""
    context = await asyncio.to_thread(open_node_context, run, stack)
    return context.retrieve, InProcessRunner(run, await open_sample_work(run, context, stack))


async def _open_workers(run: RunContext, stack: AsyncExitStack) -> tuple[Retrieve, PhaseRunner]:
    """Start workers, and meanwhile open only the news in this process; the stack closes both."""
    if (run.hire, run.inputs) != (build_team, FILE_INPUTS):
        raise ValueError("a custom team or custom inputs cannot be used in other processes")
    settings = run.config.run
    if settings.store == "sqlite":
        refuse_network_filesystem(run.files.root)
    groups = await asyncio.to_thread(group_samples, run.before or run.store, settings)
    workers: Sequence[WorkerHandle]
    if settings.engine == "ray":
        workers = await stack.enter_async_context(open_actors(run))
    else:
        workers = build_processes(run)
    runner = await stack.enter_async_context(WorkerPool(run, groups, workers))
    return await asyncio.to_thread(_open_retrieve, run, stack), runner


def _open_retrieve(run: RunContext, stack: AsyncExitStack) -> Retrieve:
    """Open the news of a pass; the stack closes it."""
    knowledge = run.inputs.news(run)
    stack.push_async_callback(asyncio.to_thread, knowledge.close)
    embeds = stack.enter_context(open_embedder(run.config, run.workspace))
    return run.inputs.retrieve(run, knowledge, embeds)


async def _read_articles(run: RunContext, similarity: Similarity | None) -> None:
    """Keep the passages of articles that samples are shown.

    Raises:
        UsageError: a package of the extra `articles` is missing, or a file cannot be read.
    """
    from coreeval.graph.event_texts import EventTexts  # needed by few configs
    from coreeval.tools.articles.sources import open_articles

    chosen, takedown = run.config.knowledge, run.setup.rules.takedown
    async with open_articles(
        chosen.articles,
        chosen.text,
        run.workspace.cache,
        refuses=lambda text: any(takedown.names_in(text)),
    ) as texts:
        wanted = EventTexts(
            store=run.store,
            texts=texts,
            offered=chosen.candidates,
            watch=run.watch,
            similarity=similarity,
        )
        await wanted.keep_passages()


def _open_samples(run: RunContext) -> tuple[list[str], Counter[str]]:
    """Reopen later stages; return the samples without an outcome and the counts of the others."""
    check_models(run.setup, run.workspace, prices=run.prices)
    run.store.reopen_stages()
    return run.store.pending(), Counter(run.store.counts())


def open_node_context(run: RunContext, stack: AsyncExitStack) -> NodeContext:
    """Open news and calls, and return the nodes' context; the stack closes them."""
    knowledge = run.inputs.news(run)
    stack.push_async_callback(asyncio.to_thread, knowledge.close)
    calls = open_calls(run.workspace.calls, run.payer)
    stack.push_async_callback(asyncio.to_thread, calls.close)
    stack.callback(_tell_notes, run, calls)
    embeds = stack.enter_context(open_embedder(run.config, run.workspace))
    return build_node_context(run, knowledge, calls, embeds)


def _tell_notes(run: RunContext, calls: CallStore) -> None:
    if note := describe_damage(calls.corrupt_found):
        run.tell(run.stage, note=note)
    run.tell_counts(run.stage)


def build_node_context(
    run: RunContext,
    knowledge: KnowledgeSource,
    calls: CallStore,
    embeds: "Embedder | None" = None,
) -> NodeContext:
    """Return the context that the sample graph's nodes work with."""
    window = run.setup.window
    materials = TeamInputs(
        models=run.config.models,
        run=run.config.run,
        prompts=run.setup.prompts,
        exchange=open_model_pool(
            run.config,
            calls,
            prices=run.prices,
            trusted=load_trusted_endpoints(run.workspace),
            active_calls=run.active_calls,
            patience_s=SHARED_PATIENCE_S if run.is_worker else 0.0,
            batching=run.batching,
        ),
        names=knowledge.names(window) if run.config.models.rule_based_roles else (),
        train=run.inputs.train(run),
    )
    return NodeContext(
        find_team=_build_teams(run, materials),
        knowledge=knowledge,
        retrieve=run.inputs.retrieve(run, knowledge, embeds),
        window=window,
        store=run.store,
        rules=run.setup.rules,
        max_attempts=run.config.run.max_attempts,
        label_batches=LabelBatches(run.before or run.store, run.config.run.label_batch),
        writes_semantic="semantic" in run.config.run.arms,
        reads_articles=run.config.knowledge.text == "article",
        documents=run.config.knowledge.documents,
        newest=_find_newest_dates(run),
    )


def _find_newest_dates(run: RunContext) -> dict[str, datetime]:
    """Return by sample the date that news must be newer than, if only its age makes it stale.

    Raises:
        ReleaseError: the release no longer exists, or was edited.
    """
    parent = run.manifest.parent
    if parent is None or parent.stale_after is None or run.before or run.manifest.cassette:
        return {}
    found = dict[str, datetime]()
    keeper = open_keeper(parent, run.setup, run.workspace)
    for sample_id in run.store.pending():
        if newest := keeper.newest_evidence(run.store.sample(sample_id)):
            found[sample_id] = newest
    return found


def _build_teams(run: RunContext, materials: TeamInputs) -> Callable[[Sample], TaskTeam]:
    """Return the function that finds a sample's task and team.

    A team for each stance target is built at the start; for samples with fields that the task does
    not declare, such as options, a team is built when the first of them is processed.
    """

    def hire(task: Task) -> TaskTeam:
        team = run.hire(task, materials)
        foreign = find_foreign_players(team)
        run.foreign_players.update({role: f"{OWN_CODE}:{foreign[role]}" for role in foreign})
        return TaskTeam(task=task, team=team)

    parts = {(task.target, task.fields): hire(task) for task in run.tasks()}
    if run.foreign_players and run.before is None:  # watchers see them meanwhile
        write_manifest(run.files.manifest, run.running_manifest())

    def find(sample: Sample) -> TaskTeam:
        task = run.load_task_of(sample)
        key = task.target, task.fields
        if key not in parts:
            parts[key] = hire(task)
        return parts[key]

    return find


def build_control_setup(setup: Setup) -> Setup:
    """Return the setup of the second pass.

    Raises:
        ValueError: the config has no second pass.
    """
    if setup.control is None:
        raise ValueError("the config has no control window")
    return replace(setup, window=setup.control, window_start=None)


def describe_control(setup: Setup, news: NewsSources) -> ControlPass | None:
    """Return the manifest entry of the second pass when a run starts; None without one.

    Raises:
        KnowledgeError: there is no news in its window.
    """
    if setup.control is None:
        return None
    found = describe_news(build_control_setup(setup), news)
    if found.coverage.articles == 0:
        raise KnowledgeError(
            f"there is no news from {setup.control.start:%Y-%m-%d} to {setup.control.end:%Y-%m-%d}",
            where=CONTROL_KEY,
            hint="download it: coreeval gdelt sync --since DAY --until DAY; or move the window",
        )
    return ControlPass(window=setup.control, knowledge=found)


def add_control(run: RunContext, store: RunStore) -> RunContext:
    """Return a run with its second pass, which shares its stop and watchers."""
    second = replace(
        run,
        setup=build_control_setup(run.setup),
        files=run.files.control,
        store=store,
        before=run.store,
        stage="control",
    )
    return replace(run, control=second)


async def refresh_control(run: RunContext) -> int:
    """Bring every sample to an outcome in the second pass; return how many have none, 0 without it.

    Raises:
        CoreEvalError: something that no sample could survive, such as a refused key.
    """
    if run.control is None:
        return 0
    second = replace(run.control, observer=run.observer)
    if await asyncio.to_thread(_open_control_samples, second, run.store):
        await asyncio.to_thread(run.store.reopen_stages)
        await refresh_samples(second)
    return len(await asyncio.to_thread(second.store.pending))


def _open_control_samples(second: RunContext, first: RunStore) -> int:
    """Add the samples of the first pass, once; return the number without an outcome."""
    if second.store.total() == 0:
        second.store.add_samples(ended.sample for ended in first.sample_results())
    return len(second.store.pending())
