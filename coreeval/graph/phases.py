"""The phases of a refresh, and how samples run through them.

Samples first search news, and are finished after the news has been distributed. A `PhaseRunner`
runs a phase of all samples, in this process or in several (`worker_pool`).
"""

import itertools
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from coreeval.graph.build import build_sample_graph
from coreeval.graph.checkpoints import open_checkpoints
from coreeval.graph.event_offers import EventOffers
from coreeval.graph.node_context import NodeContext
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.pool import run_pool
from coreeval.graph.recorder import build_recorder
from coreeval.graph.run_context import RunContext
from coreeval.graph.state import SampleState
from coreeval.graph.threads import SampleThreads
from coreeval.models import close_models
from coreeval.schema import EntityQuery, Outcome, Result

Phase = Literal["queries", "search", "finish"]
"""Find out what to ask a remote source; search for news; bring the sample to its outcome."""


@dataclass(frozen=True, kw_only=True)
class PhaseResult:
    """The result of a phase for a sample."""

    sample_id: str
    outcome: Outcome | None = None
    """None after a search, or if the sample was stopped and stays open."""
    queries: tuple[EntityQuery, ...] = ()
    is_open: bool = False
    """Whether the phase is unfinished, because the sample was stopped or waits for a batch."""


OnResult = Callable[[PhaseResult], None]


class PhaseRunner(Protocol):
    """Takes samples through a phase."""

    async def run(self, phase: Phase, ids: Sequence[str], on_result: OnResult) -> None:
        """Run a phase of samples; return early if the run is stopped.

        Args:
            phase: The phase.
            ids: The samples in their order of work.
            on_result: Receives the result of each sample.

        Raises:
            CoreEvalError: an error that stops the run, such as a refused key.
        """
        ...


class SampleWork:
    """The work on one sample in each phase.

    Args:
        context: The context of the nodes.
        threads: The samples' threads.
    """

    def __init__(self, context: NodeContext, threads: SampleThreads) -> None:
        self._nodes, self._threads = SampleNodes(context), threads
        self._offers = context.retrieve

    async def do(self, phase: Phase, sample_id: str, rank: int) -> PhaseResult:
        """Run a phase of one sample.

        Args:
            phase: The phase.
            sample_id: The sample.
            rank: Its position in the order of starting; models serve earlier samples first.

        Raises:
            CoreEvalError: an error that stops the run.
        """
        if phase == "finish":
            outcome = await self._threads.run(sample_id, rank)
            return PhaseResult(sample_id=sample_id, outcome=outcome, is_open=outcome is None)
        reached = await self._threads.to_news(sample_id, rank)
        if isinstance(reached, Result):
            return PhaseResult(sample_id=sample_id, outcome=reached.outcome)
        if reached is None:
            return PhaseResult(sample_id=sample_id, is_open=True)
        if "outcome" in reached:  # it needs no news
            return PhaseResult(sample_id=sample_id)
        queries = await self._nodes.build_queries(reached)
        if phase == "queries":
            return PhaseResult(sample_id=sample_id, queries=tuple(queries))
        await self._search(sample_id, reached, queries)
        return PhaseResult(sample_id=sample_id)

    async def _search(
        self, sample_id: str, state: SampleState, queries: Sequence[EntityQuery]
    ) -> None:
        if not isinstance(self._offers, EventOffers):
            raise TypeError("only events are searched for before they are offered")
        text, need = await self._nodes.describe_need(state)
        has_material = await self._nodes.make_material_check(state)
        await self._offers.search(sample_id, queries, text, need, has_material)


async def open_sample_work(
    run: RunContext, context: NodeContext, stack: AsyncExitStack
) -> SampleWork:
    """Open models and checkpoints; the stack closes them."""
    in_flight = run.monitor.in_flight
    stack.push_async_callback(close_models)
    checkpoints = _find_checkpoints(run)
    saver = await stack.enter_async_context(open_checkpoints(checkpoints))
    wrap = build_recorder(run.store, in_flight, run.now, run.payer, run.observer, run.before)
    graph = build_sample_graph(SampleNodes(context), wrap)
    threads = SampleThreads(
        app=graph.compile(checkpointer=saver),
        saver=saver,
        checkpoints=checkpoints,
        store=run.store,
        in_flight=in_flight,
        observer=run.observer,
        stop=run.stop,
        prefix=f"{run.manifest.run}:{run.graph_version}",
        max_attempts=run.config.run.max_attempts,
        timeout_s=run.config.run.sample_timeout_s,
        max_usd=run.config.run.max_usd_per_sample,
        targets=run.setup.target_dates,
    )
    return SampleWork(context, threads)


def _find_checkpoints(run: RunContext) -> Path:
    """Return the file for checkpoints of stopped threads.

    The run's folder may be on shared storage, where SQLite files would be damaged: a worker of such
    a run keeps checkpoints in memory, and its threads start again over stored answers.
    """
    if run.is_worker and run.config.run.store == "postgresql":
        return Path(":memory:")
    return run.files.checkpoints


class InProcessRunner:
    """Runs a phase of samples in this process.

    Args:
        run: The run.
        work: The work on one sample.
    """

    def __init__(self, run: RunContext, work: SampleWork) -> None:
        self._run, self._work = run, work

    async def run(self, phase: Phase, ids: Sequence[str], on_result: OnResult) -> None:
        """Run a phase of samples; see `PhaseRunner`."""
        run, ranks = self._run, itertools.count()

        async def work(sample_id: str) -> None:
            on_result(await self._work.do(phase, sample_id, next(ranks)))

        at_once = run.config.run.concurrency
        await run_pool(ids, work, concurrency=at_once, stop=run.stop, context=run.context)
