"""Asking: each draw through the store, bad answers kept and never used, nothing paid twice."""

import asyncio
import json
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import pytest

from coreeval.config import ModelConfig
from coreeval.errors import ModelCallError, NoValidAnswer
from coreeval.models import CallRef, InvalidAnswer, ModelClient, OutputSchema, record_calls
from coreeval.models.activity import limit_sample_time, pause_sample_clock
from coreeval.models.batch_dispatch import CallQueued
from coreeval.models.capabilities import Capabilities
from coreeval.models.chat import make_ai_message
from coreeval.models.client import LENGTH_FACTOR, Draw
from coreeval.models.dispatch import DispatchResult, ModelRequest
from coreeval.models.sample_cost import count_step_cost, limit_sample_cost
from coreeval.schema import Value
from coreeval.tools.stores.call_records import CallRecord, call_key
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.models.conftest import MakeClient
from tests.models.kit import GOOD as KIT_GOOD
from tests.models.kit import ask as ask_kit
from tests.models.kit import client_of
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, Request, refused, script
from tests.support.virtual_time import in_virtual_time


class Answer(Value):
    label: str


SHAPE = OutputSchema(Answer, name="answer")
ASKED = [{"role": "system", "content": "You label."}, {"role": "user", "content": "a text"}]
GOOD = '{"label": "joy"}'


def last_words(request: Request) -> str:
    messages = request["messages"]
    assert isinstance(messages, list)
    return str(messages[-1]["content"])


async def test_a_valid_answer_is_stored_and_reused(
    make_client: MakeClient, server: LLMServer, store: CallStore
) -> None:
    server.answers, begun = script(GOOD), time.monotonic()
    with record_calls() as first:
        assert await make_client().ask(ASKED, SHAPE) == Answer(label="joy")
    with record_calls() as second:
        assert await make_client().ask(ASKED, SHAPE) == Answer(label="joy")
    assert len(server.requests) == 1
    assert [call.cached for call in first + second] == [False, True]
    assert first[0].key == second[0].key
    (kept,) = store.records()
    assert (kept.valid, kept.error, kept.response) == (True, "", GOOD)
    assert (kept.role, kept.model_returned, kept.finish_reason) == (
        "extractor",
        "stub-2026-01",
        "stop",
    )
    assert kept.prompt_tokens > 0 and kept.completion_tokens > 0
    assert 0 < kept.seconds <= time.monotonic() - begun
    for call in first + second:
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "seconds", "method"):
            assert getattr(call, name) == getattr(kept, name)
    assert (kept.method, kept.tries, kept.usd) == ("json_schema", "", None)


@pytest.mark.parametrize(
    ("bad", "error", "told"),
    [
        (
            f"Sure! {GOOD}",
            "invalid: it is not one JSON object",
            "it is not one JSON object",
        ),
        ('{"label": 3}', "invalid: label: ", "valid string"),
        ("{}", "invalid: label", "label"),
        (" \n", "empty", "empty"),
        (Reply(content=None), "empty", "empty"),
        (Reply(content=GOOD, finish_reason="length"), "truncated", "cut off"),
        (Reply(content=GOOD, finish_reason="content_filter"), "refusal", "declined"),
        (Reply(content=None, refusal="I cannot."), "refusal", "declined"),
    ],
)
async def test_a_bad_answer_is_kept_and_asked_for_again(
    make_client: MakeClient,
    server: LLMServer,
    store: CallStore,
    bad: str | Reply,
    error: str,
    told: str,
) -> None:
    server.answers = script(bad, GOOD)
    with record_calls() as calls:
        assert await make_client().ask(ASKED, SHAPE) == Answer(label="joy")
    assert [call.draw for call in calls] == [0, 1]
    assert calls[0].error.startswith(error) and not calls[1].error
    by_draw = {record.draw: record for record in store.records()}
    assert by_draw[0].error.startswith(error) and not by_draw[0].valid
    assert by_draw[1].valid
    again = server.requests[1]["messages"]
    assert isinstance(again, list)
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert told in last_words(server.requests[1])

    assert await make_client().ask(ASKED, SHAPE) == Answer(label="joy")
    assert len(server.requests) == 2


async def test_four_bad_answers_are_the_end_of_it(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script("x" * 100_000)
    with pytest.raises(NoValidAnswer, match=r"no valid answer in 4 draws.*JSON"):
        await make_client().ask(ASKED, SHAPE)
    assert len(server.requests) == 4
    assert server.repeats == 0
    assert len(json.dumps(server.requests[-1])) < 5000


async def test_a_new_occasion_passes_over_bad_answers_and_begins_plainly(
    make_client: MakeClient, server: LLMServer, store: CallStore
) -> None:
    server.answers = script(*["no"] * 8, GOOD)
    for sent in (4, 8):
        with pytest.raises(NoValidAnswer):
            await make_client().ask(ASKED, SHAPE)
        assert len(server.requests) == sent
    for _ in range(2):
        with record_calls() as calls:
            assert await make_client().ask(ASKED, SHAPE) == Answer(label="joy")
        assert [call.draw for call in calls] == list(range(9))
    assert len(server.requests) == 9
    plain = [request["messages"] == ASKED for request in server.requests]
    assert plain == [True, False, False, False] * 2 + [True]
    assert sorted(one.draw for one in store.records() if not one.valid) == list(range(8))


@pytest.mark.parametrize("answered", [1, 2, 3])
async def test_a_chain_that_was_cut_off_goes_on_where_it_stood(
    make_client: MakeClient, server: LLMServer, answered: int
) -> None:
    server.answers = script(*["no"] * answered, refused(400, "cut off"))
    with pytest.raises(ModelCallError, match="cut off"):
        await make_client().ask(ASKED, SHAPE)
    cut_off = server.requests[-1]
    server.requests.clear()
    server.answers = script("no")
    with record_calls() as calls, pytest.raises(NoValidAnswer):
        await make_client().ask(ASKED, SHAPE)
    assert server.requests[0] == cut_off
    assert len(server.requests) == 4 - answered
    assert [call.cached for call in calls] == [True] * answered + [False] * (4 - answered)


@pytest.mark.parametrize(("settle", "sent"), [(True, 1), (False, 2)])
async def test_a_model_under_test_settles_on_its_first_answer(
    make_client: MakeClient, server: LLMServer, store: CallStore, settle: bool, sent: int
) -> None:
    server.answers = script("no", GOOD)
    opened = make_client()
    said = list[object]()
    for _ in range(2):
        client = ModelClient(
            opened.model,
            opened.dispatcher,
            store,
            Capabilities(store),
            role="target",
            max_draws=1,
            settle=settle,
        )
        said += await asyncio.gather(client.ask(ASKED, SHAPE), return_exceptions=True)
    assert isinstance(said[0], NoValidAnswer)
    assert isinstance(said[1], NoValidAnswer if settle else Answer)
    assert len(server.requests) == sent


async def test_bad_answers_that_are_shared_count_for_all_who_asked(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(Reply(content="no", delay_s=0.02))
    said = await asyncio.gather(
        *(make_client().ask(ASKED, SHAPE) for _ in range(4)), return_exceptions=True
    )
    assert [type(one) for one in said] == [NoValidAnswer] * 4
    assert len(server.requests) == 4


async def test_samples_that_wait_for_one_queued_question_do_not_share_an_error(
    make_client: MakeClient, store: CallStore
) -> None:
    class Queue:
        async def send(self, request: ModelRequest) -> DispatchResult:
            await asyncio.sleep(0.01)
            raise CallQueued("this question is waiting for a batch")

    client = ModelClient(make_client().model, Queue(), store, Capabilities(store), role="extractor")
    said = await asyncio.gather(
        *(client.ask(ASKED, SHAPE) for _ in range(3)), return_exceptions=True
    )
    assert [type(one) for one in said] == [CallQueued] * 3
    assert len({id(one) for one in said}) == 3
    for one in said:
        assert isinstance(one, CallQueued) and one.__context__ is None
        names = [frame.name for frame in traceback.extract_tb(one.__traceback__)]
        assert names.count("ask") == 1


async def test_a_call_names_the_run_that_paid_for_it(
    make_client: MakeClient, server: LLMServer, tmp_path: Path
) -> None:
    server.answers = script(GOOD)
    opened, found = make_client(), list[CallRef]()
    for payer in ("first", "second"):
        store = open_calls(tmp_path / "shared.db", payer)
        with record_calls() as calls:
            client = ModelClient(
                opened.model, opened.dispatcher, store, Capabilities(store), role="extractor"
            )
            await client.ask(ASKED, SHAPE)
        found += calls
        store.close()
    assert [(call.cached, call.paid_by) for call in found] == [(False, "first"), (True, "first")]


async def test_a_check_can_refuse_an_answer_of_the_right_shape(
    make_client: MakeClient, server: LLMServer
) -> None:
    def check(answer: Answer) -> None:
        if answer.label != "anger":
            raise InvalidAnswer(f"{answer.label} was not offered")

    server.answers = script(GOOD, '{"label": "anger"}')
    assert await make_client().ask(ASKED, SHAPE, check=check) == Answer(label="anger")
    assert "joy was not offered" in last_words(server.requests[1])


async def test_a_check_is_made_again_when_a_stored_answer_is_reused(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(GOOD, '{"label": "anger"}')
    assert await make_client().ask(ASKED, SHAPE) == Answer(label="joy")

    def check(answer: Answer) -> None:
        if answer.label == "joy":
            raise InvalidAnswer("no longer")

    assert await make_client().ask(ASKED, SHAPE, check=check) == Answer(label="anger")
    assert len(server.requests) == 2


async def test_equal_questions_at_once_are_paid_once(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(Reply(content=GOOD, delay_s=0.05))
    client, other = make_client(), make_client()
    with record_calls() as calls:
        await asyncio.gather(*((client, other)[n % 2].ask(ASKED, SHAPE) for n in range(10)))
    assert len(server.requests) == 1
    assert [call.cached for call in calls].count(False) == 1 and len(calls) == 10


@pytest.mark.parametrize(
    "other", [{"temperature": 0.0}, {"seed": 1}, {"max_tokens": 9}, {"structured": "json_mode"}]
)
async def test_other_parameters_are_another_question(
    make_client: MakeClient, server: LLMServer, other: dict[str, object]
) -> None:
    server.answers = script(GOOD)
    await make_client().ask(ASKED, SHAPE)
    await make_client(**other).ask(ASKED, SHAPE)
    assert len(server.requests) == 2


async def test_calls_are_noted_for_the_block_that_made_them(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(GOOD)
    client = make_client()

    async def step(text: str) -> list[str]:
        with record_calls() as calls:
            await client.ask([{"role": "user", "content": text}], SHAPE)
        return [call.key for call in calls]

    one, two = await asyncio.gather(step("one"), step("two"))
    assert len(one) == len(two) == 1 and one != two
    await client.ask(ASKED, SHAPE)  # outside of any block: noted nowhere, and no error


QUESTION = ({"role": "system", "content": "You label."}, {"role": "user", "content": "a text"})
FIRST = Draw(QUESTION, 100)


def said(text: str) -> CallRecord:
    return CallRecord(key="k", draw=0, role="r", request="{}", response=text, valid=False)


def chain(*reasons: str) -> list[Draw]:
    """Return the draws of a chain whose answers are bad for these reasons."""
    draws = [FIRST]
    for left, reason in zip(range(len(reasons), 0, -1), reasons, strict=True):
        draws.append(draws[-1].next_draw(said("bad"), reason, left=left))
    return draws


def test_the_first_draw_is_the_plain_question() -> None:
    assert (FIRST.messages, FIRST.max_tokens, FIRST.number) == (list(QUESTION), 100, 0)
    assert FIRST.is_plain and not FIRST.looser


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("refusal", "declined"),
        ("truncated", "cut off"),
        ("empty", "was empty"),
        ("label is missing", "cannot be used: label is missing"),
    ],
)
def test_a_bad_answer_is_shown_with_what_is_wrong(reason: str, told: str) -> None:
    again = FIRST.next_draw(said("my answer"), reason, left=2)
    assert again.messages[:2] == list(QUESTION)
    answer, wrong = again.messages[2:]
    assert answer == {"role": "assistant", "content": "my answer"}
    assert wrong["role"] == "user" and told in wrong["content"]
    assert wrong["content"].endswith("Tries left: 2.")
    assert not again.is_plain and again.number == 1


def test_turns_alternate_and_do_not_pile_up() -> None:
    roles = [message["role"] for message in chain("empty", "empty")[2].messages]
    assert roles == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(("text", "shown"), [("", "(no answer)"), ("x" * 9999, "x" * 2000)])
def test_what_is_shown_again_is_neither_empty_nor_long(text: str, shown: str) -> None:
    assert FIRST.next_draw(said(text), "empty", left=1).messages[2]["content"] == shown


@pytest.mark.parametrize(
    ("reasons", "limits"),
    [
        (["truncated", "truncated", "truncated"], [100, 200, 200, 200]),
        (["empty", "truncated"], [100, 100, 200]),
        (["truncated", "empty"], [100, 200, 200]),
        (["refusal", "invalid"], [100, 100, 100]),
    ],
)
def test_what_was_cut_off_may_be_longer_once(reasons: Sequence[str], limits: list[int]) -> None:
    assert LENGTH_FACTOR == 2
    assert [draw.max_tokens for draw in chain(*reasons)] == limits


@pytest.mark.parametrize(
    ("reasons", "looser"),
    [
        (["bad", "bad", "bad"], [False, False, True, True]),
        (["empty", "empty"], [False, False, True]),
        (["truncated", "bad"], [False, False, True]),
        (["bad", "truncated"], [False, False, False]),
        (["bad", "refusal"], [False, False, False]),
    ],
)
def test_a_second_answer_that_is_none_is_asked_for_less_strictly(
    reasons: Sequence[str], looser: list[bool]
) -> None:
    assert [draw.looser for draw in chain(*reasons)] == looser


def test_the_next_chain_begins_with_the_plain_question_and_counts_on() -> None:
    draw = chain("truncated", "bad")[-1].next_chain()
    assert draw == Draw(QUESTION, 100, number=3)
    assert draw.is_plain and (draw.max_tokens, draw.looser) == (100, False)


def test_no_two_draws_of_a_chain_are_the_same_request() -> None:
    sent = [str(draw.messages) for draw in chain("empty", "empty", "empty")]
    assert len(set(sent)) == 4


# -- other ways to the model ----------------------------------------------------------------------


class Batch:
    """Answers requests when there are so many of them."""

    def __init__(self, size: int) -> None:
        self.requests: list[ModelRequest] = []
        self._size, self._full = size, asyncio.Event()

    async def send(self, request: ModelRequest) -> DispatchResult:
        self.requests.append(request)
        if len(self.requests) == self._size:
            self._full.set()
        with pause_sample_clock():
            await self._full.wait()
        answer = make_ai_message(GOOD, finish="stop", model="batched", usage=None)
        return DispatchResult(
            answer=answer, method="json_schema", tries=("late",), usd=0.5, reservation=None
        )


class Slow(Batch):
    """Waits for its turn, and then for the answer."""

    def __init__(self) -> None:
        super().__init__(size=1)

    async def send(self, request: ModelRequest) -> DispatchResult:
        with pause_sample_clock():
            await asyncio.sleep(1000)
        return await super().send(request)


def test_whoever_waits_for_the_call_of_another_sample_has_time(store: CallStore) -> None:
    config = ModelConfig(model="openai:stub", base_url="http://127.0.0.1:9/v1")
    model = exchange(store, env={}).open_client(config, "label_judge").model
    client = ModelClient(model, Slow(), store, Capabilities(store), role="label_judge")

    async def wait() -> Answer:
        async with limit_sample_time(10):
            return await client.ask(ASKED, SHAPE)

    async def scene() -> list[Answer]:
        return list(await asyncio.gather(client.ask(ASKED, SHAPE), wait(), wait()))

    assert in_virtual_time(scene()) == [Answer(label="joy")] * 3


async def test_a_client_asks_through_any_dispatcher(
    make_client: MakeClient, store: CallStore, server: LLMServer
) -> None:
    model, batch = make_client().model, Batch(size=2)
    client = ModelClient(model, batch, store, Capabilities(store), role="extractor")
    questions = [[{"role": "user", "content": text}] for text in ("one", "two")]
    async with asyncio.timeout(20):
        said = await asyncio.gather(*(client.ask(question, SHAPE) for question in questions))
    assert said == [Answer(label="joy")] * 2
    assert not server.requests and [one.messages for one in batch.requests] == questions
    assert {one.options.name for one in batch.requests} == {"answer"}
    kept = {record.key: record for record in store.records()}
    assert kept.keys() == {one.key for one in batch.requests}
    for record in kept.values():
        assert (record.valid, record.method, record.tries) == (True, "json_schema", "late")
        assert (record.usd, record.model_returned) == (0.5, "batched")


@pytest.mark.parametrize(("logprobs", "told"), [(0, {}), (5, {"logprobs": 5})])
async def test_the_key_is_made_of_what_it_always_was(
    make_client: MakeClient,
    server: LLMServer,
    store: CallStore,
    logprobs: int,
    told: dict[str, int],
) -> None:
    """One word more in a request, and every stored call is asked and paid for again."""
    server.answers = script("no", GOOD)
    made = make_client(seed=7, max_tokens=50)
    client = ModelClient(
        made.model,
        made.dispatcher,
        store,
        Capabilities(store),
        role="extractor",
        logprobs=logprobs,
    )
    await client.ask(ASKED, SHAPE)
    first, second = sorted(store.records(), key=lambda record: record.draw)
    asked = {
        "provider": "openai",
        "endpoint": server.url,
        "model": "stub",
        "parameters": {"structured": "auto", "seed": 7, "max_tokens": 50, **told},
        "schema": {"name": "answer", "schema": SHAPE.schema},
        "messages": ASKED,
        "draw": 0,
    }
    assert json.loads(first.request) == asked
    assert json.loads(second.request) | {"messages": ASKED} == asked | {"draw": 1}
    assert [call_key(each.request) for each in (first, second)] == [first.key, second.key]


async def test_a_stored_call_without_a_price_costs_the_sample_what_its_tokens_cost_now(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = script(KIT_GOOD)
    spent = []
    for more in ({}, {"price": {"input": 1000, "output": 1000}}):
        client = client_of(exchange(store), server, **more)
        with limit_sample_cost(1000.0), count_step_cost(0.0) as costs:
            call = await ask_kit(client, "once")
        spent.append(sum(costs))
    tokens = call.prompt_tokens + call.completion_tokens
    assert call.cached and tokens
    assert spent == [0.0, pytest.approx(tokens / 1000)]
