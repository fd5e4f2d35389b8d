"""Calls and the ledger in PostgreSQL: what holds for a file holds for them."""

import asyncio
import multiprocessing
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.errors import RunStateError
from coreeval.tools.stores.call_records import CallRecord, call_key, call_request
from coreeval.tools.stores.call_store import CallStore, create_calls, open_calls
from coreeval.tools.stores.places import find_schema
from tests.postgresql.server import Server

LONG = "Say what it is. " * 50


def record_of(number: int, **changes: object) -> CallRecord:
    request = call_request(
        provider="openai",
        endpoint="",
        model="m",
        parameters={},
        schema={},
        messages=[{"role": "system", "content": LONG}, {"role": "user", "content": str(number)}],
        draw=0,
    )
    values = {
        "key": call_key(request),
        "draw": 0,
        "role": "composer",
        "request": request,
        "response": f"answer {number} \0 ü",
        "valid": True,
        "usd": 0.25,
        "seconds": 0.5,
        "started_at": f"2026-01-01T00:00:{number:02}",
    }
    return CallRecord(**{**values, **changes})  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path, server: Server) -> Path:
    create_calls(tmp_path / "calls.db", "postgresql")
    return tmp_path / "calls.db"


async def test_what_is_put_is_found_by_another_process(path: Path) -> None:
    records = [record_of(number) for number in range(5)]
    with closing(open_calls(path, "me")) as store:
        await asyncio.gather(*(store.put(one) for one in records))
    assert not path.exists()
    with closing(open_calls(path)) as store:
        found = list(store.records())
        assert [one.response for one in found] == [one.response for one in records]
        assert {one.request for one in found} == {one.request for one in records}
        assert [one.key for one in store.newest("composer", 2)] == [
            one.key for one in reversed(records)
        ][:2]
        assert len(list(store.newest("composer", 9, ["me"]))) == len(records)
        assert store.ledger.spent().billed_usd == 0
        assert store.count_missing([records[0].key, "none"]) == 1
    with closing(open_calls(path, "me")) as store:
        assert store.ledger.spent().billed_usd == 1.25


async def test_a_second_put_of_a_key_keeps_the_first_and_its_cost(path: Path) -> None:
    with closing(open_calls(path, "me")) as store, closing(open_calls(path, "me")) as other:
        first = await store.put(record_of(1))
        reservation = await other.ledger.reserve(first.key, 1.0)
        second = await other.put(record_of(1, response="another", usd=0.5), reservation)
        assert second == first
    with closing(open_calls(path, "me")) as store:  # what was queued is written
        assert store.ledger.spent().unknown_usd == 0.5


async def test_callers_of_one_key_share_one_call(path: Path) -> None:
    sent = 0
    with closing(open_calls(path, "me")) as store:

        async def send() -> CallRecord:
            nonlocal sent
            sent += 1
            return await store.put(record_of(1))

        key = record_of(1).key
        answers = await asyncio.gather(*(store.answer(key, send) for _ in range(8)))
        again = await store.answer(key, send)
    assert sent == 1
    assert sorted(origin for _, origin in answers) == ["sent", *["shared"] * 7]
    assert again[1] == "stored"


def spend(path: Path, number: int, budget_usd: float) -> int:
    """Reserve and settle until the budget is spent; return the number of calls paid for."""

    async def work(store: CallStore) -> int:
        paid = 0
        for each in range(1000):
            record = record_of(number * 1000 + each, usd=0.01)
            reserved = await store.ledger.reserve(record.key, 0.01, budget_usd=budget_usd)
            if reserved is None:
                return paid
            await store.put(record, reserved)
            paid += 1
        return paid

    with closing(open_calls(path, "me")) as store:
        return asyncio.run(work(store))


def test_two_processes_spend_one_budget_and_no_more(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        paid = pool.starmap(spend, [(path, 1, 1.0), (path, 2, 1.0)])
    assert sum(paid) == 100
    with closing(open_calls(path, "me")) as store:
        assert store.ledger.spent().billed_usd == pytest.approx(1.0)
        assert store.ledger.spent().unknown_usd == 0


def test_answers_stay_in_one_place(path: Path, tmp_path: Path) -> None:
    with pytest.raises(RunStateError, match="in PostgreSQL, not in SQLite"):
        create_calls(path, "sqlite")
    create_calls(path, "postgresql")
    other = tmp_path / "other" / "calls.db"
    open_calls(other).close()
    with pytest.raises(RunStateError, match="in SQLite, not in PostgreSQL"):
        create_calls(other, "postgresql")
    assert find_schema(other) is None


async def test_one_that_is_there_already_spoils_no_others(path: Path) -> None:
    """Waiting calls are written together; where that fails, each is written alone."""
    with closing(open_calls(path, "me")) as other:
        first = await other.put(record_of(3))
    with closing(open_calls(path, "me")) as store:
        records = [record_of(number, response="new") for number in range(8)]
        reserved = [await store.ledger.reserve(one.key, 0.5) for one in records]
        found = await asyncio.gather(
            *(store.put(one, each) for one, each in zip(records, reserved, strict=True))
        )
        assert found[3] == first
        assert [one.response for one in found if one.key != first.key] == ["new"] * 7
    with closing(open_calls(path, "me")) as store:  # what was queued is written
        assert store.ledger.spent().billed_usd == 8 * 0.25
        assert store.ledger.spent().unknown_usd == 0.25, "it was paid for twice"
