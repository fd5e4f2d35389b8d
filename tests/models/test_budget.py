"""The budget: never exceeded whatever happens at once, never free by accident, never in the way."""

import asyncio
import random
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from coreeval.config import ModelConfig, PriceConfig
from coreeval.errors import BudgetSpent, RunError
from coreeval.models import Model, open_model
from coreeval.models.budget import Budget, answer_cost
from coreeval.tools.catalogs import MILLION, Price, Prices
from coreeval.tools.stores.call_ledger import Reservation, SpendingTotal
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.tools.stores.call_samples import record

A_DOLLAR = PriceConfig(input=0, output=MILLION)
"""A price at which a request may cost as many dollars as its answer may have tokens."""
PATIENCE_S = 20.0


def model(name: str = "m", price: PriceConfig | None = A_DOLLAR) -> Model:
    here = "http://127.0.0.1:9/v1"
    return open_model(ModelConfig(model=f"openai:{name}", base_url=here, price=price), {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.db"


@pytest.fixture
def store(path: Path) -> Iterator[CallStore]:
    store = open_calls(path, "run")
    yield store
    store.close()


def budget_of(store: CallStore, budget_usd: float | None, prices: Prices | None = None) -> Budget:
    return Budget(store.ledger, prices or {}, budget_usd=budget_usd)


async def reserve(budget_of: Budget, dollars: int, *, of: Model | None = None) -> Reservation:
    put_aside = await budget_of.reserve(of or model(), "k", prompt_bytes=0, max_tokens=dollars)
    assert put_aside is not None and put_aside.usd == dollars
    return put_aside


async def settle(pays: Budget, put_aside: Reservation, usd: float | None) -> None:
    """Settle a request as its caller does, whose record in the file says what it cost."""
    await pays.settle(put_aside, usd)
    pays._ledger.keep_as_spent(put_aside, usd)


def open_in(path: Path) -> float:
    """Return what another process would see put aside."""
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        (usd,) = reader.execute("SELECT coalesce(sum(usd), 0) FROM reservations").fetchone()
    return float(usd)


def test_a_price_in_the_models_own_config_comes_first(store: CallStore) -> None:
    told = Price(input=1, output=2, as_of=date(2026, 1, 1), source="s")
    pays = budget_of(store, None, {"openai:m": told})
    assert pays.find_price(model(price=None)) == told
    assert pays.find_price(model()) == A_DOLLAR
    assert pays.find_price(model("other", price=None)) is None


@pytest.mark.parametrize(
    ("details", "usd"),
    [
        ({}, 140.0),
        ({"cache_read": 20}, 102.0),
        ({"cache_creation": 20}, 160.0),
        ({"cache_read": 20, "cache_creation": 20}, 122.0),
    ],
)
def test_only_the_tokens_that_an_answer_counts_are_billed(
    details: InputTokenDetails, usd: float
) -> None:
    price = PriceConfig(input=2e6, output=4e6, cached_input=1e5, cache_write=3e6)
    usage = UsageMetadata(
        input_tokens=50, output_tokens=10, total_tokens=60, input_token_details=details
    )
    assert answer_cost(AIMessage("x", usage_metadata=usage), price) == pytest.approx(usd)


async def test_the_most_that_a_request_can_cost_is_in_the_file_when_it_may_be_sent(
    store: CallStore, path: Path
) -> None:
    told = PriceConfig(input=MILLION, output=2 * MILLION, cached_input=0, cache_write=3 * MILLION)
    put_aside = await budget_of(store, 9999).reserve(
        model(price=told), "k", prompt_bytes=100, max_tokens=10
    )
    assert put_aside is not None
    assert put_aside.usd == open_in(path) >= 100 * 3 + 10 * 2


@pytest.mark.parametrize(("budget", "price"), [(None, A_DOLLAR), (1.0, None)])
async def test_what_nothing_limits_is_not_reserved(
    store: CallStore, path: Path, budget: float | None, price: PriceConfig | None
) -> None:
    pays = budget_of(store, budget)
    assert await pays.reserve(model(price=price), "k", prompt_bytes=9, max_tokens=9) is None
    await pays.settle(None, 1.0)
    await pays.release(None)
    await pays.write_off(None)
    assert open_in(path) == 0


async def test_a_budget_can_be_used_up_to_the_last_cent_and_no_further(store: CallStore) -> None:
    pays = budget_of(store, 5)
    await settle(pays, await reserve(pays, 3), 3)
    await settle(pays, await reserve(pays, 2), 2)
    with pytest.raises(BudgetSpent, match=r"budget of 5\.0000 USD") as caught:
        await reserve(pays, 1)
    assert (caught.value.exit_code, caught.value.where) == (3, "run.budget_usd")
    assert (
        "openai:m, which may cost 1.0" in caught.value.message and "--budget" in caught.value.hint
    )


async def test_a_call_that_is_too_dear_is_refused_and_a_cheaper_one_goes_on(
    store: CallStore,
) -> None:
    pays = budget_of(store, 5)
    with pytest.raises(BudgetSpent):
        await reserve(pays, 6)
    await reserve(pays, 5)


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (lambda pays, one: settle(pays, one, 1.0), 9),
        (lambda pays, one: settle(pays, one, 0.0), 10),
        (lambda pays, one: settle(pays, one, None), 6),
        (lambda pays, one: pays.release(one), 10),
        (lambda pays, one: pays.write_off(one), 6),
    ],
    ids=["answered", "free", "not counted", "refused", "nobody knows"],
)
async def test_what_is_left_when_a_request_has_ended(
    store: CallStore, end: Callable[[Budget, Reservation], Awaitable[None]], left: int
) -> None:
    pays = budget_of(store, 10)
    await end(pays, await reserve(pays, 4))
    with pytest.raises(BudgetSpent):
        await reserve(pays, left + 1)
    await reserve(pays, left)


async def test_who_does_not_fit_waits_for_what_those_in_flight_leave_over(
    store: CallStore,
) -> None:
    pays = budget_of(store, 10)
    first, second = await reserve(pays, 5), await reserve(pays, 5)
    waiting = asyncio.create_task(reserve(pays, 4))
    await asyncio.sleep(0.01)
    await settle(pays, first, 5)
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await settle(pays, second, 1)
    assert (await waiting).usd == 4


async def test_who_waits_is_refused_once_nobody_can_leave_anything_over(store: CallStore) -> None:
    pays = budget_of(store, 10)
    first = await reserve(pays, 10)
    waiting = [asyncio.create_task(reserve(pays, 5)) for _ in range(3)]
    await asyncio.sleep(0.01)
    await pays.write_off(first)
    async with asyncio.timeout(PATIENCE_S):
        refused = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one) for one in refused] == [BudgetSpent] * 3


@pytest.mark.parametrize("seed", range(3))
async def test_the_budget_is_never_exceeded_by_many_at_once(
    store: CallStore, path: Path, seed: int
) -> None:
    chance, budget = random.Random(seed), 100.0
    pays, at_risk = budget_of(store, budget), dict[str, float]()

    async def call() -> None:
        one = await reserve(pays, chance.randint(1, 9))
        at_risk[one.id] = one.usd  # what it costs in the worst case, then what it did cost
        assert sum(at_risk.values()) <= budget
        assert open_in(path) >= one.usd
        await asyncio.sleep(chance.random() / 100)
        match chance.choice(["answer", "answer", "refusal", "timeout"]):
            case "answer":
                at_risk[one.id] *= chance.random()
                await settle(pays, one, at_risk[one.id])
            case "refusal":
                at_risk[one.id] = 0
                await pays.release(one)
            case "timeout":
                await pays.write_off(one)

    async with asyncio.timeout(PATIENCE_S):
        ended = await asyncio.gather(*(call() for _ in range(200)), return_exceptions=True)
    refused = [one for one in ended if one is not None]
    assert refused and {type(one) for one in refused} == {BudgetSpent}
    assert budget - 9 < sum(at_risk.values()) <= budget, "it stopped too early"


async def test_earlier_processes_of_the_run_are_counted(path: Path) -> None:
    first = open_calls(path, "run")
    await reserve(budget_of(first, 10), 6)
    first.close()
    for budget, left in ((10, 4), (20, 14)):
        store = open_calls(path, "run")
        with pytest.raises(BudgetSpent):
            await reserve(budget_of(store, budget), left + 1)
        store.close()
    store = open_calls(path, "another run")
    assert store.ledger.spent() == SpendingTotal(billed_usd=0, unknown_usd=0)
    await reserve(budget_of(store, 10), 10)
    store.close()


async def test_who_does_not_fit_after_an_earlier_process_waits_as_well(path: Path) -> None:
    first = open_calls(path, "run")
    pays = budget_of(first, 10)
    one = await reserve(pays, 4)
    await pays.settle(one, 4.0)
    await first.put(record(usd=4.0), one)
    await reserve(pays, 2)
    first.close()
    store = open_calls(path, "run")
    pays = budget_of(store, 10)
    in_flight = await reserve(pays, 4)
    waiting = asyncio.create_task(reserve(pays, 3))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await settle(pays, in_flight, 1)
    assert (await waiting).usd == 3
    store.close()


async def test_two_copies_of_a_run_at_work_at_once_share_one_budget(path: Path) -> None:
    """Each has looked at what is spent before the other spends; one of them settles its calls."""
    stores = [open_calls(path, "run") for _ in range(2)]
    purses = [budget_of(store, 20) for store in stores]
    paid, refused = 0, 0
    for number in range(100):
        which = number % 2
        try:
            put_aside = await reserve(purses[which], 1)
        except BudgetSpent as error:
            refused += 1
            assert "20.0000 USD is already spent or reserved" in error.message
            continue
        paid += 1
        await purses[which].settle(put_aside, 1.0)
        if which:
            await stores[which].put(record(str(number), usd=1.0), put_aside)
    assert (paid, refused) == (20, 80)
    with pytest.raises(BudgetSpent):
        await reserve(budget_of(stores[0], 20), 1)
    for store in stores:
        store.close()


async def test_whoever_is_cancelled_while_waiting_has_taken_nothing(store: CallStore) -> None:
    pays = budget_of(store, 10)
    first = await reserve(pays, 10)
    waiting = asyncio.create_task(reserve(pays, 5))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await pays.release(first)
    async with asyncio.timeout(PATIENCE_S):
        await reserve(pays, 10)
    assert waiting.cancelled()


async def test_a_reservation_that_could_not_be_committed_holds_nobody_up(
    store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not in the file was not sent, and those who wait must be told the truth."""
    pays = budget_of(store, 10)

    async def full(key: str, usd: float, *, budget_usd: float) -> Reservation:
        raise RunError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(store.ledger, "reserve", full)
        with pytest.raises(RunError):
            await reserve(pays, 6)
    async with asyncio.timeout(PATIENCE_S / 10):
        await reserve(pays, 10)


async def test_a_process_waits_for_others_that_share_the_budget(
    store: CallStore, path: Path
) -> None:
    other = open_calls(path, "run")
    try:
        theirs = budget_of(other, 10)
        put_aside = await reserve(theirs, 8)
        ours = Budget(store.ledger, {}, budget_usd=10, patience_s=60)  # as a worker begun anew
        waiting = asyncio.create_task(reserve(ours, 5))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await settle(theirs, put_aside, 2.0)
        async with asyncio.timeout(PATIENCE_S):
            assert (await waiting).usd == 5
    finally:
        other.close()


@pytest.mark.parametrize(("billed", "patience_s"), [(None, 0.5), (6.0, 60.0)])
async def test_a_process_does_not_wait_for_the_dead_nor_for_what_is_spent(
    store: CallStore, path: Path, billed: float | None, patience_s: float
) -> None:
    other = open_calls(path, "run")
    try:
        theirs = budget_of(other, 10)
        ours = Budget(store.ledger, {}, budget_usd=10, patience_s=patience_s)
        put_aside = await reserve(theirs, 8)
        if billed:  # its answer cost so much that nothing is left, whatever else is settled
            await other.put(record("k", usd=billed), put_aside)
            assert await reserve(theirs, 1)
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(BudgetSpent):
                await reserve(ours, 5)
    finally:
        other.close()


async def test_callers_wait_together_for_what_is_never_settled(
    store: CallStore, path: Path
) -> None:
    other = open_calls(path, "run")
    try:
        await reserve(budget_of(other, 10), 8)
        ours = Budget(store.ledger, {}, budget_usd=10, patience_s=1.5)
        began = asyncio.get_running_loop().time()
        said = await asyncio.gather(*(reserve(ours, 5) for _ in range(5)), return_exceptions=True)
        assert all(isinstance(each, BudgetSpent) for each in said)
        assert asyncio.get_running_loop().time() - began < 5 * 1.5
    finally:
        other.close()


async def test_calls_that_only_the_run_records_stay_spent(path: Path) -> None:
    for recorded, kept in ((4.0, 4.0), (4.0, 4.0), (3.0, 4.0), (6.0, 6.0)):
        store = open_calls(path, "run")
        await store.ledger.reserve_lost(recorded)
        assert store.ledger.spent() == SpendingTotal(billed_usd=0, unknown_usd=kept)
        with pytest.raises(BudgetSpent):
            await reserve(budget_of(store, 10), 11 - int(kept))
        store.close()
