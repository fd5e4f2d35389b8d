"""The words of chat completions: what is asked, and what servers answer in their own ways."""

import json
from collections.abc import Callable

import pytest
from langchain_core.messages import AIMessage

from coreeval.config import METHODS, Method, ModelConfig
from coreeval.errors import ModelUnusable
from coreeval.models.anthropic import read_answer as read_message
from coreeval.models.failures import CallFailure, to_final_error
from coreeval.models.model import RequestOptions
from coreeval.models.openai import Body, read_answer, request_body

SCHEMA = {"type": "object", "properties": {"label": {"type": "string"}}}
ASKED = [{"role": "system", "content": "You label."}, {"role": "user", "content": "a text"}]
SECRET = "sk-do-not-show"
OWN = "http://127.0.0.1:9/v1"


def form(method: Method = "json_schema", *, plain_limit: bool = True) -> RequestOptions:
    return RequestOptions(
        schema=SCHEMA, name="answer", method=method, max_tokens=99, plain_limit=plain_limit
    )


def body(method: Method = "json_schema", *, plain_limit: bool = True, **options: object) -> Body:
    config = ModelConfig.model_validate({"model": "openai:m", "base_url": OWN, **options})
    return request_body(config, ASKED, form(method, plain_limit=plain_limit))


def read(content: object) -> AIMessage:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    answer = read_answer(raw, [], SECRET)
    assert isinstance(answer, AIMessage), answer
    return answer


def completion(**message: object) -> dict[str, object]:
    """Return no more than every server sends."""
    return {"choices": [{"message": message}]}


# -- what is asked ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "sent"),
    [
        ("json_schema", {"response_format"}),
        ("function_calling", {"tools", "tool_choice"}),
        ("json_mode", {"response_format"}),
        ("text", set()),
    ],
)
def test_each_method_sends_only_what_it_needs(method: Method, sent: set[str]) -> None:
    assert set(body(method)) == {"model", "messages", "max_tokens"} | sent


@pytest.mark.parametrize("method", METHODS)
def test_the_schema_is_in_every_request_once(method: Method) -> None:
    asked = json.dumps(body(method)).replace('\\"', '"')
    assert json.dumps(SCHEMA) in asked or json.dumps(SCHEMA, separators=(",", ":")) in asked
    assert asked.count("properties") == 1


@pytest.mark.parametrize("method", ["json_mode", "text"])
def test_where_words_tell_the_schema_they_end_the_instructions(method: Method) -> None:
    messages = body(method)["messages"]
    assert isinstance(messages, list)
    assert messages[0]["content"].startswith("You label.\n")
    assert messages[0]["content"].endswith(json.dumps(SCHEMA, separators=(",", ":")))
    assert messages[1:] == ASKED[1:]
    assert ASKED[0]["content"] == "You label.", "what was given was changed"


@pytest.mark.parametrize(
    ("plain", "name"), [(True, "max_tokens"), (False, "max_completion_tokens")]
)
def test_the_limit_has_one_of_two_names(plain: bool, name: str) -> None:
    sent = body(plain_limit=plain)
    assert sent[name] == 99
    assert len({"max_tokens", "max_completion_tokens"} & set(sent)) == 1


def test_further_parameters_are_sent_as_they_are_and_come_last() -> None:
    extra = {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}, "temperature": 2}
    sent = body(temperature=0.0, seed=3, reasoning_effort="low", extra=extra)
    assert {name: sent[name] for name in extra} == extra
    assert (sent["seed"], sent["reasoning_effort"]) == (3, "low")


def test_requests_with_the_same_instructions_share_a_place_in_the_public_cache() -> None:
    def key(*messages: str) -> object:
        asked = [{"role": "user", "content": text} for text in messages]
        return request_body(ModelConfig(model="openai:m"), asked, form()).get("prompt_cache_key")

    assert key("a", "b") == key("a", "c") != key("b", "b")
    assert "prompt_cache_key" not in body(), "a server of one's own may not know it"


@pytest.mark.parametrize(
    "name", ["gpt-5.6-terra", "gpt-5.6", "gpt-6-sol", "ft:gpt-6.1-sol:me", "gpt-10"]
)
@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode", "text"])
def test_models_that_cache_up_to_marks_get_one_at_the_end_of_the_instructions(
    name: str, method: Method
) -> None:
    config = ModelConfig(model=f"openai:{name}")
    sent = request_body(config, ASKED, form(method))
    told = request_body(ModelConfig(model="openai:gpt-5.5"), ASKED, form(method))["messages"]
    assert isinstance(told, list)
    mark = {"mode": "explicit"}
    part = {"type": "text", "text": told[0]["content"], "prompt_cache_breakpoint": mark}
    assert sent["messages"] == [{"role": "system", "content": [part]}, *ASKED[1:]]
    assert sent["prompt_cache_options"] == mark, "the end of the sample's own turn is written too"
    own = ModelConfig(model=f"openai:{name}", base_url="http://127.0.0.1:1/v1")
    assert request_body(own, ASKED, form(method))["messages"] == told


def test_questions_without_instructions_are_not_written_to_the_cache() -> None:
    config = ModelConfig(model="openai:gpt-6-sol")
    sent = request_body(config, ASKED[1:], form("text"))
    assert sent["messages"][0]["role"] == "user"  # type: ignore[index]
    assert isinstance(sent["messages"][0]["content"], str)  # type: ignore[index]
    assert sent["prompt_cache_options"] == {"mode": "explicit"}


@pytest.mark.parametrize(
    "name", ["gpt-5.5", "gpt-5", "gpt-4o", "gpt-4.1-mini", "o3", "ft:gpt-4.1:me", "gpt-oss-120b"]
)
def test_models_that_find_what_they_have_seen_get_no_mark(name: str) -> None:
    sent = request_body(ModelConfig(model=f"openai:{name}"), ASKED, form())
    assert sent["messages"] == ASKED
    assert "prompt_cache_options" not in sent


def test_options_of_the_cache_that_a_config_names_are_kept() -> None:
    extra = {"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}}
    config = ModelConfig(model="openai:gpt-6-sol", extra=extra)
    assert request_body(config, ASKED, form())["prompt_cache_options"] == {
        "mode": "implicit", "ttl": "30m",
    }  # fmt: skip


# -- what is answered ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "said"}, "said"),
        ({"content": None}, ""),
        ({}, ""),
        ({"content": "said", "reasoning_content": "thought"}, "said"),
        ({"content": "", "reasoning": "thought"}, ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": [{"type": "thinking", "text": "t"}, {"type": "text", "text": "a"}]}, "a"),
        ({"content": [{"type": "text"}, {"no": "type"}]}, ""),
        ({"content": "", "tool_calls": None}, ""),
        ({"content": "so", "tool_calls": [{"function": {"arguments": '{"a":1}'}}]}, '{"a":1}'),
        ({"tool_calls": [{"function": {"arguments": {"a": "\u00e9"}}}]}, '{"a": "\u00e9"}'),
        ({"tool_calls": [{"function": {"arguments": "{}"}}] * 2}, "{}\n{}"),
        ({"tool_calls": [{}]}, ""),
    ],
)
def test_the_text_of_an_answer(message: dict[str, object], text: str) -> None:
    assert read(completion(**message)).text == text


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("tool_calls", "stop"),
        ("eos_token", "stop"),
        (None, "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
    ],
)
def test_why_an_answer_ended(reason: str | None, finish: str) -> None:
    said = {"choices": [{"message": {"content": "x"}, "finish_reason": reason}]}
    assert read(said).response_metadata["finish_reason"] == finish


def test_a_refusal_is_one_whatever_else_is_said() -> None:
    answer = read(completion(content="{}", refusal="I will not."))
    assert (answer.text, answer.response_metadata["finish_reason"]) == ("I will not.", "refusal")


COUNTED = {"prompt_tokens": 7, "completion_tokens": 0}


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 2}, (7, 2, 0)),
        ({"prompt_tokens": 7, "completion_tokens": 0}, (7, 0, 0)),
        ({**COUNTED, "prompt_tokens_details": {"cached_tokens": 5}}, (7, 0, 5)),
        ({**COUNTED, "prompt_tokens_details": {"cached_tokens": None}}, (7, 0, 0)),
        ({**COUNTED, "prompt_tokens_details": None}, (7, 0, 0)),
    ],
)
def test_counted_tokens(usage: dict[str, object], counted: tuple[int, int, int]) -> None:
    found = read(completion(content="x") | {"usage": usage}).usage_metadata
    assert found is not None
    cached = found["input_token_details"]["cache_read"]
    assert (found["input_tokens"], found["output_tokens"], cached) == counted


@pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": {"prompt_tokens": 7}}])
def test_tokens_that_are_not_counted_are_not_zero(usage: dict[str, object]) -> None:
    assert read(completion(content="x") | usage).usage_metadata is None


def test_of_the_headers_those_about_limits_are_kept() -> None:
    headers = [
        (b"X-RateLimit-Remaining-Requests", b"3"),
        (b"anthropic-ratelimit-tokens-remaining", b"4"),
        (b"Set-Cookie", b"c"),
        (b"authorization", SECRET.encode()),
    ]
    answer = read_answer(json.dumps(completion(content="x")).encode(), headers, SECRET)
    assert isinstance(answer, AIMessage)
    assert answer.response_metadata["limits"] == {
        "x-ratelimit-remaining-requests": "3",
        "anthropic-ratelimit-tokens-remaining": "4",
    }


PAGE = b"\n<!DOCTYPE html><html><head><title>Sign in</title></head></html>"


@pytest.mark.parametrize("read", [read_answer, read_message])
def test_a_web_page_is_no_answer_of_a_model(read: Callable[..., object]) -> None:
    failure = read(PAGE, [], SECRET)
    assert isinstance(failure, CallFailure) and not failure.billed
    final = to_final_error(failure, model="m", endpoint="http://e", key_env="K")
    assert isinstance(final, ModelUnusable)
    assert "web page (HTML), 'Sign in'" in final.message and "base_url" in final.hint


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not a chat completion"),
        (b"<p>", "the answer is not a chat completion: '<p>'"),
        (b"\xff\xfe", "not a chat completion"),
        (b'{"choices": []}', "not a chat completion"),
        (b'{"choices": [{"text": "old"}]}', "not a chat completion"),
        (b'{"error": {"message": "overloaded"}}', "overloaded"),
        (b'{"error": {"code": 502}}', "the body contains an error"),
        (b'{"error": "upstream failed"}', "upstream failed"),
        (f'{{"error": "no {SECRET}"}}'.encode(), r"no \*\*\*"),
    ],
)
def test_a_body_that_is_no_completion_may_be_one_later_and_may_have_cost(
    body: bytes, says: str
) -> None:
    failure = read_answer(body, [], SECRET)
    assert isinstance(failure, CallFailure) and failure.retryable and failure.billed
    with pytest.raises(CallFailure, match=says):
        raise failure
