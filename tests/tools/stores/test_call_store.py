"""The call store: committed before used, damaged rows absent, one call for many callers."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from coreeval.errors import RunCorrupt, RunError
from coreeval.tools.stores.call_records import CallRecord, call_key
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.call_tables import calls
from tests.tools.stores.call_samples import INSTRUCTIONS, record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "odd ?name#%41" / "calls.db"


@pytest.fixture
def store(path: Path) -> Iterator[CallStore]:
    store = open_calls(path)
    yield store
    store.close()


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
    assert store.corrupt_rows == 0
    store.close()


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all" * 100)
    before = path.read_bytes()
    with pytest.raises(RunCorrupt) as caught:
        open_calls(path)
    assert str(path) in caught.value.where
    assert path.read_bytes() == before


@pytest.mark.timeout(30)
def test_a_pipe_in_its_place_is_refused_by_name(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(RunCorrupt, match="a named pipe") as caught:
        open_calls(path)
    assert str(path) in caught.value.where


def test_a_link_to_ones_own_store_is_followed(path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to("elsewhere.db")
    open_calls(path).close()
    assert path.is_symlink() and path.with_name("elsewhere.db").is_file()


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
        return await store.put(record())

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
        return await store.put(record())

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
        return await store.put(record())

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


# -- instructions that calls share --------------------------------------------------------------


def texts(path: Path) -> list[str]:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        return [sha for (sha,) in reader.execute("SELECT sha256 FROM texts")]


async def test_instructions_are_in_the_file_once_and_read_by_other_processes(
    store: CallStore, path: Path
) -> None:
    asked = [record(str(number), system=INSTRUCTIONS) for number in range(3)]
    other = open_calls(path)
    for one, where in zip(asked, (store, other, store), strict=True):
        await where.put(one)
    assert len(texts(path)) == 1
    third = open_calls(path)
    for each in (store, other, third):
        assert [each.get(one.key) for one in asked] == asked
    other.close()
    third.close()


@pytest.mark.parametrize(
    "change", ["body = x'00'", "body = x'0061'", "sha256 = replace(sha256, '0', '1')"]
)
async def test_damaged_instructions_make_their_calls_absent_and_come_back_with_the_next(
    path: Path, change: str
) -> None:
    store = open_calls(path)
    kept = await store.put(record(system=INSTRUCTIONS))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(f"UPDATE texts SET {change}")
    store = open_calls(path)
    assert store.get(kept.key) is None and list(store.records()) == []
    assert store.corrupt_rows == 1
    await store.put(record(system=INSTRUCTIONS))
    assert (store.corrupt_rows, store.get(kept.key)) == (0, kept)
    store.close()


# -- flipped bytes in the file ------------------------------------------------------------------


@pytest.mark.parametrize("bit", [0x01, 0x80], ids=["low bit", "high bit"])
@pytest.mark.parametrize("column", calls.c.keys())
async def test_a_flipped_bit_of_any_column_makes_the_row_absent(
    path: Path, column: str, bit: int
) -> None:
    """Also where what is left of a text is no text."""
    store = open_calls(path, "payer")
    await store.put(record(error="e"))
    flip(path, column, bit)
    assert store.get(record().key) is None
    assert list(store.records()) == []
    assert store.corrupt_rows == 1
    store.close()


def flip(path: Path, column: str, bit: int) -> None:
    """Flip a bit of a column's first byte, or of its number."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        value, kind, body = db.execute(
            f"SELECT {column}, typeof({column}), CAST({column} AS BLOB) FROM calls"
        ).fetchone()
        place = "CAST(? AS TEXT)" if kind == "text" else "?"
        wrong: object = bytes([body[0] ^ bit]) + body[1:]
        if kind in ("integer", "real"):
            wrong = value ^ bit if kind == "integer" else value + bit
        db.execute(f"UPDATE calls SET {column} = {place}", [wrong])


# -- what was found out about models ------------------------------------------------------------


async def test_what_was_learnt_is_known_by_endpoint_and_model(path: Path) -> None:
    store = open_calls(path)
    store.learn("here", "m", {"useless": "json_schema", "plain_limit": "yes"})
    store.learn("here", "m", {"useless": "json_schema json_mode"})
    store.learn("there", "m", {"useless": "text"})
    store.close()
    store = open_calls(path)
    assert store.ability("here", "m") == {"useless": "json_schema json_mode", "plain_limit": "yes"}
    assert store.ability("there", "m") == {"useless": "text"}
    assert store.ability("here", "n") == {}
    store.close()


def call_of_role(number: int, role: str) -> CallRecord:
    request = f'{{"messages":[],"schema":{{"n":{number}}},"role":"{role}"}}'
    return CallRecord(
        key=call_key(request), draw=0, role=role, request=request, response="{}", valid=True
    )


@pytest.mark.parametrize(("most", "expected"), [(2, {3, 4}), (99, set(range(5))), (0, set())])
async def test_the_last_ones_of_a_role(tmp_path: Path, most: int, expected: set[int]) -> None:
    kept = [call_of_role(number, role) for number in range(5) for role in ("composer", "target")]
    store = open_calls(tmp_path / "calls.db")
    for one in kept:
        await store.put(one)
    found = {one.key for one in store.newest("composer", most)}
    none = list(store.newest("extractor", 5))
    store.close()
    with closing(open_calls(tmp_path / "calls.db", "me")) as mine:
        own = await mine.put(call_of_role(99, "composer"))
        assert [one.key for one in mine.newest("composer", 5, ["me", "you"])] == [own.key]
        assert list(mine.newest("composer", 5, [])) == []
    assert found == {call_of_role(number, "composer").key for number in expected}
    assert none == []
