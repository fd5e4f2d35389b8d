"""Threads whose checkpoints are behind or at odds with their writes: no sample is lost."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import cast

from langchain_core.runnables import RunnableConfig

from coreeval.graph.build import build_sample_graph
from coreeval.graph.crew import Crew
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.threads import SampleApp, open_saver
from tests.graph.kit import Lab, Undisturbed, assert_whole

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


def test_writes_that_outlived_their_checkpoint(killed: Lab, undisturbed: Undisturbed) -> None:
    """What a kill leaves between a task's writes and the next checkpoint."""
    with closing(sqlite3.connect(killed.files.checkpoints)) as db, db:
        assert db.execute(NEWEST).rowcount > 0
    finished: list[str] = []

    async def look(app: SampleApp) -> None:
        for thread in open_threads(killed):
            state = await app.aget_state({"configurable": {"thread_id": thread}})
            finished.extend([thread] if not state.next and "outcome" not in state.values else [])

    with_app(killed, look)
    assert finished, "no thread looks finished: this test shows nothing"
    answered = killed.answered()
    killed.forget()
    killed.resume()
    assert answered.isdisjoint(killed.asked())
    assert_whole(killed, undisturbed)


def test_a_thread_that_ended_without_an_outcome(killed: Lab, undisturbed: Undisturbed) -> None:
    pending = sorted(set(undisturbed.results) - set(killed.results()))
    ended: list[str] = []

    async def end(app: SampleApp) -> None:
        for sample in pending:
            config: RunnableConfig = {"configurable": {"thread_id": thread_of(killed, sample)}}
            if "outcome" in (await app.aget_state(config)).values:
                continue  # it had come to its outcome when the process was killed
            await app.aupdate_state(config, {"sample_id": sample}, as_node="judge_semantic")
            state = await app.aget_state(config)
            assert (state.next, "outcome" in state.values) == ((), False)
            ended.append(sample)

    with_app(killed, end)
    assert ended, "every pending thread had an outcome: this test shows nothing"
    killed.resume()
    assert_whole(killed, undisturbed)


def test_threads_of_samples_with_a_result_are_cleared(undisturbed: Undisturbed) -> None:
    assert open_threads(undisturbed.lab) == []
