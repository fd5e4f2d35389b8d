"""The words of chat completions: what is sent, and what came back."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from pydantic import BaseModel, Field, ValidationError

from coreeval.config import ModelConfig
from coreeval.models.chat import ai_message
from coreeval.models.counts import ImpossibleCount
from coreeval.models.failures import CallFailure, clean
from coreeval.models.forms import Finish, Form
from coreeval.models.http_client import MOST_LISTED
from coreeval.models.statuses import kind_told
from coreeval.models.telling import with_schema
from coreeval.models.usage import usage_of

Body = dict[str, object]
_BROKEN_OFF = "error"
"""What gateways call an end that the model did not come to."""
_FINISH: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


def request_body(config: ModelConfig, messages: list[dict[str, str]], form: Form) -> Body:
    """Return what is sent; parameters that are not configured are not."""
    limit = "max_tokens" if form.plain_limit else "max_completion_tokens"
    chosen = {
        "temperature": config.temperature,
        "seed": config.seed,
        "reasoning_effort": config.reasoning_effort,
    }
    body: Body = {"model": config.name, "messages": messages, limit: form.max_tokens}
    body |= {key: value for key, value in chosen.items() if value is not None}
    if form.logprobs:
        body |= {"logprobs": True, "top_logprobs": form.logprobs}
    if config.base_url is None:
        body["prompt_cache_key"] = _cache_key(messages)
    return body | _structured(messages, form) | config.extra


def _cache_key(messages: list[dict[str, str]]) -> str:
    """Return what keeps requests with the same instructions on one machine's prompt cache."""
    return hashlib.sha256(messages[0]["content"].encode()).hexdigest()[:32]


def _structured(messages: list[dict[str, str]], form: Form) -> Body:
    match form.method:
        case "json_schema":
            named = {"name": form.name, "strict": True, "schema": form.schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case "function_calling":
            function = {"name": form.name, "strict": True, "parameters": form.schema}
            choice = {"type": "function", "function": {"name": form.name}}
            return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
        case "json_mode":
            told = with_schema(messages, form.schema)
            return {"messages": told, "response_format": {"type": "json_object"}}
        case "text":
            return {"messages": with_schema(messages, form.schema)}


# -- what came back -----------------------------------------------------------------------------


class _Function(BaseModel):
    arguments: str | dict[str, Any] | None = None


class _Call(BaseModel):
    function: _Function | None = None


class _Message(BaseModel):
    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = Field(None, max_length=MOST_LISTED)


class _Choice(BaseModel):
    finish_reason: str | None = None
    message: _Message
    logprobs: object = None


class _Details(BaseModel):
    cached_tokens: Any = None
    cache_write_tokens: Any = None


class _Usage(BaseModel):
    """Counts of whatever type and size; `usage_of` judges them."""

    prompt_tokens: Any
    completion_tokens: Any
    prompt_tokens_details: _Details | None = None


class _Completion(BaseModel):
    """What is read of a completion; servers differ in all the rest."""

    model: str | None = None
    choices: list[_Choice] = Field(min_length=1, max_length=MOST_LISTED)
    usage: Any = None
    """Read apart: where it cannot be read, the answer still counts."""


class _Trouble(BaseModel):
    message: str = "the body holds an error"
    code: Any = None
    type: Any = None


class _Failed(BaseModel):
    """What some gateways answer with status 200."""

    error: _Trouble | str


def read_answer(
    body: bytes, headers: Iterable[tuple[bytes, bytes]], secret: str
) -> "AIMessage | CallFailure":
    """Read the body of a response with status 200."""
    try:
        done = _Completion.model_validate_json(body)
    except ValidationError:
        return _no_completion(body, secret)
    choice = done.choices[0]
    if choice.finish_reason == _BROKEN_OFF:
        return CallFailure("transient", "the endpoint broke off its answer", billed=True)
    return ai_message(
        choice.message.refusal or _text(choice.message),
        finish="refusal" if choice.message.refusal else _finish(choice),
        model=done.model or "",
        usage=usage_told(done.usage),
        headers=headers,
        logprobs=choice.logprobs,
    )


def _no_completion(body: bytes, secret: str) -> CallFailure:
    try:
        error = _Failed.model_validate_json(body).error
    except ValidationError:
        start = clean(body.decode(errors="replace"), secret)[:80]
        told = f"the answer is no chat completion: {start!r}"
        return CallFailure("transient", clean(told, secret), billed=True)
    trouble = _Trouble(message=error) if isinstance(error, str) else error
    kind = kind_told(trouble.code, trouble.type) or "transient"
    return CallFailure(kind, clean(trouble.message, secret), billed=True)


def _finish(choice: _Choice) -> Finish:
    return _FINISH.get(choice.finish_reason or "", "stop")


def _text(message: _Message) -> str:
    """Return the answer's text: a function's arguments count as such, thoughts do not."""
    if message.tool_calls:
        return "\n".join(_arguments(call.function) for call in message.tool_calls)
    if isinstance(message.content, list):
        return "".join(_part(part) for part in message.content)
    return message.content or ""


def _part(part: object) -> str:
    if isinstance(part, dict):
        part = part.get("text") if part.get("type") == "text" else ""
    return part if isinstance(part, str) else ""


def _arguments(function: _Function | None) -> str:
    said = function.arguments if function else None
    return json.dumps(said, ensure_ascii=False) if isinstance(said, dict) else said or ""


def usage_told(told: object) -> UsageMetadata | ImpossibleCount | None:
    """Return what the `usage` of a completion counts; None where it does not count."""
    try:
        usage = _Usage.model_validate(told)
    except ValidationError:
        return None
    if usage.prompt_tokens in (None, 0):
        return None  # it does not count
    details = usage.prompt_tokens_details
    return usage_of(
        prompt=usage.prompt_tokens,
        completion=usage.completion_tokens,
        cached=details.cached_tokens if details else 0,
        written=details.cache_write_tokens if details else 0,
    )
