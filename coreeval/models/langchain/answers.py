"""A message of LangChain's, as the rest of this program reads answers."""

import json
from collections.abc import Mapping

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from coreeval.models.chat import ai_message
from coreeval.models.counts import IMPOSSIBLE_COUNT, ImpossibleCount
from coreeval.models.forms import Finish
from coreeval.models.usage import usage_of

_REASONS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
"""Under which names packages tell why an answer ended."""
_FINISH: dict[str, Finish] = {
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


def answer_of(message: AIMessage) -> AIMessage:
    """Return the message with a tool's arguments as its text and all else by our names."""
    metadata = message.response_metadata
    refusal = message.additional_kwargs.get("refusal")
    return ai_message(
        str(refusal or _text(message)),
        finish="refusal" if refusal else _finish(metadata),
        model=str(metadata.get("model_name") or metadata.get("model") or ""),
        usage=_impossible(metadata) or _usage(message.usage_metadata),
    )


def _text(message: AIMessage) -> str:
    """Return the answer's text: a tool's arguments count as such, thoughts do not."""
    calls = [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls]
    calls += [call["args"] or "" for call in message.invalid_tool_calls]
    return "\n".join(calls) or str(message.text)


def _finish(metadata: Mapping[str, object]) -> Finish:
    said = next((metadata[name] for name in _REASONS if metadata.get(name)), "")
    return _FINISH.get(str(said).rpartition(".")[2].lower(), "stop")


def _impossible(metadata: Mapping[str, object]) -> ImpossibleCount | None:
    """Return what our HTTP client found impossible about the counts."""
    told = metadata.get("token_usage")
    named = told.get(IMPOSSIBLE_COUNT) if isinstance(told, Mapping) else None
    return ImpossibleCount(named) if named else None


def _usage(usage: UsageMetadata | None) -> UsageMetadata | ImpossibleCount | None:
    if usage is None:
        return None
    details = usage.get("input_token_details", {})
    return usage_of(
        prompt=usage["input_tokens"],
        completion=usage["output_tokens"],
        cached=details.get("cache_read", 0),
        written=details.get("cache_creation", 0),
    )
