"""The budget's arithmetic, whatever calls cost and endpoints say."""

import asyncio
import math
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from coreeval.config import ModelConfig, PriceConfig
from coreeval.errors import BudgetSpent
from coreeval.models import Model, open_model
from coreeval.models.budget import Budget, answer_cost
from coreeval.models.chat import add_counts, check_usage
from coreeval.models.model import MOST_TOKENS, ImpossibleCount, clamp_count, is_count
from coreeval.tools.catalogs import cost, worst_case_cost
from coreeval.tools.stores.call_ledger import Reservation
from coreeval.tools.stores.call_store import open_calls

DOLLARS = st.floats(0, 1000)
PRICES = st.builds(
    PriceConfig, input=DOLLARS, output=DOLLARS,
    cached_input=st.none() | DOLLARS, cache_write=st.none() | DOLLARS,
)  # fmt: skip
COUNTS = st.integers(0, MOST_TOKENS)
ODD = st.sampled_from(
    (math.nan, math.inf, -math.inf, -1, 2**63, MOST_TOKENS + 1, True, False, "5", "", b"5", 1.5,
     -0.5, [], {}, object())
)  # fmt: skip


def model(price: PriceConfig) -> Model:
    config = ModelConfig(model="openai:m", base_url="http://127.0.0.1:9/v1", price=price)
    return open_model(config, {})


# -- counts ---------------------------------------------------------------------------------------


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_possible_counts_are_kept(prompt: int, completion: int, cached: int, written: int) -> None:
    told = check_usage(prompt=prompt, completion=completion, cached=cached, written=written)
    assert isinstance(told, ImpossibleCount) == (cached + written > prompt)
    if not isinstance(told, ImpossibleCount):
        assert told["total_tokens"] == prompt + completion


@given(st.permutations([0, 1, 2, 3]), ODD, COUNTS)
def test_one_odd_count_makes_the_cost_unknown(places: list[int], odd: object, even: int) -> None:
    said: dict[str, object] = dict.fromkeys(("prompt", "completion", "cached", "written"), 0)
    said["prompt"] = even
    said[[*said][places[0]]] = odd
    assert isinstance(check_usage(**said), ImpossibleCount)
    assert not is_count(add_counts(even, odd)) and not is_count(add_counts(odd, even))


@given(st.integers())
def test_a_stored_count_is_taken_within_what_is_possible(tokens: int) -> None:
    assert is_count(clamp_count(tokens))
    assert clamp_count(tokens) == tokens or not is_count(tokens)


@given(st.permutations([1, 2, None, 40, 0]))
def test_counts_add_up_in_any_order(parts: list[object]) -> None:
    assert add_counts(*parts) == 43


# -- prices ---------------------------------------------------------------------------------------


@given(PRICES, COUNTS, st.data())
def test_a_cost_is_at_most_the_worst_case(
    price: PriceConfig, tokens: int, data: st.DataObject
) -> None:
    cached = data.draw(st.integers(0, tokens))
    written = data.draw(st.integers(0, tokens - cached))
    completion = data.draw(COUNTS)
    if price.cached_input is not None and price.cached_input > price.input:
        cached, written = 0, cached + written if price.cache_write is not None else 0
    spent = cost(price, prompt=tokens, cached=cached, written=written, completion=completion)
    most = worst_case_cost(price, prompt_bytes=tokens, max_tokens=completion)
    assert 0 <= spent <= most * (1 + 1e-12)


@given(PRICES)
def test_an_answer_without_a_count_has_no_known_cost(price: PriceConfig) -> None:
    free = price == PriceConfig(input=0, output=0)
    assert answer_cost(AIMessage("x"), price) == (0.0 if free else None)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("key", ["input", "output", "cached_input", "cache_write"])
def test_no_price_is_endless(key: str, bad: float) -> None:
    with pytest.raises(ValueError, match=key):
        PriceConfig.model_validate({"input": 1, "output": 1, key: bad})


# -- the budget -----------------------------------------------------------------------------------

ENDS = st.sampled_from(("settle", "settle unknown", "give back", "write off"))
CALLS = st.lists(
    st.tuples(st.integers(0, 9), ENDS, st.floats(0, 1)), max_size=12
)  # dollars put aside, how it ends, share that is billed


@settings(max_examples=40)
@given(CALLS, st.floats(0, 30), st.integers(0, 2**32 - 1))
@example([(9, "settle", 1.0)] * 3, 27.0, 0)
def test_money_is_never_made_or_lost(
    calls: Sequence[tuple[int, str, float]], budget_usd: float, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_spend(Path(folder), calls, budget_usd, random.Random(seed)))


async def _spend(
    folder: Path, calls: Sequence[tuple[int, str, float]], budget_usd: float, chance: random.Random
) -> None:
    store = open_calls(folder / "calls.db", "run")
    try:
        budget = Budget(store.ledger, {}, budget_usd=budget_usd)
        asked = model(PriceConfig(input=0, output=1_000_000))
        spent, open_ = 0.0, list[tuple[Reservation, str, float]]()
        for dollars, end, share in calls:
            if spent + sum(one.usd for one, _, _ in open_) + dollars > budget_usd and open_:
                spent += await _end(budget, open_.pop(chance.randrange(len(open_))))
            fits = spent + sum(one.usd for one, _, _ in open_) + dollars <= budget_usd
            if not fits and not open_:
                with pytest.raises(BudgetSpent):
                    await budget.reserve(asked, "k", prompt_bytes=0, max_tokens=dollars)
            elif fits:
                kept = await budget.reserve(asked, "k", prompt_bytes=0, max_tokens=dollars)
                assert kept is not None and kept.usd == dollars
                open_.append((kept, end, share))
            _check(budget, spent, open_, budget_usd)
        chance.shuffle(open_)
        while open_:
            spent += await _end(budget, open_.pop())
            _check(budget, spent, open_, budget_usd)
        assert budget._in_flight == 0
    finally:
        store.close()


async def _end(budget: Budget, call: tuple[Reservation, str, float]) -> float:
    """End a call, and return what it has cost."""
    kept, end, share = call
    if end == "give back":
        await budget.release(kept)
        return 0.0
    if end == "write off":
        await budget.write_off(kept)
        return kept.usd
    usd = None if end == "settle unknown" else share * kept.usd
    await budget.settle(kept, usd)
    budget._ledger.keep_as_spent(kept, usd)  # as the record of the call would
    return kept.usd if usd is None else usd


def _check(
    budget: Budget, spent: float, open_: Sequence[tuple[Reservation, str, float]], budget_usd: float
) -> None:
    put_aside = sum(one.usd for one, _, _ in open_)
    assert budget._taken == pytest.approx(spent + put_aside, abs=1e-9)
    assert -1e-9 <= budget._taken <= budget_usd + 1e-9
    assert budget._in_flight == len(open_)
