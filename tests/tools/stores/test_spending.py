"""Money put aside: committed before it is spent, settled with the call, counted after a kill."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from typing import IO

import pytest

from coreeval.errors import RunError
from coreeval.tools.stores.call_ledger import Reservation, SpendingTotal
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.heartbeat import PAID, Spend, SpendingReader
from tests.tools.stores.call_samples import record

KEY = record().key


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.db"


@pytest.fixture
def store(path: Path) -> Iterator[CallStore]:
    store = open_calls(path, "run")
    yield store
    store.close()


def open_in(path: Path) -> list[tuple[str, str, float]]:
    """Return the reservations that another process would see."""
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        return reader.execute("SELECT payer, key, usd FROM reservations").fetchall()


def statement(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(sql)


def spent(path: Path, payer: str = "run") -> SpendingTotal:
    """Return what the next process of a run is told."""
    store = open_calls(path, payer)
    try:
        return store.ledger.spent()
    finally:
        store.close()


async def test_a_reservation_is_in_the_file_before_anything_is_sent(
    store: CallStore, path: Path
) -> None:
    for _ in range(2):
        await store.ledger.reserve(KEY, 0.5)
    assert open_in(path) == [("run", KEY, 0.5)] * 2
    assert store.ledger.spent() == SpendingTotal(billed_usd=0.0, unknown_usd=1.0)


async def test_a_reservation_is_on_the_disk_before_anything_is_sent(
    store: CallStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a power cut took it, the next process would spend the same money again."""
    flushed, flush = list[str](), os.fsync

    def noted(file: IO[bytes]) -> None:
        flush(file)
        flushed.append(file.name)

    monkeypatch.setattr(os, "fsync", noted)
    await store.ledger.reserve(KEY, 0.5)
    assert flushed == [f"{path}-wal"]


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from coreeval.tools.stores.call_store import open_calls

async def work():
    await open_calls(Path(sys.argv[1]), "run").ledger.reserve("k", 0.5)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(work())
"""


def test_a_reservation_survives_a_kill_and_counts_as_spent(path: Path) -> None:
    died = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert died.returncode == -SIGKILL
    assert spent(path) == SpendingTotal(billed_usd=0.0, unknown_usd=0.5)


async def test_the_call_takes_the_place_of_its_reservation(store: CallStore, path: Path) -> None:
    await store.ledger.reserve("another", 0.125)
    reservation = await store.ledger.reserve(KEY, 0.5)
    await store.put(record(usd=0.25), reservation)
    assert open_in(path) == [("run", "another", 0.125)]
    assert store.ledger.spent() == SpendingTotal(billed_usd=0.25, unknown_usd=0.125)


async def test_both_are_in_one_transaction(store: CallStore, path: Path) -> None:
    reservation = await store.ledger.reserve(KEY, 0.5)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(
            "CREATE TRIGGER full BEFORE INSERT ON calls BEGIN SELECT * FROM nowhere; END"
        )
    with pytest.raises(RunError):
        await store.put(record(), reservation)
    assert store.get(KEY) is None
    assert open_in(path) == [("run", KEY, 0.5)]


async def test_answers_settle_what_was_put_aside_for_them(store: CallStore, path: Path) -> None:
    async def send() -> CallRecord:
        reservation = await store.ledger.reserve(KEY, 0.5)
        assert open_in(path) == [("run", KEY, 0.5)]
        return await store.put(record(usd=0.25), reservation)

    kept, origin = await store.answer(KEY, send)
    assert (kept.usd, origin) == (0.25, "sent")
    assert open_in(path) == []


async def test_what_is_given_back_is_not_spent(path: Path) -> None:
    store = open_calls(path, "run")
    kept, back = [await store.ledger.reserve(KEY, usd) for usd in (0.25, 0.5)]
    assert kept and back
    store.ledger.release(back)
    store.close()
    assert spent(path) == SpendingTotal(billed_usd=0.0, unknown_usd=kept.usd)


@pytest.mark.parametrize("settled", [0, 1, 3])
async def test_a_budget_holds_over_all_processes_of_a_payer(
    path: Path, settled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was settled before, between or after the sums that each of them has made."""
    monkeypatch.setattr("coreeval.tools.stores.call_ledger._MOST_ADDED_ANEW", 2)
    stores = [open_calls(path, payer) for payer in ("run", "run", "another")]
    for number in range(9):
        for store in stores[:2]:
            kept = await store.ledger.reserve(KEY, 0.5, budget_usd=4.0)
            assert bool(kept) == (4 * number + 2 * stores.index(store) < 16)
            if kept and number < settled:
                await store.put(record(f"{number} {stores.index(store)}", usd=0.5), kept)
    assert spent(path) == SpendingTotal(billed_usd=settled, unknown_usd=4 - settled)
    assert await stores[2].ledger.reserve(KEY, 4.0, budget_usd=4.0)
    for store in stores:
        store.close()


async def test_a_reservation_fits_again_when_rows_before_it_are_gone(path: Path) -> None:
    store = open_calls(path, "run")
    await store.put(record(usd=0.75))
    assert not await store.ledger.reserve(KEY, 0.5, budget_usd=1.0)
    statement(path, "DELETE FROM calls")
    assert await store.ledger.reserve(KEY, 0.5, budget_usd=1.0)
    store.close()


async def test_what_nobody_settles_counts_for_ever(path: Path) -> None:
    store = open_calls(path, "run")
    await store.ledger.reserve(KEY, 0.5)
    await store.put(record(usd=0.25))
    store.close()
    for _ in range(2):
        assert spent(path) == SpendingTotal(billed_usd=0.25, unknown_usd=0.5)


async def test_payers_have_their_own_money(path: Path) -> None:
    for payer, usd in (("one", 0.25), ("two", 0.5)):
        store = open_calls(path, payer)
        await store.ledger.reserve("in flight", 2 * usd)
        await store.put(record(payer, usd=usd))
        store.close()
    assert spent(path, "one") == SpendingTotal(billed_usd=0.25, unknown_usd=0.5)
    assert spent(path, "two") == SpendingTotal(billed_usd=0.5, unknown_usd=1.0)
    assert spent(path, "nobody") == SpendingTotal(billed_usd=0.0, unknown_usd=0.0)


async def test_what_ends_a_reservation_ends_no_other(store: CallStore, path: Path) -> None:
    await store.ledger.reserve(KEY, 0.5)
    await store.put(record(), Reservation(id="of somebody else", usd=0.5))
    assert open_in(path) == [("run", KEY, 0.5)]


async def test_a_call_that_another_process_stored_first_was_paid_for_twice(path: Path) -> None:
    """The answer of the first is kept; the money of the second is gone all the same."""
    first, second = open_calls(path, "one"), open_calls(path, "two")
    reservation = await second.ledger.reserve(KEY, 0.5)
    await first.put(record(answer="first", usd=0.25))
    kept = await second.put(record(answer="second", usd=0.125), reservation)
    first.close()
    second.close()
    assert (kept.response, kept.paid_by) == ("first", "one")
    assert spent(path, "one") == SpendingTotal(billed_usd=0.25, unknown_usd=0.0)
    told = spent(path, "two")
    assert told.billed_usd + told.unknown_usd >= 0.125


async def test_an_answer_of_unknown_price_still_costs_what_was_put_aside(path: Path) -> None:
    """An endpoint that counts no tokens must not be free for the next process."""
    store = open_calls(path, "run")
    reservation = await store.ledger.reserve(KEY, 0.5)
    await store.put(record(usd=None), reservation)
    store.close()
    told = spent(path)
    assert told.billed_usd + told.unknown_usd == 0.5


@pytest.mark.parametrize(
    "change", ["response = X'00'", "valid = 0", "usd = 0.125", "usd = 1000", "checksum = ''"]
)
async def test_what_a_damaged_row_cost_stays_spent_when_it_is_asked_again(
    path: Path, change: str
) -> None:
    first = open_calls(path, "first")
    await first.put(record(usd=0.25))
    first.close()
    statement(path, f"UPDATE calls SET {change}")
    before = spent(path, "first")
    store = open_calls(path, "run")
    assert store.get(KEY) is None
    await store.put(record(usd=0.5))
    store.close()
    told = spent(path, "first")
    assert told.billed_usd + told.unknown_usd == before.billed_usd > 0
    assert spent(path) == SpendingTotal(billed_usd=0.5, unknown_usd=0.0)


@pytest.mark.parametrize("usd", ["1e300", "-3", "NULL", "'x'", "0"])
async def test_what_cannot_be_a_price_is_not_carried_over(path: Path, usd: str) -> None:
    store = open_calls(path, "run")
    await store.put(record(usd=0.25))
    statement(path, f"UPDATE calls SET usd = {usd}, checksum = ''")
    assert store.get(KEY) is None
    await store.put(record(usd=0.5))
    store.close()
    assert spent(path) == SpendingTotal(billed_usd=0.5, unknown_usd=0.0)
    assert open_in(path) == []


async def test_a_budget_counts_a_damaged_row_and_the_one_in_its_place(path: Path) -> None:
    for usd in (0.25, 0.5, 0.75):
        store = open_calls(path, "run")
        statement(path, "UPDATE calls SET error = 'damaged'")
        assert store.get(KEY) is None
        await store.put(record(usd=usd), await store.ledger.reserve(KEY, 1.0))
        store.close()
    assert spent(path) == SpendingTotal(billed_usd=0.75, unknown_usd=0.75)


async def test_what_is_read_again_and_again_is_the_ledgers_sum(path: Path) -> None:
    spending = SpendingReader(path, "run", budget_usd=1.0)
    assert (spending.now().billed_usd, path.exists()) == (0.0, False)
    for payer in ("run", "another"):
        store = open_calls(path, payer)
        for number in range(3):
            usd = None if number == 1 else 0.1
            await store.put(replace(record(f"{payer}{number}"), usd=usd))
            paid, told = spent(path), spending.now()
            assert told.billed_usd == pytest.approx(paid.billed_usd)
            assert told.unpriced == (number > 0 or payer != "run")
        await store.ledger.reserve(KEY, 0.5)
        store.close()
    assert spending.now() == Spend(billed_usd=0.2, reserved_usd=0.5, unpriced=1, budget_usd=1.0)
    statement(path, "DELETE FROM calls WHERE rowid > 1")  # as a clean-up might
    assert spending.now().billed_usd == pytest.approx(spent(path).billed_usd) == 0.1


def test_the_index_holds_all_that_a_sum_is_made_of(path: Path, store: CallStore) -> None:
    with closing(sqlite3.connect(path)) as reader:
        plan = reader.execute(f"EXPLAIN QUERY PLAN {PAID}", {"payer": "run"}).fetchall()
    assert "COVERING INDEX calls_by_payer" in str(plan)
