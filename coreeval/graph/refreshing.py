"""The refresh stage: a crew, a pool of sample threads, a heartbeat, and everything closed again."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime

from coreeval.agents.team import TeamInputs
from coreeval.errors import ReleaseError
from coreeval.graph.build import build_sample_graph
from coreeval.graph.checkpoints import open_checkpoints
from coreeval.graph.crew import Crew, Part
from coreeval.graph.gathering import gather_news
from coreeval.graph.job import Job
from coreeval.graph.lineage import keeper_of
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.pool import work_through
from coreeval.graph.progress import Progress
from coreeval.graph.record import recorder
from coreeval.graph.setup import check_models
from coreeval.graph.threads import SampleThreads
from coreeval.models import close_models, open_model_pool
from coreeval.schema import Sample
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.stores.call_store import CallStore, describe_damage, open_calls
from coreeval.tools.trust import load_trusted_endpoints


async def refresh_samples(job: Job) -> None:
    """Bring every open sample to an outcome; returns early when the run is told to stop.

    Raises:
        CoreEvalError: something that no sample could survive, such as a refused key.
    """
    async with AsyncExitStack() as stack:
        pending, counts = await asyncio.to_thread(_open_samples, job)
        crew = await asyncio.to_thread(open_crew, job, stack)
        threads = await _open_threads(job, crew, stack)
        if crew.knowledge.remote:
            await gather_news(job, crew, threads, pending)
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
        await work_through(pending, work, concurrency=at_once, stop=job.stop, context=job.context)


def _open_samples(job: Job) -> tuple[list[str], Counter[str]]:
    """Return the samples without an outcome and the counts of the others; later stages reopen."""
    check_models(job.setup, job.workspace)
    job.store.reopen_stages()
    return job.store.pending(), Counter(job.store.counts())


async def _open_threads(job: Job, crew: Crew, stack: AsyncExitStack) -> SampleThreads:
    """Open models and checkpoints; the stack closes them."""
    in_flight = job.monitor.in_flight
    stack.push_async_callback(close_models)
    saver = await stack.enter_async_context(open_checkpoints(job.files.checkpoints))
    wrap = recorder(job.store, in_flight, job.now, job.payer, job.listener, job.before)
    graph = build_sample_graph(SampleNodes(crew), wrap)
    return SampleThreads(
        app=graph.compile(checkpointer=saver),
        saver=saver,
        checkpoints=job.files.checkpoints,
        store=job.store,
        in_flight=in_flight,
        listener=job.listener,
        stop=job.stop,
        prefix=f"{job.manifest.run}:{job.graph_version}",
        max_attempts=job.config.run.max_attempts,
        timeout_s=job.config.run.sample_timeout_s,
        targets=job.setup.target_dates,
    )


def open_crew(job: Job, stack: AsyncExitStack) -> Crew:
    """Open news and calls, and return who works with them; the stack closes them."""
    knowledge = job.inputs.news(job)
    stack.push_async_callback(asyncio.to_thread, knowledge.close)
    calls = open_calls(job.workspace.calls, job.payer)
    stack.push_async_callback(asyncio.to_thread, calls.close)
    stack.callback(_tell_notes, job, calls)
    return crew_of(job, knowledge, calls)


def _tell_notes(job: Job, calls: CallStore) -> None:
    if note := describe_damage(calls.corrupt_found):
        job.tell(job.stage, note=note)
    job.tell_counts(job.stage)


def crew_of(job: Job, knowledge: KnowledgeSource, calls: CallStore) -> Crew:
    """Return what the sample graph's nodes work with."""
    window = job.setup.window
    materials = TeamInputs(
        models=job.config.models,
        prompts=job.setup.prompts,
        exchange=open_model_pool(
            job.config, calls, trusted=load_trusted_endpoints(job.workspace), traffic=job.traffic
        ),
        names=knowledge.names(window) if job.config.models.rule_based_roles else (),
        train=job.inputs.train(job),
        seed=job.config.run.seed,
    )
    return Crew(
        part_of=_parts(job, materials),
        knowledge=knowledge,
        offer=job.inputs.offer(job, knowledge),
        window=window,
        store=job.store,
        rules=job.setup.rules,
        candidates=job.config.knowledge.candidates,
        max_attempts=job.config.run.max_attempts,
        newest=_newest(job),
    )


def _newest(job: Job) -> dict[str, datetime]:
    """Return what news must be newer than, by sample that is made anew because of its age alone.

    A release that is gone, as it may be once a run has begun, says nothing of it.
    """
    parent = job.manifest.parent
    if parent is None or parent.stale_after is None or job.before or job.manifest.cassette:
        return {}
    found = dict[str, datetime]()
    try:
        keeper = keeper_of(parent, job.setup)
        for sample_id in job.store.pending():
            if newest := keeper.newest_of(job.store.sample(sample_id)):
                found[sample_id] = newest
    except ReleaseError:
        return {}
    return found


def _parts(job: Job, materials: TeamInputs) -> Callable[[Sample], Part]:
    """Return what finds a sample's task and team; all teams are ready before the first sample."""
    tasks = job.tasks()
    parts = {task.target: Part(task=task, team=job.hire(task, materials)) for task in tasks}
    return lambda sample: parts[job.task_of(sample).target]
