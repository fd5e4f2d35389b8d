"""The words of Anthropic's messages: what is sent, and what came back."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from pydantic import BaseModel, FailFast, ValidationError

from coreeval.config import ModelConfig
from coreeval.models.chat import ai_message
from coreeval.models.counts import ImpossibleCount
from coreeval.models.failures import CallFailure, clean
from coreeval.models.forms import Finish, Form
from coreeval.models.telling import with_schema
from coreeval.models.usage import plus, usage_of

Body = dict[str, object]
_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refusal",
}
_BLANK = "(blank)"
"""Stands for a turn without a word, which the endpoint would not take."""


def request_body(config: ModelConfig, messages: list[dict[str, str]], form: Form) -> Body:
    """Return what is sent; parameters that are not configured are not."""
    told = form.method in ("json_mode", "text")
    body: Body = {"model": config.name, "max_tokens": form.max_tokens}
    body |= _prompt(with_schema(messages, form.schema) if told else messages)
    if config.temperature is not None:
        body["temperature"] = config.temperature
    return _with_extra(body | _structured(config, form), config.extra)


def _prompt(messages: list[dict[str, str]]) -> Body:
    """Return the turns and, apart from them, the instructions, which the provider is to cache."""
    texts = [one["content"] for one in messages if one["role"] == "system"]
    blocks: list[Body] = [{"type": "text", "text": text} for text in texts if text.strip()]
    turns = [
        {"role": one["role"], "content": one["content"] if one["content"].strip() else _BLANK}
        for one in messages
        if one["role"] != "system"
    ]
    if not blocks:
        return {"messages": turns}
    blocks[-1]["cache_control"] = {"type": "ephemeral"}
    return {"system": blocks, "messages": turns}


def _structured(config: ModelConfig, form: Form) -> Body:
    output: Body = {"effort": config.reasoning_effort} if config.reasoning_effort else {}
    body: Body = {}
    if form.method == "json_schema":
        output["format"] = {"type": "json_schema", "schema": form.schema}
    elif form.method == "function_calling":
        body["tools"] = [{"name": form.name, "input_schema": form.schema}]
        body["tool_choice"] = {
            "type": "tool",
            "name": form.name,
            "disable_parallel_tool_use": True,
        }
    return body | ({"output_config": output} if output else {})


def _with_extra(body: Body, extra: Mapping[str, object]) -> Body:
    """Add the configured extras; those in `output_config` stand beside ours."""
    ours, theirs = body.get("output_config"), extra.get("output_config")
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {**body, **extra, "output_config": {**ours, **theirs}}
    return {**body, **extra}


# -- what came back -----------------------------------------------------------------------------


class _Block(BaseModel):
    """A part of an answer; of thoughts, only that they are neither text nor a tool's input."""

    type: str
    text: str | None = None
    input: dict[str, Any] | None = None


class _StopDetails(BaseModel):
    explanation: str | None = None


class _Usage(BaseModel):
    """Counts of whatever type and size; `usage_of` judges them."""

    input_tokens: Any = 0
    output_tokens: Any = 0
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None


class _Message(BaseModel):
    """What is read of a message; servers differ in all the rest."""

    model: str | None = None
    content: Annotated[list[_Block], FailFast()]
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    usage: Any = None
    """Read apart: where it cannot be read, the answer still counts."""


class _Trouble(BaseModel):
    message: str = "the body holds an error"


class _Failed(BaseModel):
    """What some gateways answer with status 200."""

    error: _Trouble | str


def read_answer(
    body: bytes, headers: Iterable[tuple[bytes, bytes]], secret: str
) -> AIMessage | CallFailure:
    """Read the body of a response with status 200."""
    try:
        done = _Message.model_validate_json(body)
    except ValidationError:
        return _no_message(body, secret)
    return ai_message(
        _text(done.content) or _explanation(done),
        finish=_FINISH.get(done.stop_reason or "", "stop"),
        model=done.model or "",
        usage=_usage(done.usage),
        headers=headers,
    )


def _no_message(body: bytes, secret: str) -> CallFailure:
    try:
        trouble = _Failed.model_validate_json(body).error
    except ValidationError:
        start = clean(body.decode(errors="replace"), secret)[:80]
        told = f"the answer is no message: {start!r}"
    else:
        told = trouble if isinstance(trouble, str) else trouble.message
    return CallFailure("transient", clean(told, secret), billed=True)


def _text(blocks: list[_Block]) -> str:
    """Return the answer's text: a tool's input counts as such, thoughts do not."""
    inputs = [one.input for one in blocks if one.type == "tool_use" and one.input is not None]
    if inputs:
        return "\n".join(json.dumps(one, ensure_ascii=False) for one in inputs)
    return "".join(one.text or "" for one in blocks if one.type == "text")


def _explanation(message: _Message) -> str:
    """Return why nothing was said, where the provider tells."""
    return (message.stop_details.explanation or "") if message.stop_details else ""


def _usage(told: object) -> UsageMetadata | ImpossibleCount | None:
    try:
        usage = _Usage.model_validate(told)
    except ValidationError:
        return None
    cached, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    return usage_of(
        prompt=plus(usage.input_tokens, cached, written),
        completion=usage.output_tokens,
        cached=cached,
        written=written,
    )
