"""The refresh stage: sample threads in a pool, with one request for all news of a remote source.

The control pass takes the same samples once more, with news that every target may have seen
(docs/run.md). It has a store and checkpoints of its own under `RUN/control`, and shares the calls,
payer and budget of the run: what both passes ask, such as extraction and rewording, is paid once.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime

from coreeval.agents.team import TeamInputs
from coreeval.errors import KnowledgeError, ReleaseError
from coreeval.graph.build import build_sample_graph
from coreeval.graph.checkpoints import open_checkpoints
from coreeval.graph.event_offers import REPORTS_PER_QUERY, EventOffers
from coreeval.graph.inputs import NewsSources, describe_news
from coreeval.graph.monitor import Progress
from coreeval.graph.node_context import NodeContext, TaskTeam
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.pool import run_pool
from coreeval.graph.recorder import build_recorder
from coreeval.graph.run_context import RunContext
from coreeval.graph.run_origin import open_keeper
from coreeval.graph.setup import Setup, check_models
from coreeval.graph.state import SampleState
from coreeval.graph.threads import SampleThreads
from coreeval.graph.window import CONTROL_KEY
from coreeval.models import close_models, open_model_pool
from coreeval.runs.manifest import ControlPass
from coreeval.schema import EntityQuery, Result, Sample
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.stores.call_store import CallStore, describe_damage, open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.trust import load_trusted_endpoints


async def find_news(
    job: RunContext,
    context: NodeContext,
    offers: EventOffers,
    threads: SampleThreads,
    pending: Sequence[str],
) -> None:
    """Advance all samples to the point where they look for news, find it, and deal the events.

    A remote source is asked once for the news of all samples; each sample's own search is then
    answered from what came. Returns early if the run is told to stop.

    Raises:
        CoreEvalError: something that no sample could survive.
    """
    nodes, asked = SampleNodes(context), dict[str, EntityQuery]()
    ranks, done = itertools.count(), itertools.count(1)

    async def note_queries(sample_id: str, state: SampleState) -> None:
        asked.update({_query_key(query): query for query in await nodes.build_queries(state)})

    async def search(sample_id: str, state: SampleState) -> None:
        text = await nodes.describe_need(state)
        await offers.search(sample_id, await nodes.build_queries(state), text)

    async def bring(sample_id: str) -> None:
        reached = await threads.to_news(sample_id, next(ranks))
        if reached is not None and not isinstance(reached, Result):
            await (note_queries if context.knowledge.remote else search)(sample_id, reached)
        job.watch(Progress(stage="extract", done=next(done), total=len(pending)))

    concurrency = job.config.run.concurrency
    await run_pool(pending, bring, concurrency=concurrency, stop=job.stop, context=job.context)
    if asked and not job.stop.asked:
        await _gather_news(job, context, list(asked.values()))
        for sample_id in await asyncio.to_thread(job.store.pending):
            reached = await threads.to_news(sample_id)
            if reached is not None and not isinstance(reached, Result):
                await search(sample_id, reached)
    if not job.stop.asked:
        await asyncio.to_thread(offers.deal)


async def _gather_news(job: RunContext, context: NodeContext, asked: Sequence[EntityQuery]) -> None:
    """Ask a remote source for the news of all samples at once."""
    job.tell("gather", total=len(asked))
    numbered = [
        query.model_copy(update={"id": f"g{number}"}) for number, query in enumerate(asked, start=1)
    ]
    await context.knowledge.fetch(numbered, context.window, REPORTS_PER_QUERY)


def _query_key(query: EntityQuery) -> str:
    """Return the key that identifies a query; query ids are only unique within a sample."""
    return query.model_dump_json(exclude={"id"})


async def refresh_samples(job: RunContext) -> None:
    """Bring every open sample to an outcome; return early if the run is told to stop.

    Raises:
        CoreEvalError: something that no sample could survive, such as a refused key.
    """
    async with AsyncExitStack() as stack:
        pending, counts = await asyncio.to_thread(_open_samples, job)
        context = await asyncio.to_thread(open_node_context, job, stack)
        threads = await _open_threads(job, context, stack)
        if isinstance(context.retrieve, EventOffers):
            await find_news(job, context, context.retrieve, threads, pending)
            pending, counts = await asyncio.to_thread(_open_samples, job)
        total = len(pending) + counts.total()

        ranks = itertools.count()

        def tell() -> None:
            done = counts.total()
            job.watch(Progress(stage=job.stage, done=done, total=total, counts=dict(counts)))

        async def work(sample_id: str) -> None:
            outcome = await threads.run(sample_id, next(ranks))
            counts.update([outcome] if outcome else [])
            tell()

        tell()
        at_once = job.config.run.concurrency
        await run_pool(pending, work, concurrency=at_once, stop=job.stop, context=job.context)


def _open_samples(job: RunContext) -> tuple[list[str], Counter[str]]:
    """Reopen later stages; return the samples without an outcome and the counts of the others."""
    check_models(job.setup, job.workspace)
    job.store.reopen_stages()
    return job.store.pending(), Counter(job.store.counts())


async def _open_threads(
    job: RunContext, context: NodeContext, stack: AsyncExitStack
) -> SampleThreads:
    """Open models and checkpoints; the stack closes them."""
    in_flight = job.monitor.in_flight
    stack.push_async_callback(close_models)
    saver = await stack.enter_async_context(open_checkpoints(job.files.checkpoints))
    wrap = build_recorder(job.store, in_flight, job.now, job.payer, job.observer, job.before)
    graph = build_sample_graph(SampleNodes(context), wrap)
    return SampleThreads(
        app=graph.compile(checkpointer=saver),
        saver=saver,
        checkpoints=job.files.checkpoints,
        store=job.store,
        in_flight=in_flight,
        observer=job.observer,
        stop=job.stop,
        prefix=f"{job.manifest.run}:{job.graph_version}",
        max_attempts=job.config.run.max_attempts,
        timeout_s=job.config.run.sample_timeout_s,
        targets=job.setup.target_dates,
    )


def open_node_context(job: RunContext, stack: AsyncExitStack) -> NodeContext:
    """Open news and calls, and return the context that works with them; the stack closes them."""
    knowledge = job.inputs.news(job)
    stack.push_async_callback(asyncio.to_thread, knowledge.close)
    calls = open_calls(job.workspace.calls, job.payer)
    stack.push_async_callback(asyncio.to_thread, calls.close)
    stack.callback(_tell_notes, job, calls)
    return build_node_context(job, knowledge, calls)


def _tell_notes(job: RunContext, calls: CallStore) -> None:
    if note := describe_damage(calls.corrupt_found):
        job.tell(job.stage, note=note)
    job.tell_counts(job.stage)


def build_node_context(
    job: RunContext, knowledge: KnowledgeSource, calls: CallStore
) -> NodeContext:
    """Return the context that the sample graph's nodes work with."""
    window = job.setup.window
    materials = TeamInputs(
        models=job.config.models,
        prompts=job.setup.prompts,
        exchange=open_model_pool(
            job.config,
            calls,
            trusted=load_trusted_endpoints(job.workspace),
            active_calls=job.active_calls,
        ),
        names=knowledge.names(window) if job.config.models.rule_based_roles else (),
        train=job.inputs.train(job),
        seed=job.config.run.seed,
    )
    return NodeContext(
        find_team=_build_teams(job, materials),
        knowledge=knowledge,
        retrieve=job.inputs.retrieve(job, knowledge),
        window=window,
        store=job.store,
        rules=job.setup.rules,
        max_attempts=job.config.run.max_attempts,
        newest=_find_newest_dates(job),
    )


def _find_newest_dates(job: RunContext) -> dict[str, datetime]:
    """Return by sample the date that news must be newer than, if it is redone only for its age.

    Return no dates if the release is gone, which may happen once a run has begun.
    """
    parent = job.manifest.parent
    if parent is None or parent.stale_after is None or job.before or job.manifest.cassette:
        return {}
    found = dict[str, datetime]()
    try:
        keeper = open_keeper(parent, job.setup)
        for sample_id in job.store.pending():
            if newest := keeper.newest_evidence(job.store.sample(sample_id)):
                found[sample_id] = newest
    except ReleaseError:
        return {}
    return found


def _build_teams(job: RunContext, materials: TeamInputs) -> Callable[[Sample], TaskTeam]:
    """Return the function that finds a sample's task and team; all teams are built at the start."""
    tasks = job.tasks()
    parts = {task.target: TaskTeam(task=task, team=job.hire(task, materials)) for task in tasks}
    return lambda sample: parts[job.load_task_of(sample).target]


def build_control_setup(setup: Setup) -> Setup:
    """Return the setup of the second pass.

    Raises:
        ValueError: the config has no second pass.
    """
    if setup.control is None:
        raise ValueError("the config has no control window")
    return replace(setup, window=setup.control, window_start=None, control=None)


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
            hint="bring it in: coreeval gdelt sync --since DAY --until DAY; or move the window",
        )
    return ControlPass(window=setup.control, knowledge=found)


def add_control(job: RunContext, store: RunStore) -> RunContext:
    """Return a job with its second pass, which is stopped and watched together with it."""
    second = replace(
        job,
        setup=build_control_setup(job.setup),
        files=job.files.control,
        store=store,
        before=job.store,
        stage="control",
    )
    return replace(job, control=second)


async def refresh_control(job: RunContext) -> int:
    """Bring every sample to an outcome in the second pass; return how many have none, 0 without it.

    Raises:
        CoreEvalError: something that no sample could survive, such as a refused key.
    """
    if job.control is None:
        return 0
    second = replace(job.control, observer=job.observer)
    if await asyncio.to_thread(_open_control_samples, second, job.store):
        await asyncio.to_thread(job.store.reopen_stages)
        await refresh_samples(second)
    return len(await asyncio.to_thread(second.store.pending))


def _open_control_samples(second: RunContext, first: RunStore) -> int:
    """Add the samples of the first pass, once; return the number without an outcome."""
    if second.store.total() == 0:
        second.store.add_samples(ended.sample for ended in first.sample_results())
    return len(second.store.pending())
