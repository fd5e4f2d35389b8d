"""Where threads stood when a run was stopped or killed: nothing is lost, nothing is asked again."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import cast

from langchain_core.runnables import RunnableConfig

from coreeval.agents.name_finder import NameFinder
from coreeval.graph.build import build_sample_graph
from coreeval.graph.checkpoints import CheckpointStore, open_checkpoints
from coreeval.graph.node_context import NodeContext
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.threads import SampleApp
from coreeval.releases.takedown.calls import erase_checkpoints
from tests.graph.kit import Lab, Undisturbed, assert_whole

Work = Callable[[SampleApp, CheckpointStore], Awaitable[None]]


def thread_of(lab: Lab, sample_id: str) -> str:
    return f"{lab.manifest.run}:{lab.manifest.fingerprints.graph}:{sample_id}"


def with_app(lab: Lab, work: Work) -> None:
    """Open the run's checkpoints as LangGraph has them; no node is ever run."""

    async def opened() -> None:
        graph = build_sample_graph(SampleNodes(cast(NodeContext, None)), lambda _, node: node)
        async with open_checkpoints(lab.files.checkpoints) as saver:
            await work(graph.compile(checkpointer=saver), saver)

    asyncio.run(opened())


def kept_threads(lab: Lab) -> set[str]:
    with closing(sqlite3.connect(lab.files.checkpoints)) as db:
        return {name for (name,) in db.execute("SELECT DISTINCT thread_id FROM checkpoints")}


def begun(lab: Lab) -> dict[str, str]:
    """Return when each sample was extracted."""
    with closing(sqlite3.connect(lab.files.store)) as db:
        query = "SELECT sample_id, started_at FROM steps WHERE node = 'extract' AND error = ''"
        return dict(db.execute(query).fetchall())


def test_a_stopped_run_goes_on_where_its_threads_stood(
    stopped: Lab, undisturbed: Undisturbed
) -> None:
    kept, extracted = kept_threads(stopped), begun(stopped)
    on_the_way = {one for one in extracted if thread_of(stopped, one) in kept}
    assert on_the_way, "no thread was stopped on its way: this test shows nothing"
    answered = stopped.answered()
    stopped.resume()
    assert answered.isdisjoint(stopped.asked())
    after = begun(stopped)
    assert {one: after[one] for one in on_the_way} == {one: extracted[one] for one in on_the_way}
    assert_whole(stopped, undisturbed)
    assert kept_threads(stopped) == set()


def test_threads_of_a_killed_run_begin_again_for_free(
    killed: Lab, undisturbed: Undisturbed
) -> None:
    begun = {thread_of(killed, sample) for sample in undisturbed.results}
    assert kept_threads(killed) <= begun  # where they waited for news
    answered = killed.answered()
    killed.resume()
    assert answered.isdisjoint(killed.asked())
    assert_whole(killed, undisturbed)


def test_writes_that_outlived_their_checkpoint(stopped: Lab, undisturbed: Undisturbed) -> None:
    with closing(sqlite3.connect(stopped.files.checkpoints)) as db, db:
        assert db.execute("DELETE FROM checkpoints").rowcount > 0
    stopped.resume()
    assert_whole(stopped, undisturbed)


def test_a_thread_that_ended_without_an_outcome(stopped: Lab, undisturbed: Undisturbed) -> None:
    pending = sorted(set(undisturbed.results) - set(stopped.results()))
    ended = list[str]()

    async def end(app: SampleApp, saver: CheckpointStore) -> None:
        for sample in pending:
            config: RunnableConfig = {"configurable": {"thread_id": thread_of(stopped, sample)}}
            if "outcome" in (await app.aget_state(config)).values:
                continue  # it is known, and the rest of the thread is still to come
            await app.aupdate_state(config, {"sample_id": sample}, as_node="judge_semantic")
            assert (await app.aget_state(config)).next == ()
            ended.append(sample)
            await saver.keep(thread_of(stopped, sample))

    with_app(stopped, end)
    assert {thread_of(stopped, sample) for sample in ended} <= kept_threads(stopped) != set()
    stopped.resume()
    assert_whole(stopped, undisturbed)


def test_a_takedown_deletes_the_thread_of_a_sample_that_is_asked_again(stopped: Lab) -> None:
    kept = kept_threads(stopped)
    again = next(one for one in begun(stopped) if thread_of(stopped, one) in kept)
    finder = NameFinder(["Zoe Quux"])
    (told,) = erase_checkpoints(stopped.files.checkpoints, finder, {again}, dry=False)
    assert (told.kind, told.count) == ("samples in flight", 1)
    assert kept_threads(stopped) == kept - {thread_of(stopped, again)}


def test_threads_of_samples_with_a_result_are_cleared(undisturbed: Undisturbed) -> None:
    assert kept_threads(undisturbed.lab) == set()


def test_what_is_held_reads_as_what_is_kept(stopped: Lab) -> None:
    """A place is the same from memory and from disk."""
    thread = thread_of(stopped, "new")
    config: RunnableConfig = {"configurable": {"thread_id": thread}}

    async def look(app: SampleApp, saver: CheckpointStore) -> None:
        assert not saver.has_thread(thread)
        await app.aupdate_state(config, {"sample_id": "new"}, as_node="judge_semantic")
        held = await app.aget_state(config)
        await saver.keep(thread)
        kept = await app.aget_state(config)
        assert (held.values, held.next) == (kept.values, kept.next)
        await saver.adelete_thread(thread)
        assert not saver.has_thread(thread) and thread not in kept_threads(stopped)

    with_app(stopped, look)
