"""The gather step: one request carries what all samples ask of a remote source (design §4)."""

import itertools
from collections.abc import Sequence

from coreeval.graph.crew import Crew
from coreeval.graph.job import Job
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.pool import work_through
from coreeval.graph.progress import Progress
from coreeval.graph.threads import SampleThreads
from coreeval.schema import EntityQuery, Result


async def gather_news(job: Job, crew: Crew, threads: SampleThreads, pending: Sequence[str]) -> None:
    """Bring all samples to where they look for news, and ask for them all at once.

    Their own questions are answered from what was gathered. Returns early when the run is told to
    stop.

    Raises:
        CoreEvalError: something that no sample could survive.
    """
    nodes, asked = SampleNodes(crew), dict[str, EntityQuery]()
    ranks, done = itertools.count(), itertools.count(1)

    async def bring(sample_id: str) -> None:
        reached = await threads.to_news(sample_id, next(ranks))
        if reached is not None and not isinstance(reached, Result):
            asked.update({_question(query): query for query in await nodes.queries(reached)})
        job.watch(Progress(stage="extract", done=next(done), total=len(pending)))

    concurrency = job.config.run.concurrency
    await work_through(pending, bring, concurrency=concurrency, stop=job.stop, context=job.context)
    if asked and not job.stop.asked:
        job.tell("gather", total=len(asked))
        numbered = [
            query.model_copy(update={"id": f"g{number}"})
            for number, query in enumerate(asked.values(), start=1)
        ]
        await crew.knowledge.fetch(numbered, crew.window, crew.candidates)


def _question(query: EntityQuery) -> str:
    """Return what tells a question from others; its id is a sample's own."""
    return query.model_dump_json(exclude={"id"})
