"""A store on a full disk, or one that was only begun: told, left alone, and used again later."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from coreeval.errors import RunCorrupt, RunError
from coreeval.tools.stores.call_records import CallRecord, call_key, call_request
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.sqlite import Schema, open_engine, prepare_database
from tests.support.worker import filling


def record(number: int) -> CallRecord:
    request = call_request(
        provider="p",
        endpoint="e",
        model="m",
        parameters={},
        schema={},
        messages=[{"role": "user", "content": f"{number}" * 3000}],
        draw=0,
    )
    said = str(list(range(number, number + 1000)))
    key = call_key(request)
    return CallRecord(key=key, draw=0, role="r", request=request, response=said, valid=True)


def pages(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA page_count").fetchone()[0])


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """The file of a call store that has one call."""
    path = tmp_path / "calls.db"
    with closing(open_calls(path)):
        pass
    yield path


async def test_a_call_that_cannot_be_kept_is_told_and_those_before_it_stay(path: Path) -> None:
    calls = [record(number) for number in range(50)]
    kept = []
    with filling(f"calls.db:{pages(path) + 10}"), closing(open_calls(path)) as store:
        with pytest.raises(RunError, match="database or disk is full") as caught:
            for call in calls:
                await store.put(call)
                kept.append(call)
        assert not isinstance(caught.value, RunCorrupt)
        assert caught.value.where == str(path) and "disk" in caught.value.hint
        assert 0 < len(kept) < 50
        assert [store.get(call.key) for call in kept] == kept
    with closing(open_calls(path)) as store:
        for call in calls[len(kept) :]:
            await store.put(call)
        assert [store.get(call.key) for call in calls] == calls


async def test_money_that_cannot_be_put_aside_is_not_spent(path: Path) -> None:
    with filling(f"calls.db:{pages(path)}"), closing(open_calls(path, "me")) as store:
        with pytest.raises(RunError, match="disk is full"):
            for _ in range(1000):
                await store.ledger.reserve("key" * 20, 0.5)
        assert store.ledger.spent().billed_usd == 0


def test_a_file_that_was_only_begun_is_finished(tmp_path: Path) -> None:
    """As a full disk or a kill leave it."""
    path = tmp_path / "calls.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
    for _ in range(2):
        with closing(open_calls(path)) as store:
            assert list(store.records()) == []


def test_all_tables_are_made_or_none(tmp_path: Path) -> None:
    def half(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE half (a INTEGER)"))
        raise KeyError("stopped")

    def whole(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE half (a INTEGER)"))

    engine = open_engine(f"sqlite:///{tmp_path / 'a.db'}")
    with pytest.raises(KeyError):
        prepare_database(engine, Schema(version=1, create=half), what="a.db")
    prepare_database(engine, Schema(version=1, create=whole), what="a.db")
    engine.dispose()


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(open_calls, [tmp_path / "calls.db"] * 16))
    for store in stores:
        assert list(store.records()) == []
        store.close()
