"""What no run does: another result for a sample that has one."""

from sqlalchemy import delete

from coreeval.schema import Result
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.run_store import RunStore


async def replace_result(store: RunStore, result: Result) -> None:
    """Store a result in the place of the one that a sample has."""
    with store.engine.begin() as connection:
        connection.execute(delete(t.results).where(t.results.c.sample_id == result.sample_id))
    await store.commit(result)
