"""What providers' packages answer and raise, as messages and failures of this program."""

import json
from collections.abc import Mapping

import openai
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from openai.types import CompletionUsage

from coreeval.models.chat import check_usage, make_ai_message
from coreeval.models.failures import (
    DECLINED,
    NO_MONEY,
    CallFailure,
    FailureKind,
    clean_message,
    describe_redirect,
    kind_from_status,
    names_method,
    names_unsupported,
)
from coreeval.models.http import to_connection_failure
from coreeval.models.model import IMPOSSIBLE_COUNT, FinishReason, ImpossibleCount
from coreeval.tools.clock import parse_retry_after

_REASONS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
"""Under which names packages tell why an answer ended."""
_FINISH: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
}


def to_answer(message: AIMessage) -> AIMessage:
    """Return the message with a tool's arguments as its text and all else by our names."""
    metadata = message.response_metadata
    refusal = message.additional_kwargs.get("refusal")
    return make_ai_message(
        str(refusal or _message_text(message)),
        finish="refusal" if refusal else _finish_reason(metadata),
        model=str(metadata.get("model_name") or metadata.get("model") or ""),
        usage=_find_impossible_count(metadata) or _parse_usage(message.usage_metadata),
    )


def _message_text(message: AIMessage) -> str:
    """Return the answer's text: a tool's arguments count as such, thoughts do not."""
    calls = [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls]
    calls += [call["args"] or "" for call in message.invalid_tool_calls]
    return "\n".join(calls) or str(message.text)


def _finish_reason(metadata: Mapping[str, object]) -> FinishReason:
    said = next((metadata[name] for name in _REASONS if metadata.get(name)), "")
    return _FINISH.get(str(said).rpartition(".")[2].lower(), "stop")


def _find_impossible_count(metadata: Mapping[str, object]) -> ImpossibleCount | None:
    """Return what our HTTP client found impossible about the counts."""
    told = metadata.get("token_usage")
    named = told.get(IMPOSSIBLE_COUNT) if isinstance(told, Mapping) else None
    return ImpossibleCount(named) if named else None


def _parse_usage(usage: UsageMetadata | None) -> UsageMetadata | ImpossibleCount | None:
    if usage is None:
        return None
    details = usage.get("input_token_details", {})
    return check_usage(
        prompt=usage["input_tokens"],
        completion=usage["output_tokens"],
        cached=details.get("cache_read", 0),
        written=details.get("cache_creation", 0),
    )


def to_failure(error: Exception, secret: str) -> CallFailure:
    """Return the failure that an error is, by its status where it has one.

    What nothing is known about may heal: it is tried again.
    """
    response = getattr(error, "response", None)
    status = _find_status(error, response)
    if status is None:
        return _failure_without_status(error, secret)
    kind = _failure_kind(error, status)
    said = describe_redirect(status, _find_header(response, "location")) or str(error)
    return CallFailure(
        kind,
        clean_message(said, secret),
        retry_after=parse_retry_after(_find_header(response, "retry-after")),
        refused="method" if kind == "unsupported" else None,
    )


def find_truncated_answer(error: Exception) -> AIMessage | None:
    """Return the answer that OpenAI's SDK keeps in an error because it met the length limit."""
    if not isinstance(error, openai.LengthFinishReasonError):
        return None
    done = error.completion
    said = done.choices[0].message.content or ""
    return make_ai_message(
        said, finish="length", model=done.model, usage=_completion_usage(done.usage)
    )


def _completion_usage(usage: CompletionUsage | None) -> UsageMetadata | ImpossibleCount | None:
    if usage is None:
        return None
    return check_usage(prompt=usage.prompt_tokens, completion=usage.completion_tokens)


def _failure_without_status(error: Exception, secret: str) -> CallFailure:
    told = clean_message(f"{type(error).__name__}: {error}", secret)
    if "content filter" in str(error):
        return CallFailure("declined", told, billed=True)
    if type(error) is ConnectionError:  # its subclasses say that a connection broke
        return CallFailure("unreachable", told)
    failure = to_connection_failure(error, secret)
    if failure.kind != "transient" or isinstance(error, openai.APIConnectionError):
        return failure
    return CallFailure("transient", told, billed=True)


def _failure_kind(error: Exception, status: int) -> FailureKind:
    codes = {str(getattr(error, name, "")) for name in ("code", "type")}
    kind = kind_from_status(status)
    if codes & NO_MONEY:
        return "quota"
    if kind == "rejected" and codes & DECLINED:
        return "declined"
    said = str(error)
    if kind == "rejected" and names_method(said) and names_unsupported(said):
        return "unsupported"
    return kind


def _find_status(error: Exception, response: object) -> int | None:
    """Return the HTTP status of an error, wherever its package keeps it."""
    places = (
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        getattr(response, "status_code", None),
        _boto_status(response),
    )
    return next((one for one in places if isinstance(one, int) and 300 <= one < 600), None)


def _boto_status(response: object) -> object:
    """Return the status where Amazon's SDK has it."""
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    return metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None


def _find_header(response: object, name: str) -> str | None:
    headers = getattr(response, "headers", None)
    found = headers.get(name) if isinstance(headers, Mapping) else None
    return found if isinstance(found, str) else None
