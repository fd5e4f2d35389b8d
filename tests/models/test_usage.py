"""Counts of tokens as endpoints tell them: believed, or charged the most that a call can cost."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.config import ModelConfig, PriceConfig
from coreeval.models import Model, open_model
from coreeval.models.anthropic import wire as anthropic
from coreeval.models.counts import IMPOSSIBLE_COUNT, MOST_TOKENS, possible_count
from coreeval.models.openai import wire as openai
from coreeval.models.purse import Purse, cost_of
from coreeval.models.traffic import Traffic
from coreeval.models.usage import usage_of
from coreeval.tools.stores.call_store import open_calls

ODD = ["-5", "9223372036854775808", "1e300", "NaN", "Infinity", '"many"', "1.5", "true", "[]"]
PRICE = PriceConfig(input=3, output=15, cached_input=0.3, cache_write=3.75)


def of_openai(prompt: str, completion: str = "2", cached: str = "0") -> object:
    usage = (
        f'{{"prompt_tokens": {prompt}, "completion_tokens": {completion}, '
        f'"prompt_tokens_details": {{"cached_tokens": {cached}}}}}'
    )
    choices = json.dumps([{"message": {"content": "yes"}, "finish_reason": "stop"}])
    return openai.read_answer(f'{{"choices": {choices}, "usage": {usage}}}'.encode(), (), "k")


def of_anthropic(prompt: str, completion: str = "2", cached: str = "0") -> object:
    usage = (
        f'{{"input_tokens": {prompt}, "output_tokens": {completion}, '
        f'"cache_read_input_tokens": {cached}}}'
    )
    content = json.dumps([{"type": "text", "text": "yes"}])
    return anthropic.read_answer(f'{{"content": {content}, "usage": {usage}}}'.encode(), (), "k")


@pytest.mark.parametrize("read", [of_openai, of_anthropic])
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_count_is_none_and_the_answer_counts(read, place: int, odd: str) -> None:  # type: ignore[no-untyped-def]
    told = ["7", "2", "0"]
    told[place] = odd
    answer = read(*told)
    assert answer.text == "yes" and answer.usage_metadata is None
    assert "tokens: " in answer.response_metadata[IMPOSSIBLE_COUNT]
    assert cost_of(answer, PRICE) is None


def test_more_cached_than_prompted_is_impossible() -> None:
    answer = of_openai("5", cached="9")
    assert answer.response_metadata[IMPOSSIBLE_COUNT] == (  # type: ignore[attr-defined]
        "9 of 5 prompt tokens cached or written"
    )


@pytest.mark.parametrize("prompt", ["null", "0"])
def test_an_endpoint_that_does_not_count_tells_nothing_impossible(prompt: str) -> None:
    answer = of_openai(prompt)
    assert answer.usage_metadata is None  # type: ignore[attr-defined]
    assert IMPOSSIBLE_COUNT not in answer.response_metadata  # type: ignore[attr-defined]


NUMBERS = st.one_of(st.integers(), st.floats(), st.text(max_size=5), st.none(), st.booleans())


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_what_is_believed_costs_neither_less_than_nothing_nor_without_bound(
    prompt: object, completion: object, cached: object, written: object
) -> None:
    usage = usage_of(prompt=prompt, completion=completion, cached=cached, written=written)
    if isinstance(usage, str):
        return
    assert 0 <= usage["input_tokens"] <= MOST_TOKENS >= usage["output_tokens"] >= 0
    details = usage["input_token_details"]
    assert details["cache_read"] + details["cache_creation"] <= usage["input_tokens"]


@given(st.integers())
def test_a_stored_count_is_brought_within_what_is_possible(tokens: int) -> None:
    assert 0 <= possible_count(tokens) <= MOST_TOKENS
    assert possible_count(tokens) == tokens or not 0 <= tokens <= MOST_TOKENS


async def test_an_answer_without_a_count_is_charged_what_was_put_aside(tmp_path: Path) -> None:
    config = ModelConfig(model="openai:m", base_url="http://127.0.0.1:9/v1", price=PRICE)
    model: Model = open_model(config, {})
    store = open_calls(tmp_path / "calls.db", "run")
    purse = Purse(store.ledger, {}, budget_usd=1.0)
    put_aside = await purse.reserve(model, "k", prompt_bytes=1000, max_tokens=100)
    assert put_aside is not None
    await purse.settle(put_aside, cost_of(of_openai("-1000000000"), PRICE))  # type: ignore[arg-type]
    assert store.ledger.spent().unknown_usd == put_aside.usd > 0
    store.close()


def test_a_stored_price_below_nothing_gives_no_money_back(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    open_calls(path, "run").close()
    with closing(sqlite3.connect(path)) as file, file:
        columns = (
            "key, draw, role, request, response, valid, error, prompt_tokens, cached_tokens, "
            "completion_tokens, model_returned, finish_reason, started_at, seconds, checksum, "
            "paid_by, usd"
        )
        for key, usd in (("a", -16000.0), ("b", 0.25), ("c", 1e300)):
            values = (key, 0, "r", b"", b"", 1, "", 1, 0, 1, "", "", "", 0.0, "", "run", usd)
            marks = ", ".join("?" * len(values))
            file.execute(f"INSERT INTO calls ({columns}) VALUES ({marks})", values)
    store = open_calls(path, "run")
    assert store.ledger.spent().billed_usd == 1000.25
    store.close()


def test_an_impossible_count_is_told_once_for_each_model() -> None:
    traffic = Traffic()
    for told in ("prompt tokens: '-5'", "prompt tokens: '-6'"):
        traffic.counted_impossibly("m", told)
    [note] = traffic.count_notes()
    assert note.startswith("m: its endpoint told an impossible count (prompt tokens: '-5')")
