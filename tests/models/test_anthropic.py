"""The real chat model over a loopback server that speaks Anthropic's messages."""

import json
import logging
import traceback
from pathlib import Path

import pytest

from coreeval.config import ModelConfig, PriceConfig
from coreeval.errors import (
    ConfigError,
    CredentialError,
    ModelCallError,
    ModelUnusable,
    NoValidAnswer,
    RequestRejected,
)
from coreeval.models import ModelClient, OutputSchema, Retry, open_model, record_calls
from coreeval.models.model import NO_KEY, RequestOptions
from coreeval.schema import Value
from coreeval.tools.stores.call_store import CallStore
from tests.models.conftest import KEY, MakeClient, Naps
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, refused, script


class Answer(Value):
    label: str


SHAPE = OutputSchema(Answer, name="answer")
LONG = "You label. " * 300
TOLD = {"role": "system", "content": LONG}
TEXT = {"role": "user", "content": "a text"}
ASKED = [TOLD, TEXT]
GOOD = '{"label": "joy"}'
JOY = Answer(label="joy")
SYSTEM = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
STRUCTURED = {"format": {"type": "json_schema", "schema": SHAPE.schema}}


@pytest.fixture
def make_client(server: LLMServer, store: CallStore, naps: Naps) -> MakeClient:
    connected = exchange(store, env={"ANTHROPIC_API_KEY": KEY}, retry=Retry(sleep=naps.sleep))

    def make(**options: object) -> ModelClient:
        given = {"model": "anthropic:stub", "base_url": server.anthropic_url, **options}
        return connected.open_client(ModelConfig.model_validate(given), "extractor")

    return make


# -- what is sent -------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
async def test_only_what_is_configured_is_sent(
    make_client: MakeClient, server: LLMServer, tail: str
) -> None:
    server.answers = script(GOOD)
    client = make_client(base_url=f"{server.anthropic_url}{tail}")
    assert await client.ask(ASKED, SHAPE) == JOY
    assert server.requests == [
        {
            "model": "stub",
            "max_tokens": 2048,
            "system": SYSTEM,
            "messages": [TEXT],
            "output_config": STRUCTURED,
        }
    ]
    assert server.keys == [f"Bearer {KEY}"]
    assert server.headers[0]["x-api-key"] == KEY
    assert client.model.identity.endpoint == server.anthropic_url


async def test_parameters_are_sent_when_configured(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(GOOD)
    extra = {"top_k": 5, "output_config": {"beside": 1}}
    client = make_client(temperature=0.0, reasoning_effort="low", max_tokens=99, extra=extra)
    await client.ask(ASKED, SHAPE)
    sent = server.requests[0]
    assert (sent["temperature"], sent["max_tokens"], sent["top_k"]) == (0.0, 99, 5)
    assert sent["output_config"] == {**STRUCTURED, "effort": "low", "beside": 1}


async def test_function_calling_forces_one_tool(make_client: MakeClient, server: LLMServer) -> None:
    server.answers = script(Reply(content='{"label": "é"}', thinking="a tool, then"))
    said = await make_client(structured="function_calling").ask(ASKED, SHAPE)
    assert said == Answer(label="é")
    sent = server.requests[0]
    assert sent["tools"] == [{"name": "answer", "input_schema": SHAPE.schema}]
    assert sent["tool_choice"] == {
        "type": "tool",
        "name": "answer",
        "disable_parallel_tool_use": True,
    }
    assert "output_config" not in sent


@pytest.mark.parametrize("method", ["json_mode", "text"])
async def test_other_methods_tell_the_schema_in_words(
    make_client: MakeClient, server: LLMServer, method: str
) -> None:
    server.answers = script(GOOD)
    assert await make_client(structured=method).ask(ASKED, SHAPE) == JOY
    blocks = server.requests[0]["system"]
    assert isinstance(blocks, list) and len(blocks) == 1
    assert json.dumps(SHAPE.schema, separators=(",", ":")) in blocks[0]["text"]
    assert blocks[0]["cache_control"] == {"type": "ephemeral"}
    assert not {"output_config", "tools"} & set(server.requests[0])


@pytest.mark.parametrize(("characters", "marked"), [(1535, False), (1536, True)])
async def test_instructions_that_some_model_may_cache_are_marked(
    make_client: MakeClient, server: LLMServer, characters: int, marked: bool
) -> None:
    server.answers = script(GOOD)
    await make_client().ask([{"role": "system", "content": "x" * characters}, TEXT], SHAPE)
    blocks = server.requests[0]["system"]
    assert isinstance(blocks, list)
    assert ("cache_control" in blocks[0]) is marked


async def test_an_answer_without_a_word_is_shown_again_as_such(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(" \n", GOOD)
    assert await make_client().ask([TEXT], SHAPE) == JOY
    assert "system" not in server.requests[0]
    turns = server.requests[1]["messages"]
    assert isinstance(turns, list)
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[1]["content"] == "(blank)"


# -- what comes back ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "finish", "error"),
    [
        (Reply(content=GOOD), "stop", ""),
        (Reply(content=GOOD, finish_reason="stop_sequence"), "stop", ""),
        (Reply(content=GOOD, finish_reason="length"), "length", "truncated"),
        (Reply(content=GOOD, finish_reason="pause_turn"), "length", "truncated"),
        (Reply(content=GOOD, finish_reason="model_context_window_exceeded"), "length", "truncated"),
        (Reply(content=None, refusal="no"), "refusal", "refusal"),
        (Reply(content=None, thinking="only that"), "stop", "empty"),
    ],
)
async def test_why_an_answer_ended(
    make_client: MakeClient,
    server: LLMServer,
    store: CallStore,
    reply: Reply,
    finish: str,
    error: str,
) -> None:
    server.answers = script(reply, GOOD)
    assert await make_client().ask(ASKED, SHAPE) == JOY
    first = min(store.records(), key=lambda record: record.draw)
    assert (first.finish_reason, first.error) == (finish, error)


async def test_thoughts_are_no_part_of_the_answer_and_tokens_are_told_apart(
    make_client: MakeClient, server: LLMServer, store: CallStore
) -> None:
    server.answers = script(Reply(content=GOOD, thinking="{}", cached=400, written=20))
    price = PriceConfig(input=1e6, output=0, cached_input=1e3, cache_write=2e6)
    with record_calls() as calls:
        await make_client(price=price.model_dump()).ask(ASKED, SHAPE)
    (kept,) = store.records()
    assert (kept.response, kept.model_returned) == (GOOD, "stub-20260101")
    fresh = len(json.dumps([TEXT])) // 4
    assert (kept.prompt_tokens, kept.cached_tokens) == (420 + fresh, 400)
    assert kept.completion_tokens == len(GOOD) // 4
    assert calls[0].usd == pytest.approx(fresh + 400 / 1000 + 20 * 2)


async def test_what_the_headers_say_about_limits_is_handed_on(
    make_client: MakeClient, server: LLMServer
) -> None:
    told = {"anthropic-ratelimit-requests-remaining": "7", "x-other": "1"}
    server.answers = script(Reply(content=GOOD, headers=told))
    form = RequestOptions(schema=SHAPE.schema, name="answer", method="text", max_tokens=9)
    answer = await make_client().model.chat.ainvoke(ASKED, form=form)
    assert answer.response_metadata["limits"] == {"anthropic-ratelimit-requests-remaining": "7"}


# -- what goes wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [
        refused(408),
        refused(409),
        refused(429),
        refused(500),
        refused(503),
        refused(529, "Overloaded"),
        Reply(status=429, body='{"error": {"details": {"error_code": "ramp_limit_exceeded"}}}'),
        Reply(drop=True),
        Reply(body="<html>gateway</html>"),
        Reply(body='{"choices": []}'),
        Reply(error={"type": "overloaded_error", "message": "Overloaded"}),
        Reply(delay_s=0.5),
    ],
    ids=lambda reply: f"{reply.status}{'-drop' * reply.drop}{reply.body or reply.error or ''}",
)
async def test_what_may_heal_is_tried_again(
    make_client: MakeClient, server: LLMServer, naps: Naps, failure: Reply
) -> None:
    server.answers = script(failure, failure, GOOD)
    assert await make_client(timeout_s=0.2).ask(ASKED, SHAPE) == JOY
    assert len(server.requests) == 3 and len(naps) == 2


async def test_retry_after_is_honoured(
    make_client: MakeClient, server: LLMServer, naps: Naps
) -> None:
    server.answers = script(refused(529, Retry_After="7"), GOOD)
    await make_client().ask(ASKED, SHAPE)
    assert len(naps) == 1 and 7 <= naps[0] <= 8


def failing(status: int, message: str = "bad", code: str = "") -> Reply:
    trouble = {"type": "some_error", "message": message, "details": {"error_code": code}}
    return Reply(status=status, body=json.dumps({"type": "error", "error": trouble}))


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (failing(400), RequestRejected),
        (failing(400, "bad: max_tokens: 9 > 8, the maximum allowed"), RequestRejected),
        (failing(400, "bad: output_config.effort: not supported"), RequestRejected),
        (failing(413), RequestRejected),
        (failing(400, "bad: Output blocked by content filtering policy"), NoValidAnswer),
        (failing(401), CredentialError),
        (failing(403), CredentialError),
        (failing(404), ModelUnusable),
        (Reply(status=307, headers={"Location": "http://bad/x"}, body="no"), ModelUnusable),
        (failing(402), ModelUnusable),
        (failing(429, code="contract_spend_limit_reached"), ModelUnusable),
        (failing(429, code="enforced_spend_limit_reached"), ModelUnusable),
        (failing(400, "bad: Your credit balance is too low to go on"), ModelUnusable),
    ],
)
async def test_what_each_failure_becomes(
    make_client: MakeClient, server: LLMServer, reply: Reply, error: type[Exception]
) -> None:
    server.answers = script(reply)
    with pytest.raises(error, match="bad") as caught:
        await make_client().ask(ASKED, SHAPE)
    assert type(caught.value) is error
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "message",
    [
        "output_config: Extra inputs are not permitted",
        "'stub' does not support output format",
        "output_config.format.schema: grammar is too complex",
    ],
)
async def test_an_endpoint_without_structured_output_is_asked_in_another_way(
    make_client: MakeClient, server: LLMServer, message: str
) -> None:
    server.answers = script(failing(400, message), GOOD)
    with record_calls() as calls:
        assert await make_client().ask(ASKED, SHAPE) == JOY
    assert "tools" in server.requests[1]
    assert (calls[0].method, calls[0].tries) == ("function_calling", message)


async def test_one_without_forced_tools_is_asked_in_words(
    make_client: MakeClient, server: LLMServer
) -> None:
    thinks = "Thinking may not be enabled when tool_choice forces tool use."
    server.answers = script(failing(400, "output_config: unknown"), failing(400, thinks), GOOD)
    assert await make_client().ask(ASKED, SHAPE) == JOY
    assert not {"output_config", "tools"} & set(server.requests[2])


async def test_an_endpoint_that_is_not_there_stops_the_run(
    make_client: MakeClient, naps: Naps
) -> None:
    with pytest.raises(ModelUnusable, match="no server answers at this address") as caught:
        await make_client(base_url="http://127.0.0.1:9/v1").ask(ASKED, SHAPE)
    assert caught.value.where == "http://127.0.0.1:9"
    assert len(naps) == 7


@pytest.mark.parametrize(
    "reply",
    [
        failing(401, f"invalid key: {KEY}"),
        failing(500, f"{KEY} made us fail"),
        Reply(body=f'{{"error": "{KEY}"}}'),
        Reply(drop=True),
    ],
)
async def test_no_key_in_errors_logs_or_store(
    make_client: MakeClient,
    server: LLMServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
) -> None:
    server.answers = script(reply)
    client = make_client()
    with (
        caplog.at_level(logging.INFO),
        pytest.raises((CredentialError, ModelCallError)) as caught,
    ):
        await client.ask(ASKED, SHAPE)
    assert server.keys[0] == f"Bearer {KEY}"
    seen = [str(caught.value), *traceback.format_exception(caught.value), caplog.text]
    seen += [repr(client.model), repr(client.model.chat), str(client.model.chat)]
    error: BaseException | None = caught.value
    while error is not None:
        seen.append(repr(vars(error)))
        error = error.__cause__ or error.__context__
    assert not [text for text in seen if KEY in text]
    files = list(tmp_path.glob("calls.db*"))
    assert files and not [file for file in files if KEY.encode() in file.read_bytes()]


# -- opening ------------------------------------------------------------------------------------


def test_the_public_endpoint_needs_a_key() -> None:
    with pytest.raises(CredentialError, match="ANTHROPIC_API_KEY is not set"):
        open_model(ModelConfig(model="anthropic:claude-x"), {"OPENAI_API_KEY": KEY})
    model = open_model(ModelConfig(model="anthropic:claude-x"), {"ANTHROPIC_API_KEY": KEY})
    assert model.identity.endpoint == "https://api.anthropic.com"


def test_a_seed_is_refused() -> None:
    config = ModelConfig(model="anthropic:claude-x", seed=7)
    with pytest.raises(ConfigError, match="seed") as caught:
        open_model(config, {"ANTHROPIC_API_KEY": KEY})
    assert "`seed`" in caught.value.hint


async def test_an_endpoint_of_ones_own_needs_no_key(
    server: LLMServer, store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    server.answers = script(GOOD)
    config = ModelConfig(model="anthropic:stub", base_url=server.anthropic_url)
    await exchange(store).open_client(config, "extractor").ask(ASKED, SHAPE)
    assert server.keys == [f"Bearer {NO_KEY}"]


async def test_short_instructions_are_not_marked_for_the_cache(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(GOOD)
    await make_client().ask([{"role": "system", "content": "You label."}, TEXT], SHAPE)
    assert server.requests[0]["system"] == [{"type": "text", "text": "You label."}]
