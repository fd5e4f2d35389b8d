"""The real chat model over a loopback server: what is sent, and what each failure becomes."""

import json
import logging
import traceback
from pathlib import Path

import httpx2
import openai
import pytest

from coreeval.config import ModelConfig
from coreeval.errors import (
    CredentialError,
    ModelCallError,
    ModelUnusable,
    NoValidAnswer,
    RequestRejected,
    UntrustedEndpoint,
)
from coreeval.models import ModelClient, OutputSchema, close_models, open_model
from coreeval.models.failures import CallFailure, FailureKind, RefusedOption, to_final_error
from coreeval.models.model import NO_KEY, RequestOptions, public_endpoint
from coreeval.models.openai import to_failure
from coreeval.schema import Value
from coreeval.tools.endpoints import EndpointPair
from tests.models.conftest import KEY, MakeClient, Naps
from tests.support.llm_server import LLMServer, Reply, refused, script


class Answer(Value):
    label: str


SHAPE = OutputSchema(Answer, name="answer")
ASKED = [{"role": "system", "content": "You label."}, {"role": "user", "content": "a text"}]
GOOD = '{"label": "joy"}'
SCHEMA = {
    "type": "object",
    "properties": {"label": {"type": "string"}},
    "required": ["label"],
    "additionalProperties": False,
}


async def test_only_what_is_configured_is_sent(make_client: MakeClient, server: LLMServer) -> None:
    server.answers = script(GOOD)
    await make_client().ask(ASKED, SHAPE)
    form = {"name": "answer", "strict": True, "schema": SCHEMA}
    assert server.requests == [
        {
            "model": "stub",
            "messages": ASKED,
            "max_tokens": 2048,
            "response_format": {"type": "json_schema", "json_schema": form},
        }
    ]
    assert server.keys == [f"Bearer {KEY}"]


async def test_parameters_are_sent_when_configured(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(GOOD)
    await make_client(temperature=0.0, seed=5, max_tokens=99).ask(ASKED, SHAPE)
    sent = server.requests[0]
    assert (sent["temperature"], sent["seed"], sent["max_tokens"]) == (0.0, 5, 99)


async def test_function_calling(make_client: MakeClient, server: LLMServer) -> None:
    server.answers = script(GOOD)
    client = make_client(structured="function_calling")
    assert await client.ask(ASKED, SHAPE) == Answer(label="joy")
    sent = server.requests[0]
    function = {"name": "answer", "strict": True, "parameters": SCHEMA}
    assert sent["tools"] == [{"type": "function", "function": function}]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "answer"}}
    assert "response_format" not in sent


async def test_json_mode_puts_the_schema_into_the_instructions(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(GOOD)
    assert await make_client(structured="json_mode").ask(ASKED, SHAPE) == Answer(label="joy")
    sent = server.requests[0]
    assert sent["response_format"] == {"type": "json_object"}
    messages = sent["messages"]
    assert isinstance(messages, list)
    assert json.dumps(SCHEMA, separators=(",", ":")) in messages[0]["content"]
    assert messages[1] == ASKED[1]


@pytest.mark.parametrize(
    "failure",
    [
        refused(500),
        refused(503),
        refused(408),
        refused(409),
        refused(429),
        Reply(drop=True),
        Reply(body="<html>gateway</html>"),
        Reply(body='"a string"'),
        Reply(body='{"choices": []}'),
        Reply(delay_s=0.5),
    ],
    ids=lambda reply: f"{reply.status}{'-drop' * reply.drop}{reply.body or ''}",
)
async def test_what_may_heal_is_tried_again(
    make_client: MakeClient, server: LLMServer, naps: Naps, failure: Reply
) -> None:
    server.answers = script(failure, failure, GOOD)
    assert await make_client(timeout_s=0.2).ask(ASKED, SHAPE) == Answer(label="joy")
    assert len(server.requests) == 3 and len(naps) == 2


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("7", 7, 8), ("Wed, 01 Jan 2020 00:00:00 GMT", 0, 1), ("soon", 0.5, 1)],
)
async def test_retry_after(
    make_client: MakeClient, server: LLMServer, naps: Naps, header: str, least: float, most: float
) -> None:
    server.answers = script(refused(429, Retry_After=header), GOOD)
    await make_client().ask(ASKED, SHAPE)
    assert len(naps) == 1 and least <= naps[0] <= most


def declined(status: int, code: str) -> Reply:
    return Reply(status=status, error={"message": "bad", "code": code})


@pytest.mark.parametrize(
    ("reply", "error", "requests"),
    [
        (refused(400, "bad"), RequestRejected, 1),
        (refused(422, "bad"), RequestRejected, 1),
        (declined(400, "content_filter"), NoValidAnswer, 1),
        (declined(422, "data_inspection_failed"), NoValidAnswer, 1),
        (declined(400, "invalid_prompt"), NoValidAnswer, 1),
        (declined(400, "context_length_exceeded"), RequestRejected, 1),
        (declined(403, "content_filter"), CredentialError, 1),
        (refused(401, "bad"), CredentialError, 1),
        (refused(403, "bad"), CredentialError, 1),
        (refused(404, "bad"), ModelUnusable, 1),
        (refused(402, "bad"), ModelUnusable, 1),
        (
            Reply(status=429, error={"message": "bad", "code": "insufficient_quota"}),
            ModelUnusable,
            1,
        ),
        (refused(500, "bad"), ModelCallError, 8),
    ],
)
async def test_what_each_failure_becomes(
    make_client: MakeClient,
    server: LLMServer,
    reply: Reply,
    error: type[Exception],
    requests: int,
) -> None:
    server.answers = script(reply)
    with pytest.raises(error, match="bad") as caught:
        await make_client().ask(ASKED, SHAPE)
    assert type(caught.value) is error
    assert len(server.requests) == requests


async def test_an_endpoint_that_is_not_there_stops_the_run(
    make_client: MakeClient, naps: Naps
) -> None:
    client = make_client(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelUnusable, match="no server answers at this address") as caught:
        await client.ask(ASKED, SHAPE)
    assert caught.value.where == "http://127.0.0.1:9/v1"
    assert len(naps) == 7


@pytest.mark.parametrize(
    "reply",
    [
        refused(401, f"Incorrect API key provided: {KEY}"),
        refused(500, f"{KEY} made us fail"),
        refused(400, f"no {KEY}"),
        Reply(drop=True),
        Reply(content=None, refusal="no"),
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
    seen = [str(caught.value), repr(caught.value), *traceback.format_exception(caught.value)]
    seen += [repr(client.model), repr(client.model.chat), str(client.model.chat), caplog.text]
    seen += [repr(vars(error)) for error in _chain(caught.value)]
    assert not [text for text in seen if KEY in text]
    files = list(tmp_path.glob("calls.db*"))
    assert files
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def test_the_public_endpoint_needs_a_key() -> None:
    config = ModelConfig(model="openai:gpt-x", api_key_env="MY_KEY")
    with pytest.raises(CredentialError, match="MY_KEY is not set"):
        open_model(config, {"OPENAI_API_KEY": KEY})
    with pytest.raises(UntrustedEndpoint, match="MY_KEY to https://api"):
        open_model(config, {"MY_KEY": KEY})
    trusted = [EndpointPair("MY_KEY", "https://api.openai.com")]
    model = open_model(config, {"MY_KEY": KEY}, trusted=trusted)
    assert model.identity.endpoint == "https://api.openai.com/v1"
    assert model.name == "openai:gpt-x"


@pytest.mark.parametrize("key", ["sk-caf\u00e9", "sk-a\nsk-b", "sk-\u201cquoted\u201d"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(CredentialError, match="OPENAI_API_KEY") as caught:
        open_model(ModelConfig(model="openai:gpt-x"), {"OPENAI_API_KEY": key})
    assert key not in str(caught.value)
    spaced = open_model(ModelConfig(model="openai:gpt-x"), {"OPENAI_API_KEY": f" {KEY}\n"})
    assert KEY not in repr(spaced)


async def test_an_endpoint_of_ones_own_needs_none(server: LLMServer) -> None:
    server.answers = script("hello")
    model = open_model(ModelConfig(model="openai:stub", base_url=server.url), {})
    form = RequestOptions(schema=SCHEMA, name="answer", method="text", max_tokens=9)
    answer = await model.chat.ainvoke("hi", form=form)
    assert answer.text == "hello"
    assert server.keys == [f"Bearer {NO_KEY}"]


def test_an_endpoint_is_shown_without_its_password() -> None:
    assert public_endpoint("https://me:pass@host:1/v1/?token=t") == "https://host:1/v1"


async def test_clients_are_shared_and_can_be_closed_and_opened_again(
    make_client: MakeClient, server: LLMServer
) -> None:
    server.answers = script(GOOD)
    first: ModelClient = make_client()
    await first.ask(ASKED, SHAPE)
    await close_models()
    await close_models()
    await first.ask([{"role": "user", "content": "another"}], SHAPE)
    assert len(server.requests) == 2


SECRET = "sk-do-not-show"


def failure(
    status: int, error: dict[str, object] | None = None, headers: dict[str, str] | None = None
) -> CallFailure:
    """Return what a response with a status and an `error` object becomes."""
    request = httpx2.Request("POST", "http://127.0.0.1:9/v1/chat/completions")
    response = httpx2.Response(status, request=request, headers=headers)
    told = error or {}
    raised = openai.APIStatusError(str(told.get("message", "no")), response=response, body=told)
    return to_failure(raised, SECRET)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, None, "rejected"),
        (400, "content_filter", "declined"),
        (401, None, "credential"),
        (402, None, "quota"),
        (403, None, "credential"),
        (404, None, "unknown"),
        (408, None, "transient"),
        (409, None, "transient"),
        (413, None, "rejected"),
        (422, "invalid_prompt", "declined"),
        (429, None, "throttled"),
        (429, "insufficient_quota", "quota"),
        (429, "rate_limit_exceeded", "throttled"),
        (500, None, "transient"),
        (502, None, "transient"),
        (503, None, "throttled"),
        (504, None, "transient"),
        (529, None, "throttled"),
    ],
)
def test_what_a_status_means(status: int, code: str | None, kind: FailureKind) -> None:
    found = failure(status, {"message": "no", "code": code})
    assert found.kind == kind
    assert found.retryable == (kind in ("transient", "throttled"))


def test_the_type_of_an_error_can_say_that_there_is_no_money() -> None:
    assert failure(429, {"message": "no", "type": "insufficient_quota"}).kind == "quota"


def test_how_long_to_wait_is_taken_over() -> None:
    assert failure(429, headers={"Retry-After": "7"}).retry_after == 7
    assert failure(429).retry_after is None


def test_a_message_is_one_short_line_without_the_key() -> None:
    said = failure(500, {"message": f"key {SECRET}\n" + "x" * 999}).message
    assert said.startswith("key *** xxx") and len(said) <= 300


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        ("Unsupported parameter: 'response_format'", "method"),
        ("response_format.type: json_schema is not supported by this model", "method"),
        ("Invalid value: 'json_schema'. Supported values are: 'json_object' and 'text'.", "method"),
        ("tools is not supported in this model. For a full list of supported features", "method"),
        ("tool_choice: Extra inputs are not permitted", "method"),
        ("Failed to parse grammar: unexpected end of input", "method"),
        ("Structured output is not available for this model", "method"),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "limit",
        ),
        ("Unrecognized request argument supplied: max_completion_tokens", "limit"),
        ("This model's maximum context length is 4096 tokens", None),
        ("temperature: unsupported value", None),
        ("messages: unknown role", None),
        ("bad", None),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_which_way_of_asking_an_endpoint_does_not_know(
    status: int, message: str, refused: RefusedOption | None
) -> None:
    found = failure(status, {"message": message})
    assert found.refused == refused
    otherwise = "too_long" if "context length" in message else "rejected"
    assert found.kind == ("unsupported" if refused else otherwise)


@pytest.mark.parametrize(
    "message",
    [
        "`max_tokens` must be less than or equal to `8192`",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        "max_tokens is too large: 9000. This model supports at most 8192 completion tokens.",
    ],
)
def test_a_limit_that_is_too_high_is_not_a_name_that_is_not_known(message: str) -> None:
    """Another name would not help, and would be remembered for this model for ever."""
    assert failure(400, {"message": message, "param": "max_tokens"}).refused is None


def test_the_parameter_that_is_named_beside_the_message_counts() -> None:
    assert failure(400, {"message": "unsupported", "param": "response_format"}).refused == "method"


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, None), (403, None), (429, None), (500, None), (400, "content_filter")],
)
def test_only_a_request_that_is_rejected_is_asked_otherwise(status: int, code: str | None) -> None:
    found = failure(status, {"message": "unsupported response_format", "code": code})
    assert found.refused is None


def test_a_text_that_is_too_long_is_no_question_of_the_way() -> None:
    error: dict[str, object] = {
        "message": "max_tokens must be lower: the context is exceeded",
        "code": "context_length_exceeded",
    }
    found = failure(400, error)
    assert found.refused is None
    final = to_final_error(found, model="m", endpoint="http://e", key_env="K")
    assert "the request exceeds the model's context" in str(final)


@pytest.mark.parametrize(
    ("status", "kind"), [(404, "web_page"), (405, "web_page"), (502, "transient")]
)
def test_an_error_that_is_a_web_page(status: int, kind: str) -> None:
    response = httpx2.Response(
        status, text="<html><title>Hi</title>", request=httpx2.Request("POST", "http://x")
    )
    found = to_failure(openai.APIStatusError("x", response=response, body=None), "secret")
    assert found.kind == kind and "a web page (HTML), 'Hi'" in found.message
