"""Providers' own packages behind LangChain, over loopback servers."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from coreeval.config import ModelConfig
from coreeval.errors import (
    ConfigError,
    CredentialError,
    ModelCallError,
    ModelUnusable,
    RequestRejected,
)
from coreeval.models import ModelClient, OutputSchema, Retry, open_model, record_calls
from coreeval.models.dispatch import LiveDispatcher
from coreeval.schema import Value
from coreeval.tools.endpoints import EndpointPair
from coreeval.tools.http import MOST_BODY_BYTES
from coreeval.tools.stores.call_store import CallStore
from tests.models.conftest import KEY, MakeClient, Naps
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, refused, script


class Answer(Value):
    label: str


SHAPE = OutputSchema(Answer, name="answer")
ASKED = [{"role": "system", "content": "You label."}, {"role": "user", "content": "a text"}]
GOOD = '{"label": "joy"}'
JOY = Answer(label="joy")


@pytest.fixture
def make_client(server: LLMServer, store: CallStore, naps: Naps) -> MakeClient:
    keys = {"DEEPSEEK_API_KEY": KEY, "AZURE_OPENAI_API_KEY": KEY}
    connected = exchange(store, env=keys, retry=Retry(sleep=naps.sleep))

    def make(**options: object) -> ModelClient:
        given = {"model": "deepseek:stub", "base_url": server.url, **options}
        return connected.open_client(ModelConfig.model_validate(given), "extractor")

    return make


def azure(server: LLMServer) -> dict[str, object]:
    """Return the options of a provider whose package parses structured answers by itself."""
    return {
        "model": "azure_openai:stub",
        "base_url": server.anthropic_url,
        "extra": {"api_version": "2026-01-01"},
    }


# -- asking -------------------------------------------------------------------------------------


async def test_what_is_configured_is_sent(make_client: MakeClient, server: LLMServer) -> None:
    server.answers = script('{"label": "é"}')
    client = make_client(temperature=0.0, seed=5, max_tokens=99, extra={"top_p": 0.5})
    assert await client.ask(ASKED, SHAPE) == Answer(label="é")
    (sent,) = server.requests
    assert sent["messages"] == ASKED
    named = ("model", "temperature", "seed", "max_tokens", "top_p")
    assert [sent[name] for name in named] == ["stub", 0.0, 5, 99, 0.5]
    assert server.keys == [f"Bearer {KEY}"]
    assert client.model.name == "deepseek:stub"
    assert client.model.identity.endpoint == server.url


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("json_schema", "response_format"),
        ("function_calling", "tools"),
        ("json_mode", "response_format"),
        ("text", None),
    ],
)
async def test_each_method_brings_json_text(
    make_client: MakeClient, server: LLMServer, store: CallStore, method: str, key: str | None
) -> None:
    server.answers = script(GOOD)
    client = make_client(**azure(server), structured=method)
    assert await client.ask(ASKED, SHAPE) == JOY
    assert {"response_format", "tools"} & set(server.requests[0]) == ({key} if key else set())
    in_words = json.dumps(SHAPE.schema, separators=(",", ":"))
    told = in_words in json.dumps(server.requests[0]["messages"]).replace('\\"', '"')
    assert told == (method in ("json_mode", "text"))
    (kept,) = store.records()
    assert (kept.response, kept.method, kept.model_returned) == (GOOD, method, "stub-2026-01")
    assert kept.prompt_tokens > 0 and kept.completion_tokens == len(GOOD) // 4


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode", "text"])
@pytest.mark.parametrize(
    ("reply", "finish", "error"),
    [
        (Reply(content='{"label": "jo', finish_reason="length"), "length", "truncated"),
        (Reply(content=None, refusal="no"), "refusal", "refusal"),
    ],
)
async def test_an_answer_that_is_none_is_kept_as_such(
    make_client: MakeClient,
    server: LLMServer,
    store: CallStore,
    method: str,
    reply: Reply,
    finish: str,
    error: str,
) -> None:
    server.answers = script(reply, GOOD)
    client = make_client(**azure(server), structured=method, max_tokens=50)
    assert await client.ask(ASKED, SHAPE) == JOY
    first = min(store.records(), key=lambda record: record.draw)
    assert (first.finish_reason, first.error) == (finish, error)
    longer = 100 if error == "truncated" else 50
    assert [sent["max_completion_tokens"] for sent in server.requests] == [50, longer]


# -- what goes wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "error", "requests"),
    [
        (refused(401, "bad"), CredentialError, 1),
        (refused(402, "bad"), ModelUnusable, 1),
        (refused(404, "bad"), ModelUnusable, 1),
        (refused(400, "bad"), RequestRejected, 1),
        (
            Reply(status=429, error={"message": "bad", "code": "insufficient_quota"}),
            ModelUnusable,
            1,
        ),
        (refused(500, "bad"), ModelCallError, 8),
        (Reply(body='{"error": {"message": "bad"}}'), ModelCallError, 8),
    ],
)
async def test_what_each_failure_becomes(
    make_client: MakeClient, server: LLMServer, reply: Reply, error: type[Exception], requests: int
) -> None:
    server.answers = script(reply)
    with pytest.raises(error, match="bad") as caught:
        await make_client().ask(ASKED, SHAPE)
    assert type(caught.value) is error
    assert len(server.requests) == requests


@pytest.mark.parametrize("failure", [Reply(drop=True), Reply(body="<html>"), Reply(delay_s=0.5)])
async def test_what_nothing_is_known_about_is_tried_again(
    make_client: MakeClient, server: LLMServer, failure: Reply
) -> None:
    server.answers = script(failure, GOOD)
    assert await make_client(timeout_s=0.2).ask(ASKED, SHAPE) == JOY
    assert len(server.requests) == 2


async def test_a_throttled_request_waits_as_told(
    make_client: MakeClient, server: LLMServer, naps: Naps
) -> None:
    server.answers = script(refused(429, Retry_After="7"), GOOD)
    await make_client().ask(ASKED, SHAPE)
    assert len(naps) == 1 and 7 <= naps[0] <= 8


async def test_a_method_that_is_refused_gives_way_to_the_next(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(refused(400, "response_format is not supported"), GOOD)
    with record_calls() as calls:
        assert await make_client(**azure(server)).ask(ASKED, SHAPE) == JOY
    assert calls[0].method == "function_calling"


async def test_an_endpoint_that_is_not_there_stops_the_run(make_client: MakeClient) -> None:
    with pytest.raises(ModelUnusable, match="no server answers at this address"):
        await make_client(base_url="http://127.0.0.1:9/v1").ask(ASKED, SHAPE)


async def test_a_key_that_a_package_found_itself_is_not_repeated(
    server: LLMServer, store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    monkeypatch.setenv("DEEPSEEK_API_BASE", server.url)
    server.answers = script(refused(401, f"bad key {KEY}"))
    client = exchange(store).open_client(ModelConfig(model="deepseek:stub"), "extractor")
    with pytest.raises(CredentialError, match=r"bad key \*\*\*"):
        await client.ask(ASKED, SHAPE)
    assert server.keys == [f"Bearer {KEY}"]
    assert client.model.identity.endpoint == "langchain:deepseek"


async def test_an_endpoint_of_ones_own_gets_no_other_key(
    server: LLMServer, store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.answers = script(GOOD)
    config = ModelConfig(model="deepseek:stub", base_url=server.url)
    await exchange(store).open_client(config, "extractor").ask(ASKED, SHAPE)
    assert KEY not in server.keys[0]


@pytest.mark.parametrize(
    ("usage", "impossible"),
    [
        ({"prompt_tokens": "many", "completion_tokens": 3, "total_tokens": 15}, "'many'"),
        ({"prompt_tokens": 1.5, "completion_tokens": 3, "total_tokens": 4.5}, "'1.5'"),
        ({"prompt_tokens": 2**63, "completion_tokens": 2**63, "total_tokens": 2**64}, f"'{2**63}'"),
        ({"prompt_tokens": [1], "completion_tokens": {}, "total_tokens": True}, "'[1]'"),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 5,
                "total_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": "x"},
            },
            "cached tokens: 'x'",
        ),
        ({"prompt_tokens": 5, "completion_tokens": 5, "prompt_tokens_details": "no"}, None),
        ({"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}, None),
        ({"total_tokens": 10}, None),
        ("many", None),
        ([1, 2], None),
    ],
)
@pytest.mark.parametrize("method", ["json_schema", "text"])
@pytest.mark.parametrize("package", ["deepseek", "azure"])
async def test_odd_counts_cost_no_answer(
    make_client: MakeClient,
    server: LLMServer,
    store: CallStore,
    package: str,
    method: str,
    usage: object,
    impossible: str | None,
) -> None:
    """Packages calculate with counts before anybody can look, and raise over odd ones."""
    server.answers = script(Reply(content=GOOD, usage=usage))
    client = make_client(**(azure(server) if package == "azure" else {}), structured=method)
    assert await client.ask(ASKED, SHAPE) == JOY
    assert len(server.requests) == 1
    assert isinstance(client.dispatcher, LiveDispatcher)
    notes = client.dispatcher.active_calls.count_notes()
    assert len(notes) == (1 if impossible else 0)
    assert not impossible or impossible in notes[0]
    (kept,) = store.records()
    assert (kept.prompt_tokens, kept.completion_tokens) == (0, 0)


async def test_cached_tokens_are_counted_on(
    make_client: MakeClient, server: LLMServer, store: CallStore
) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 5, "total_tokens": 95}
    details = {"prompt_tokens_details": {"cached_tokens": 60}}
    server.answers = script(Reply(content=GOOD, usage=usage | details))
    assert await make_client(**azure(server)).ask(ASKED, SHAPE) == JOY
    (kept,) = store.records()
    assert (kept.prompt_tokens, kept.completion_tokens) == (90, 5)


# -- a provider with a protocol of its own ------------------------------------------------------


class Ollama:
    """Answers /api/chat as Ollama does, a line for each part."""

    def __init__(self) -> None:
        self.requests: list[dict[str, object]] = []
        self.done_reason = "stop"
        self.endless = False
        self.packed = False
        self.sent_bytes = 0

    async def chat(self, http: web.Request) -> web.StreamResponse:
        self.requests.append(await http.json())
        if self.endless:
            return await self._endless(http)
        said = {"role": "assistant", "content": GOOD}
        counts = {"prompt_eval_count": 11, "eval_count": 7, "done_reason": self.done_reason}
        lines = [
            {"model": "llama", "message": said, "done": False},
            {"model": "llama", "message": {**said, "content": ""}, "done": True, **counts},
        ]
        answer = web.Response(text="".join(f"{json.dumps(line)}\n" for line in lines))
        if self.packed:
            answer.enable_compression(web.ContentCoding.gzip)
        return answer

    async def _endless(self, http: web.Request) -> web.StreamResponse:
        """Send one line without end, until the client has had enough."""
        response = web.StreamResponse()
        await response.prepare(http)
        try:
            while self.sent_bytes < 10 * MOST_BODY_BYTES:
                await response.write(b" " * (1 << 16))
                self.sent_bytes += 1 << 16
        except (ConnectionResetError, ConnectionError):
            return response
        return response

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/api/chat", self.chat)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def test_ollama(store: CallStore) -> None:
    ollama = Ollama()
    async with ollama.running() as url:
        config = ModelConfig(model="ollama:llama", base_url=url, max_tokens=40)
        assert await exchange(store).open_client(config, "extractor").ask(ASKED, SHAPE) == JOY
    (sent,) = ollama.requests
    assert sent["options"] == {"num_predict": 40}
    assert isinstance(sent["format"], dict) and sent["format"]["properties"]
    (kept,) = store.records()
    assert (kept.response, kept.finish_reason, kept.model_returned) == (GOOD, "stop", "llama")
    assert (kept.prompt_tokens, kept.completion_tokens) == (11, 7)


async def test_ollama_says_when_it_was_cut_off_and_when_it_is_not_there(
    store: CallStore, naps: Naps
) -> None:
    ollama = Ollama()
    ollama.done_reason = "length"
    connected = exchange(store, retry=Retry(sleep=naps.sleep))
    async with ollama.running() as url:
        config = ModelConfig(model="ollama:llama", base_url=url)
        client = connected.open_client(config, "extractor", max_draws=1)
        with pytest.raises(ModelCallError, match="truncated"):
            await client.ask(ASKED, SHAPE)
    with pytest.raises(ModelUnusable):
        await client.ask([{"role": "user", "content": "another"}], SHAPE)


async def test_ollamas_own_client_reads_no_body_without_end(store: CallStore, naps: Naps) -> None:
    ollama = Ollama()
    ollama.endless = True
    connected = exchange(store, retry=Retry(sleep=naps.sleep, attempts=1))
    async with ollama.running() as url:
        config = ModelConfig(model="ollama:llama", base_url=url)
        with pytest.raises(ModelCallError, match="more than 8 MiB"):
            await connected.open_client(config, "extractor", max_draws=1).ask(ASKED, SHAPE)
    assert ollama.sent_bytes < 5 * MOST_BODY_BYTES


async def test_ollamas_own_client_unpacks_nothing(store: CallStore, naps: Naps) -> None:
    ollama = Ollama()
    ollama.packed = True
    connected = exchange(store, retry=Retry(sleep=naps.sleep, attempts=1))
    async with ollama.running() as url:
        config = ModelConfig(model="ollama:llama", base_url=url)
        with pytest.raises(
            ModelCallError, match="compressed, but CoreEval did not request compression: 'gzip'"
        ):
            await connected.open_client(config, "extractor", max_draws=1).ask(ASKED, SHAPE)


# -- opening ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "said", "hint"),
    [
        ("deepseak:x", "no provider 'deepseak'", "did you mean 'deepseek:x'?"),
        ("antropic:x", "no provider 'antropic'", "did you mean 'anthropic:x'?"),
        ("qqqq:x", "no provider 'qqqq'", "openai"),
        ("groq:x", "needs the langchain-groq package", "langchain-groq"),
        ("deepseek:x", "DEEPSEEK_API_KEY must be set", "environment"),
    ],
)
def test_what_cannot_be_opened(model: str, said: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        open_model(ModelConfig(model=model), {})
    assert hint in caught.value.hint


@pytest.mark.parametrize(("model", "near"), [("antropic:x", "anthropic"), ("groq:x", None)])
def test_without_langchain_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch, model: str, near: str | None
) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(ConfigError, match="needs LangChain") as caught:
        open_model(ModelConfig(model=model), {})
    assert "pip install 'coreeval[providers]'" in caught.value.hint
    assert ("did you mean" in caught.value.hint) == (near is not None)


@pytest.mark.parametrize(
    ("key", "value"),
    [("reasoning_effort", "low"), ("ca_file", "/ca.pem"), ("api_key_env", "SOME_KEY")],
)
def test_what_a_package_has_no_setting_for_is_refused(key: str, value: str) -> None:
    config = ModelConfig.model_validate({"model": "ollama:x", key: value})
    trusted = [EndpointPair("SOME_KEY", "langchain:ollama")]
    with pytest.raises(ConfigError, match=f"does not support {key}"):
        open_model(config, {"SOME_KEY": KEY}, trusted=trusted)


def test_a_key_that_is_named_must_be_there() -> None:
    with pytest.raises(CredentialError, match="MY_KEY"):
        open_model(ModelConfig(model="deepseek:x", api_key_env="MY_KEY"), {})


@pytest.mark.parametrize("model", ["gpt-x", "openai:", "offline", "offline:x", "spacy", ""])
def test_what_is_no_provider_and_name_lists_the_providers(model: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_model(ModelConfig(model=model), {})
    assert "openai:" in caught.value.hint and "anthropic:" in caught.value.hint


@pytest.mark.parametrize(
    "extra",
    [
        {"max_retries": 50},
        {"cache": True},
        {"timeout": 9000},
        {"request_timeout": 9000},
        {"configurable_fields": "any"},
        {"temperature": 2},
    ],
)
def test_extra_repeats_no_argument_of_ours(extra: dict[str, object]) -> None:
    config = ModelConfig.model_validate({"model": "deepseek:m", "temperature": 0, "extra": extra})
    with pytest.raises(ConfigError, match="is set by CoreEval itself"):
        open_model(config, {"DEEPSEEK_API_KEY": KEY})


@pytest.mark.parametrize(
    "extra",
    [
        {"base_url": "https://evil.example/v1"},
        {"api_base": "evil.example"},
        {"openai_proxy": "evil.example"},
        {"client_kwargs": {"headers": {}}},
        {"model_kwargs": {"nested": [{"x": "https://evil.example"}]}},
    ],
)
def test_extra_names_no_endpoint(extra: dict[str, object]) -> None:
    config = ModelConfig.model_validate({"model": "deepseek:m", "extra": extra})
    with pytest.raises(ConfigError, match="would decide where requests are sent") as caught:
        open_model(config, {"DEEPSEEK_API_KEY": KEY})
    assert "base_url" in caught.value.hint
