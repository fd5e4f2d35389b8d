"""Files whose rows were summed by an earlier rule are read on: nothing is paid for again."""

import hashlib
import json
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL

import pytest
from sqlalchemy.engine import URL

from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import CallResult, open_calls
from coreeval.tools.stores.call_tables import MIGRATIONS
from coreeval.tools.stores.sqlite import migrate, open_engine
from tests.tools.stores.call_samples import INSTRUCTIONS, record

COLUMNS = """key VARCHAR(64) NOT NULL PRIMARY KEY, draw INTEGER NOT NULL, role VARCHAR(64) NOT NULL,
request BLOB NOT NULL, response BLOB NOT NULL, valid BOOLEAN NOT NULL, error TEXT NOT NULL,
prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
model_returned TEXT NOT NULL, finish_reason TEXT NOT NULL, started_at VARCHAR(40) NOT NULL,
seconds FLOAT NOT NULL, checksum VARCHAR(64) NOT NULL"""
LATER = ("method", "tries", "usd", "logprobs")


def old_row(one: CallRecord, version: int) -> dict[str, object]:
    """Return a call as the first two schema versions wrote it."""
    row = {name: value for name, value in vars(one).items() if name not in LATER}
    if version == 1:
        del row["paid_by"]
    summed = {name: value for name, value in row.items() if name != "paid_by" or value}
    told = json.dumps(
        summed | {"seconds": float(one.seconds)},
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
    )
    return row | {
        "request": zlib.compress(one.request.encode()),
        "response": zlib.compress(one.response.encode()),
        "checksum": hashlib.sha256(told.encode()).hexdigest(),
    }


def write_old(path: Path, version: int, records: Sequence[CallRecord]) -> None:
    """Write a file as the first two schema versions did."""
    payer = "" if version == 1 else ", paid_by TEXT NOT NULL DEFAULT ''"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(f"CREATE TABLE calls ({COLUMNS}{payer})")
        writer.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        writer.execute(f"INSERT INTO schema_version VALUES ({version})")
        for one in records:
            row = old_row(one, version)
            named, places = ", ".join(row), ", ".join(f":{name}" for name in row)
            writer.execute(f"INSERT INTO calls ({named}) VALUES ({places})", row)


def call(text: str, **changes: object) -> CallRecord:
    """Return a call that had none of what came later."""
    return replace(record(text), **WITHOUT, **changes)  # type: ignore[arg-type]


WITHOUT: dict[str, object] = {"method": "", "tries": "", "usd": None, "logprobs": ""}
OLD = [
    call("short"),
    call("a payer", paid_by="run@then"),
    record("long " * 900, "\u00e9" * 5000, system=INSTRUCTIONS, **WITHOUT),
    call("bad", valid=False, error="truncated", seconds=0.1),
]


def expected(version: int) -> dict[str, CallRecord]:
    there = [one for one in OLD if version == 2 or not one.paid_by]
    return {one.key: one for one in there}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.db"


def statement(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(sql)


def found_in(path: Path) -> tuple[dict[str, CallRecord], int]:
    """Return the whole calls of a file, and how many rows are damaged."""
    with closing(open_calls(path)) as store:
        return {one.key: one for one in store.records()}, store.corrupt_rows


@pytest.mark.parametrize("version", [1, 2])
def test_every_row_of_an_old_file_is_whole(path: Path, version: int) -> None:
    write_old(path, version, list(expected(version).values()))
    for _ in range(2):
        assert found_in(path) == (expected(version), 0)


async def test_what_an_old_file_holds_is_not_asked_again_and_new_calls_join_it(path: Path) -> None:
    write_old(path, 2, OLD)

    async def send() -> CallResult:
        raise AssertionError("it was asked again")

    store = open_calls(path, "run")
    assert await store.answer(OLD[0].key, send) == (OLD[0], "stored")
    await store.put(record("new", system=INSTRUCTIONS))
    store.close()
    new = record("new", system=INSTRUCTIONS, paid_by="run")
    assert found_in(path) == (expected(2) | {new.key: new}, 0)


def test_a_file_that_was_brought_up_without_its_checksums_is_mended(path: Path) -> None:
    write_old(path, 2, OLD)
    engine = open_engine(str(URL.create("sqlite", database=str(path))))
    migrate(engine, MIGRATIONS[:4], what="the call store")
    engine.dispose()
    assert found_in(path) == (expected(2), 0)


@pytest.mark.parametrize(
    "change",
    [
        "response = X'00'",
        "request = 'text'",
        "valid = NOT valid",
        "valid = 2",
        "seconds = 7",
        "prompt_tokens = 'x'",
        "paid_by = 'somebody'",
        "checksum = ''",
        "method = 'x'",
    ],
)
def test_a_damaged_row_stays_damaged(path: Path, change: str) -> None:
    write_old(path, 2, OLD)
    if "method" in change:
        statement(path, "ALTER TABLE calls ADD COLUMN method TEXT NOT NULL DEFAULT ''")
    statement(path, f"UPDATE calls SET {change} WHERE key = '{OLD[0].key}'")
    whole = {one.key: one for one in OLD[1:]}
    assert found_in(path) == (whole, 1)


KILLED = """
import os, signal, sys
from pathlib import Path
from coreeval.tools.stores import old_checksums
from coreeval.tools.stores.call_store import open_calls

write, left = old_checksums.checksum, [3]

def killing(values):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(values)

old_checksums.AT_ONCE, old_checksums.checksum = 1, killing
open_calls(Path(sys.argv[1]))
"""


def test_a_kill_in_the_middle_leaves_the_file_as_it_was(path: Path) -> None:
    write_old(path, 2, OLD)
    died = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert died.returncode == -SIGKILL
    with closing(sqlite3.connect(path)) as reader:
        assert reader.execute("SELECT version FROM schema_version").fetchall() == [(2,)]
        sums = reader.execute("SELECT key, checksum FROM calls").fetchall()
    assert dict(sums) == {one.key: old_row(one, 2)["checksum"] for one in OLD}
    assert found_in(path) == (expected(2), 0)
