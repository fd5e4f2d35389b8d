"""Rewords the drawn items of the train split in the same way as samples.

Rewording has no checkpoints: an item in progress when the run stopped starts again, using the
stored calls.
"""

import asyncio
import itertools
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import cast

from langgraph.errors import GraphDrained

from coreeval.errors import CoreEvalError
from coreeval.graph.batch_rounds import work_in_rounds
from coreeval.graph.build import build_rewording_graph
from coreeval.graph.monitor import Progress
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.pool import run_pool
from coreeval.graph.recorder import InFlight, build_recorder
from coreeval.graph.refresh import open_node_context
from coreeval.graph.run_context import RunContext
from coreeval.graph.setup import check_models
from coreeval.graph.state import SampleState, start_sample
from coreeval.graph.threads import SampleApp, describe_error
from coreeval.graph.train_split import draw_train, max_train_items
from coreeval.models import close_models
from coreeval.models.batch_dispatch import CallQueued
from coreeval.models.rate_limit import RANK
from coreeval.models.running_steps import track_steps
from coreeval.schema import TrainEnd

REWORD_STAGE = "reword"
TRACED_AS = "reword train item"
"""Name of an item's trace in LangSmith."""


async def reword_train(run: RunContext) -> None:
    """Reword every drawn item; return early if the run is told to stop.

    Raises:
        CoreEvalError: an error that affects all items, such as a rejected key.
    """
    pending, counts = await asyncio.to_thread(_open_items, run)
    if not pending:
        return
    async with AsyncExitStack() as stack:
        context = await asyncio.to_thread(open_node_context, run, stack)
        stack.push_async_callback(close_models)
        in_flight = run.monitor.in_flight
        wrap = build_recorder(run.store, in_flight, run.now, run.payer, run.observer)
        app = build_rewording_graph(SampleNodes(context), wrap).compile()
        runner = _ItemThreads(run, app, in_flight)
        total, ranks = len(pending) + counts.total(), itertools.count()

        left = list(pending)

        async def work(item_id: str) -> None:
            end = await runner.reword(item_id, next(ranks))
            left.extend([] if end else [item_id])
            counts.update([end.status] if end else [])
            done = counts.total()
            run.watch(Progress(stage=REWORD_STAGE, done=done, total=total, counts=dict(counts)))

        async def one_pass() -> None:
            ids, at_once = list(left), run.config.run.concurrency
            left.clear()
            await run_pool(ids, work, concurrency=at_once, stop=run.stop, context=run.context)

        await work_in_rounds(run, one_pass)


def _open_items(run: RunContext) -> tuple[list[str], Counter[str]]:
    """Return the open items and the counts of the others; draw items if none have been drawn."""
    if not run.store.train.counts():
        run.tell(REWORD_STAGE, note=f"drawing items of the split {run.config.pcr_train_split!r}")
        run.store.train.add(draw_train(run.setup, max_train_items(run.config, run.manifest.limit)))
    counts = Counter(run.store.train.counts())
    if counts.pop("open", 0):
        check_models(run.setup, run.workspace)
    return run.store.train.open_ids(), counts


@dataclass(frozen=True)
class _ItemThreads:
    """The threads that reword items, one for each item."""

    run: RunContext
    app: SampleApp
    in_flight: InFlight

    async def reword(self, item_id: str, rank: int) -> TrainEnd | None:
        """Run one item and commit its outcome; return None if it stays open."""
        RANK.set(rank)
        try:
            end = await self._end(item_id)
        except (GraphDrained, CallQueued):
            return None
        finally:
            self.in_flight.leave(item_id)
        await self.run.store.train.end(item_id, end)
        self.run.observer.on_end(item_id, end)
        return end

    async def _end(self, item_id: str) -> TrainEnd:
        seconds = self.run.config.run.sample_timeout_s
        try:
            with self.run.stop.control() as control:
                async with asyncio.timeout(seconds):
                    with track_steps():
                        state = await self.app.ainvoke(
                            start_sample(item_id), {"run_name": TRACED_AS}, control=control
                        )
        except (GraphDrained, CallQueued, CoreEvalError):
            raise
        except Exception as error:  # noqa: BLE001 - one item's trouble must not end the run
            return TrainEnd(status="failed", reason=describe_error(error, seconds))
        return build_train_end(cast(SampleState, state))


def build_train_end(state: SampleState) -> TrainEnd:
    """Return the outcome of an item from the last state of its thread."""
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
