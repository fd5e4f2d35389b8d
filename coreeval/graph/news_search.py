"""Searches news for all samples before any of them is offered some."""

import asyncio
import itertools
from collections.abc import Sequence

from coreeval.graph.event_offers import REPORTS_PER_QUERY, EventOffers, NearestSearch
from coreeval.graph.monitor import Progress
from coreeval.graph.phases import Phase, PhaseResult, PhaseRunner
from coreeval.graph.run_context import RunContext
from coreeval.schema import EntityQuery


async def find_news(
    run: RunContext, offers: EventOffers, runner: PhaseRunner, pending: Sequence[str]
) -> None:
    """Run all samples up to their search for news, search, and distribute the events.

    In a resumed run, samples that have searched before keep their events. A remote source is asked
    once for the news of all samples; the search of each sample then uses this result. Returns early
    if the run is stopped.

    Raises:
        CoreEvalError: an error that stops the run.
    """
    known = await asyncio.to_thread(run.store.events.ids)
    open_ids = [sample_id for sample_id in pending if sample_id not in known]
    if offers.knowledge.remote:
        found = await _run_phase(run, runner, "queries", open_ids)
        asked = {_query_key(query): query for each in found for query in each.queries}
        if asked and not run.stop.asked:
            await _gather_news(run, offers, list(asked.values()))
    if open_ids and offers.nearest and not run.stop.asked:
        await asyncio.to_thread(_embed_headlines, run, offers.nearest)
    if not run.stop.asked:
        await _run_phase(run, runner, "search", open_ids)
    if not run.stop.asked:
        await asyncio.to_thread(offers.deal)


def _embed_headlines(run: RunContext, nearest: NearestSearch) -> None:
    def watch(done: int, total: int) -> bool:
        run.watch(Progress(stage="embed", done=done, total=total))
        return not run.stop.asked

    nearest.embed(watch)


async def _run_phase(
    run: RunContext, runner: PhaseRunner, phase: Phase, pending: Sequence[str]
) -> list[PhaseResult]:
    """Run a phase of samples before they are offered news; some end in it."""
    done, found = itertools.count(1), list[PhaseResult]()

    def note(result: PhaseResult) -> None:
        if result.queries:
            found.append(result)
        run.watch(Progress(stage="extract", done=next(done), total=len(pending)))

    if pending:
        run.watch(Progress(stage="extract", done=0, total=len(pending)))
    await runner.run(phase, pending, note)
    return found


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
