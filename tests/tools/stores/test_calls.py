"""The call store: committed before used, damaged rows absent, one call for many askers."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from coreeval.errors import RunCorrupt, RunError
from coreeval.tools.stores.calls import (
    CallRecord,
    CallStore,
    call_key,
    call_request,
    open_calls,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "odd ?name#%41" / "calls.db"


@pytest.fixture
def store(path: Path) -> Iterator[CallStore]:
    store = open_calls(path)
    yield store
    store.close()


def request(text: str = "hello", draw: int = 0) -> str:
    return call_request(
        provider="openai",
        endpoint="http://127.0.0.1/v1",
        model="m",
        parameters={"temperature": 0.0},
        schema={"name": "x", "schema": {}},
        messages=[{"role": "user", "content": text}],
        draw=draw,
    )


def record(text: str = "hello", answer: str = '{"a": "\u00e9\U0001f600"}') -> CallRecord:
    asked = request(text)
    return CallRecord(
        key=call_key(asked),
        draw=0,
        role="extractor",
        request=asked,
        response=answer,
        valid=True,
        prompt_tokens=12,
        cached_tokens=4,
        completion_tokens=3,
        model_returned="m-2026",
        finish_reason="stop",
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1,
    )


def test_key_depends_on_everything_that_is_asked() -> None:
    assert call_key(request()) == call_key(request())
    assert len({call_key(request()), call_key(request("hi")), call_key(request(draw=1))}) == 3


async def test_what_was_put_is_there_for_another_process(store: CallStore, path: Path) -> None:
    await store.put(record())
    other = open_calls(path)
    assert other.get(record().key) == record()
    assert list(other.records()) == [record()]
    other.close()


async def test_put_returns_after_the_commit(store: CallStore, path: Path) -> None:
    await store.put(record())
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        assert reader.execute("SELECT count(*) FROM calls").fetchone() == (1,)


async def test_the_first_answer_stays(store: CallStore) -> None:
    await store.put(record(answer="first"))
    kept = await store.put(record(answer="second"))
    assert kept.response == "first"
    assert (found := store.get(kept.key)) is not None and found.response == "first"


@pytest.mark.parametrize(
    "change",
    [
        "response = X'00'",
        "request = zeroblob(9)",
        "valid = 0",
        "seconds = 'x'",
        "prompt_tokens = NULL",
        "checksum = ''",
    ],
)
async def test_a_damaged_row_is_absent_counted_and_replaced(path: Path, change: str) -> None:
    store = open_calls(path)
    await store.put(record())
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA ignore_check_constraints = 1")
        writer.execute("PRAGMA writable_schema = 1")
        sql = "UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'calls'"
        writer.execute(sql)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(f"UPDATE calls SET {change}")
    assert store.get(record().key) is None
    assert store.get(record().key) is None
    assert store.corrupt_rows == 1
    await store.put(record(answer="again"))
    found = store.get(record().key)
    assert found is not None and found.response == "again"
    assert store.corrupt_rows == 1
    store.close()


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all" * 100)
    before = path.read_bytes()
    with pytest.raises(RunCorrupt) as caught:
        open_calls(path)
    assert str(path) in caught.value.where
    assert path.read_bytes() == before


async def test_a_file_damaged_inside_is_an_error_that_says_so(path: Path) -> None:
    store = open_calls(path)
    for number in range(60):
        await store.put(record(str(number), answer=str(number) * 3000))
    store.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(RunCorrupt):
        again = open_calls(path)
        again.get(record("1").key)


async def test_equal_questions_at_once_are_one_call(store: CallStore) -> None:
    sent = 0

    async def send() -> CallRecord:
        nonlocal sent
        sent += 1
        await asyncio.sleep(0.01)
        return record()

    answers = await asyncio.gather(*(store.answer(record().key, send) for _ in range(20)))
    assert sent == 1
    assert sorted(origin for _, origin in answers) == ["sent", *["shared"] * 19]
    assert await store.answer(record().key, send) == (record(), "stored")
    assert sent == 1


async def test_a_cancelled_caller_does_not_lose_what_is_paid(store: CallStore) -> None:
    started = asyncio.Event()

    async def send() -> CallRecord:
        started.set()
        await asyncio.sleep(0.01)
        return record()

    caller = asyncio.create_task(store.answer(record().key, send))
    await started.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert await store.answer(record().key, send) == (record(), "shared")


async def test_a_failed_call_reaches_its_callers_and_is_tried_anew(store: CallStore) -> None:
    async def fail() -> CallRecord:
        raise ValueError("no")

    async def send() -> CallRecord:
        return record()

    results = await asyncio.gather(
        *(store.answer(record().key, fail) for _ in range(3)), return_exceptions=True
    )
    assert [type(result) for result in results] == [ValueError] * 3
    assert await store.answer(record().key, send) == (record(), "sent")


async def test_a_call_is_put_in_the_name_of_whoever_pays(path: Path) -> None:
    first, second = open_calls(path, "run one"), open_calls(path, "run two")
    assert (await first.put(record())).paid_by == "run one"
    assert (await second.put(record(answer="again"))).paid_by == "run one"
    assert [one.paid_by for one in second.records()] == ["run one"]
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("UPDATE calls SET paid_by = 'run two'")
    assert second.get(record().key) is None
    first.close()
    second.close()


async def test_a_file_from_before_there_were_payers_is_read_and_goes_on(path: Path) -> None:
    store = open_calls(path)
    await store.put(record("old"))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("ALTER TABLE calls DROP COLUMN paid_by")
        writer.execute("UPDATE schema_version SET version = 1")
    store = open_calls(path, "run")
    await store.put(record("new"))
    assert store.get(record("old").key) == record("old")
    assert store.get(record("new").key) == replace(record("new"), paid_by="run")
    assert store.corrupt_rows == 0
    store.close()


async def test_a_store_that_cannot_be_used_is_not_called_damaged(path: Path) -> None:
    store = open_calls(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("DROP TABLE calls")
    with pytest.raises(RunError, match="call store cannot be used") as read:
        store.get(record().key)
    with pytest.raises(RunError, match="call store cannot be used") as written:
        await store.put(record())
    assert not isinstance(read.value, RunCorrupt) and not isinstance(written.value, RunCorrupt)
    assert str(path) in written.value.where
    store.close()


async def test_records_come_in_the_order_of_their_start(store: CallStore) -> None:
    late = replace(record("b"), started_at="2026-01-02T00:00:00+00:00")
    await store.put(late)
    await store.put(record("a"))
    assert list(store.records()) == [record("a"), late]
