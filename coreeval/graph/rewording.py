"""Items of the train split in other words: drawn once, then reworded as the samples are.

There is no checkpoint: an item that was in flight when the run stopped begins again, over the calls
that were answered.
"""

import asyncio
import itertools
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import cast

from langgraph.errors import GraphDrained

from coreeval.errors import CoreEvalError
from coreeval.graph.build import build_rewording_graph
from coreeval.graph.drawing import draw_train, drawn_most
from coreeval.graph.job import Job
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.pool import work_through
from coreeval.graph.progress import Progress
from coreeval.graph.record import InFlight, recorder
from coreeval.graph.refreshing import open_crew
from coreeval.graph.setup import check_models
from coreeval.graph.state import SampleState, fresh_sample
from coreeval.graph.threads import SampleApp, trouble_of
from coreeval.models import close_models
from coreeval.models.rate_limit import RANK
from coreeval.schema import TrainEnd

STAGE = "reword"
TRACED_AS = "reword train item"
"""What LangSmith calls an item's trace."""


async def reword_train(job: Job) -> None:
    """Bring every drawn item to its end; returns early when the run is told to stop.

    Raises:
        CoreEvalError: something that no item could survive, such as a refused key.
    """
    pending, counts = await asyncio.to_thread(_drawn, job)
    if not pending:
        return
    async with AsyncExitStack() as stack:
        crew = await asyncio.to_thread(open_crew, job, stack)
        stack.push_async_callback(close_models)
        in_flight = job.monitor.in_flight
        wrap = recorder(job.store, in_flight, job.now, job.payer, job.listener)
        app = build_rewording_graph(SampleNodes(crew), wrap).compile()
        desk = _Desk(job, app, in_flight)
        total, ranks = len(pending) + counts.total(), itertools.count()

        async def work(item_id: str) -> None:
            end = await desk.reword(item_id, next(ranks))
            counts.update([end.status] if end else [])
            done = counts.total()
            job.watch(Progress(stage=STAGE, done=done, total=total, counts=dict(counts)))

        at_once = job.config.run.concurrency
        await work_through(pending, work, concurrency=at_once, stop=job.stop, context=job.context)


def _drawn(job: Job) -> tuple[list[str], Counter[str]]:
    """Return the open items and the counts of the others, drawn if none has been."""
    if not job.store.train_counts():
        job.tell(STAGE, note=f"drawing items of the split {job.config.pcr_train_split!r}")
        job.store.add_train(draw_train(job.setup, drawn_most(job.config, job.manifest.limit)))
    counts = Counter(job.store.train_counts())
    if counts.pop("open", 0):
        check_models(job.setup, job.workspace)
    return job.store.open_train(), counts


@dataclass(frozen=True)
class _Desk:
    """Where items are reworded, one thread each."""

    job: Job
    app: SampleApp
    in_flight: InFlight

    async def reword(self, item_id: str, rank: int) -> TrainEnd | None:
        """Bring one item to its end and commit it; None for a drained one, which stays open."""
        RANK.set(rank)
        try:
            end = await self._end(item_id)
        except GraphDrained:
            return None
        finally:
            self.in_flight.leave(item_id)
        await self.job.store.end_train(item_id, end)
        self.job.listener.ended(item_id, end)
        return end

    async def _end(self, item_id: str) -> TrainEnd:
        seconds = self.job.config.run.sample_timeout_s
        try:
            with self.job.stop.control() as control:
                async with asyncio.timeout(seconds):
                    state = await self.app.ainvoke(
                        fresh_sample(item_id), {"run_name": TRACED_AS}, control=control
                    )
        except (GraphDrained, CoreEvalError):
            raise
        except Exception as error:  # noqa: BLE001 - one item's trouble must not end the run
            return TrainEnd(status="failed", reason=trouble_of(error, seconds))
        return end_of(cast(SampleState, state))


def end_of(state: SampleState) -> TrainEnd:
    """Turn the last state of an item's thread into what became of it."""
    status = state.get("semantic_status", "unchanged")
    said = [verdict["reason"] for verdict in state.get("verdicts", ()) if not verdict["passed"]]
    reason = state.get("reason", "") if status == "policy" else (said or [""])[-1]
    return TrainEnd.model_validate(
        {
            "status": status,
            "semantic": state.get("semantic") if status in {"reworded", "label_changed"} else None,
            "reason": "" if status == "reworded" else reason,
        }
    )
