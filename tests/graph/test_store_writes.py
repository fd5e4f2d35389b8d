"""Writes of the run store that nobody waits for: written all the same, or told about."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.errors import RunError
from coreeval.schema import Result
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import StepRecord

ENDED = Result(sample_id="a", outcome="no_knowledge")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    store = RunStore.open(tmp_path / "run.db", now=utc_now)
    yield store
    store.close()


def step() -> StepRecord:
    return StepRecord(
        sample_id="a", attempt=0, node="extract", started_at="2026-11-01", seconds=0.1
    )


def test_a_result_is_kept_when_whoever_waited_for_it_is_gone(
    store: RunStore, tmp_path: Path
) -> None:
    """As at a timeout or a second Ctrl-C: the writer lives on."""

    async def leave() -> None:
        waiting = asyncio.create_task(store.commit(ENDED))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    with closing(sqlite3.connect(tmp_path / "run.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        asyncio.run(leave())
        other.execute("ROLLBACK")
    store.finish_stage("assemble", {})
    assert store.result("a") == ENDED


async def test_a_step_that_could_not_be_written_is_told_with_the_next_result(
    store: RunStore, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "run.db")) as other:
        other.execute("DROP TABLE verdicts")
        other.execute("DROP TABLE steps")
    store.history.record(step())
    with pytest.raises(RunError, match="no such table: steps") as caught:
        await store.commit(ENDED)
    assert caught.value.where == str(tmp_path / "run.db")
