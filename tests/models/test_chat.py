"""A model as LangChain sees it: callbacks, roles, and what it cannot do."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import collect_runs

from coreeval.config import ModelConfig, PriceConfig
from coreeval.models import Model, anthropic, open_model, openai
from coreeval.models.activity import ActiveCalls
from coreeval.models.budget import Budget, answer_cost
from coreeval.models.chat import check_usage
from coreeval.models.failures import CallFailure
from coreeval.models.model import IMPOSSIBLE_COUNT, MOST_TOKENS, RequestOptions, clamp_count
from coreeval.tools.stores.call_store import open_calls
from tests.models.kit import GOOD, SHAPE
from tests.support.llm_server import LLMServer, refused, script

FORM = RequestOptions(schema=SHAPE.schema, name="answer", method="json_schema", max_tokens=9)


def model(server: LLMServer) -> Model:
    return open_model(ModelConfig(model="openai:stub", base_url=server.url, seed=3), {})


class Watching(AsyncCallbackHandler):
    """Remembers what LangChain tells those who watch."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def on_chat_model_start(self, *args: object, **kwargs: object) -> None:
        self.told.append("start")

    async def on_llm_end(self, response: LLMResult, **kwargs: object) -> None:
        self.told.append(response.generations[0][0].text)

    async def on_llm_error(self, error: BaseException, **kwargs: object) -> None:
        self.told.append(type(error).__name__)


async def test_callbacks_see_each_request(server: LLMServer) -> None:
    server.answers = script(GOOD, refused(500))
    watching = Watching()
    chat = model(server).chat
    await chat.ainvoke("hi", config={"callbacks": [watching]}, form=FORM)
    with pytest.raises(CallFailure):
        await chat.ainvoke("hi", config={"callbacks": [watching]}, form=FORM)
    assert watching.told == ["start", GOOD, "start", "CallFailure"]


async def test_whoever_listens_around_a_question_hears_of_it(server: LLMServer) -> None:
    server.answers = script(GOOD)
    watching, chat = Watching(), model(server).chat

    async def ask(text: str) -> str:
        return str((await chat.ask([{"role": "user", "content": text}], FORM)).text)

    assert await RunnableLambda(ask).ainvoke("one", config={"callbacks": [watching]}) == GOOD
    assert watching.told == ["start", GOOD]
    with collect_runs() as heard:
        assert await ask("two") == GOOD
    assert [run.run_type for run in heard.traced_runs] == ["llm"]
    assert await ask("three") == GOOD
    assert len(heard.traced_runs) == 1 and watching.told == ["start", GOOD]


async def test_messages_of_langchain_are_sent_in_the_roles_of_the_wire(server: LLMServer) -> None:
    said: list[BaseMessage] = [SystemMessage("s"), HumanMessage("h"), AIMessage("a")]
    await model(server).chat.ainvoke([*said, HumanMessage("h")], form=FORM)
    roles = [("system", "s"), ("user", "h"), ("assistant", "a"), ("user", "h")]
    sent = [{"role": role, "content": content} for role, content in roles]
    assert server.requests[0]["messages"] == sent


async def test_it_says_what_it_needs(server: LLMServer) -> None:
    chat = model(server).chat
    with pytest.raises(NotImplementedError, match="ainvoke"):
        chat.invoke("hi", form=FORM)
    with pytest.raises(TypeError, match="form"):
        await chat.ainvoke("hi", form="json")
    with pytest.raises(TypeError, match="form"):
        await chat.ainvoke("hi")
    assert server.requests == []


def test_what_identifies_it_is_what_decides_its_answers(server: LLMServer) -> None:
    told = model(server).chat._identifying_params
    assert (told["model"], told["seed"], told["max_tokens"]) == ("stub", 3, 2048)


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
    assert answer_cost(answer, PRICE) is None


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
    usage = check_usage(prompt=prompt, completion=completion, cached=cached, written=written)
    if isinstance(usage, str):
        return
    assert 0 <= usage["input_tokens"] <= MOST_TOKENS >= usage["output_tokens"] >= 0
    details = usage["input_token_details"]
    assert details["cache_read"] + details["cache_creation"] <= usage["input_tokens"]


@given(st.integers())
def test_a_stored_count_is_brought_within_what_is_possible(tokens: int) -> None:
    assert 0 <= clamp_count(tokens) <= MOST_TOKENS
    assert clamp_count(tokens) == tokens or not 0 <= tokens <= MOST_TOKENS


async def test_an_answer_without_a_count_is_charged_what_was_put_aside(tmp_path: Path) -> None:
    config = ModelConfig(model="openai:m", base_url="http://127.0.0.1:9/v1", price=PRICE)
    model: Model = open_model(config, {})
    store = open_calls(tmp_path / "calls.db", "run")
    budget = Budget(store.ledger, {}, budget_usd=1.0)
    put_aside = await budget.reserve(model, "k", prompt_bytes=1000, max_tokens=100)
    assert put_aside is not None
    await budget.settle(put_aside, answer_cost(of_openai("-1000000000"), PRICE))  # type: ignore[arg-type]
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
    active_calls = ActiveCalls()
    for told in ("prompt tokens: '-5'", "prompt tokens: '-6'"):
        active_calls.record_impossible_count("m", told)
    [note] = active_calls.count_notes()
    assert note.startswith(
        "m: its endpoint reported an impossible token count (prompt tokens: '-5')"
    )
