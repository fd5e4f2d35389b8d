"""Threads whose checkpoints are behind or at odds with their writes: no sample is lost."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import cast

from coreeval.graph.build import build_sample_graph
from coreeval.graph.crew import Crew
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.threads import SampleApp, open_saver
from tests.graph.kit import Lab, Undisturbed, assert_whole, ended

NEWEST = """
DELETE FROM checkpoints WHERE (thread_id, checkpoint_id) IN (
    SELECT thread_id, max(checkpoint_id) FROM checkpoints GROUP BY thread_id HAVING count(*) > 1
)
"""


def thread_of(lab: Lab, sample_id: str) -> str:
    return f"{lab.manifest.run}:{lab.manifest.fingerprints.graph}:{sample_id}"


def with_app(lab: Lab, work: Callable[[SampleApp], Awaitable[None]]) -> None:
    """Open the run's checkpoints as LangGraph has them; no node is ever run."""

    async def opened() -> None:
        graph = build_sample_graph(SampleNodes(cast(Crew, None)), lambda _, node: node)
        async with open_saver(lab.files.checkpoints) as saver:
            await work(graph.compile(checkpointer=saver))

    asyncio.run(opened())


def open_threads(lab: Lab) -> list[str]:
    with closing(sqlite3.connect(lab.files.checkpoints)) as db:
        return [name for (name,) in db.execute("SELECT DISTINCT thread_id FROM checkpoints")]


def test_writes_that_outlived_their_checkpoint(lab: Lab, undisturbed: Undisturbed) -> None:
    """What a kill leaves between a task's writes and the next checkpoint."""
    ended(lab.child("refresh", die="after:check:3"))
    with closing(sqlite3.connect(lab.files.checkpoints)) as db, db:
        assert db.execute(NEWEST).rowcount > 0
    finished: list[str] = []

    async def look(app: SampleApp) -> None:
        for thread in open_threads(lab):
            state = await app.aget_state({"configurable": {"thread_id": thread}})
            finished.extend([thread] if not state.next and "outcome" not in state.values else [])

    with_app(lab, look)
    assert finished, "no thread looks finished: this test shows nothing"
    answered = lab.answered()
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert_whole(lab, undisturbed)


def test_a_thread_that_ended_without_an_outcome(lab: Lab, undisturbed: Undisturbed) -> None:
    ended(lab.child("refresh", die="after:extract:5"))
    pending = sorted(set(undisturbed.results) - set(lab.results()))

    async def end(app: SampleApp) -> None:
        for sample in pending:
            config = {"configurable": {"thread_id": thread_of(lab, sample)}}
            await app.aupdate_state(config, {"sample_id": sample}, as_node="judge_semantic")
            state = await app.aget_state(config)
            assert (state.next, "outcome" in state.values) == ((), False)

    with_app(lab, end)
    lab.resume()
    assert_whole(lab, undisturbed)


def test_threads_of_samples_with_a_result_are_cleared(lab: Lab) -> None:
    lab.refresh()
    assert open_threads(lab) == []
