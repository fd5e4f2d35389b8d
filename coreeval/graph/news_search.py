"""The search for news of all samples, before any of them is offered some."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence

from coreeval.graph.event_offers import REPORTS_PER_QUERY, EventOffers, NearestSearch
from coreeval.graph.monitor import Progress
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.pool import run_pool
from coreeval.graph.run_context import RunContext
from coreeval.graph.state import SampleState
from coreeval.graph.threads import SampleThreads
from coreeval.schema import EntityQuery, Result

_Visit = Callable[[str, SampleState], Awaitable[None]]
"""Does something with a sample that has reached the point where it looks for news."""


async def find_news(
    run: RunContext,
    nodes: SampleNodes,
    offers: EventOffers,
    threads: SampleThreads,
    pending: Sequence[str],
) -> None:
    """Bring all samples to the point where they look for news, find it, and deal the events.

    Samples that have searched before, in a run that is resumed, keep what they were dealt. A
    remote source is asked once for the news of all samples; each sample's own search is then
    answered from what came. Returns early if the run is told to stop.

    Raises:
        CoreEvalError: something that no sample could survive.
    """
    asked, known = dict[str, EntityQuery](), await asyncio.to_thread(run.store.events.ids)
    open_ids = [sample_id for sample_id in pending if sample_id not in known]

    async def note_queries(_: str, state: SampleState) -> None:
        asked.update({_query_key(query): query for query in await nodes.build_queries(state)})

    async def search(sample_id: str, state: SampleState) -> None:
        text, need = await nodes.describe_need(state)
        await offers.search(sample_id, await nodes.build_queries(state), text, need)

    if offers.knowledge.remote:
        await _visit_samples(run, threads, open_ids, note_queries)
        if asked and not run.stop.asked:
            await _gather_news(run, offers, list(asked.values()))
    if open_ids and offers.nearest and not run.stop.asked:
        await asyncio.to_thread(_embed_headlines, run, offers.nearest)
    if not run.stop.asked:
        await _visit_samples(run, threads, open_ids, search)
    if not run.stop.asked:
        await asyncio.to_thread(offers.deal)


def _embed_headlines(run: RunContext, nearest: NearestSearch) -> None:
    def watch(done: int, total: int) -> bool:
        run.watch(Progress(stage="embed", done=done, total=total))
        return not run.stop.asked

    nearest.embed(watch)


async def _visit_samples(
    run: RunContext, threads: SampleThreads, pending: Sequence[str], visit: _Visit
) -> None:
    """Visit each sample at the point where it looks for news; some end before."""
    ranks, done = itertools.count(), itertools.count(1)

    async def bring(sample_id: str) -> None:
        reached = await threads.to_news(sample_id, next(ranks))
        if reached is not None and not isinstance(reached, Result):
            await visit(sample_id, reached)
        run.watch(Progress(stage="extract", done=next(done), total=len(pending)))

    concurrency = run.config.run.concurrency
    await run_pool(pending, bring, concurrency=concurrency, stop=run.stop, context=run.context)


async def _gather_news(run: RunContext, offers: EventOffers, asked: Sequence[EntityQuery]) -> None:
    """Ask a remote source for the news of all samples at once."""
    run.tell("gather", total=len(asked))
    numbered = [
        query.model_copy(update={"id": f"g{number}"}) for number, query in enumerate(asked, start=1)
    ]
    await offers.knowledge.fetch(numbered, offers.window, REPORTS_PER_QUERY)


def _query_key(query: EntityQuery) -> str:
    """Return the key that identifies a query; query ids are only unique within a sample."""
    return query.model_dump_json(exclude={"id"})
