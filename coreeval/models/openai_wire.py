"""The words of chat completions: what is sent, and what came back, as langchain-core has it."""

import json
from collections.abc import Mapping

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from openai.types.chat import ChatCompletion, ChatCompletionMessage

from coreeval.config import ModelConfig

Body = dict[str, object]
_ROLES = {"human": "user", "ai": "assistant", "system": "system"}


def request_body(
    config: ModelConfig,
    messages: list[dict[str, str]],
    schema: Mapping[str, object] | None,
    name: str,
) -> Body:
    """Return what is sent.

    An endpoint of the user's own gets `max_tokens`, which every server knows; OpenAI's newer
    models take `max_completion_tokens` only.
    """
    limit = "max_tokens" if config.base_url else "max_completion_tokens"
    chosen = {"temperature": config.temperature, "seed": config.seed}
    body: Body = {"model": config.name, "messages": messages, limit: config.max_tokens}
    body |= {key: value for key, value in chosen.items() if value is not None}
    return body if schema is None else body | _structured(config, messages, schema, name)


def _structured(
    config: ModelConfig, messages: list[dict[str, str]], schema: Mapping[str, object], name: str
) -> Body:
    match config.structured:
        case "json_schema":
            form = {"name": name, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": form}}
        case "function_calling":
            function = {"name": name, "strict": True, "parameters": schema}
            choice = {"type": "function", "function": {"name": name}}
            return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
        case "json_mode":
            told = [{**messages[0], "content": _with_schema(messages[0]["content"], schema)}]
            return {"messages": told + messages[1:], "response_format": {"type": "json_object"}}


def _with_schema(text: str, schema: Mapping[str, object]) -> str:
    wanted = json.dumps(schema, separators=(",", ":"))
    return f"{text}\n\nAnswer with one JSON object that follows this JSON schema:\n{wanted}"


def as_dicts(messages: list[BaseMessage]) -> list[dict[str, str]]:
    """Return LangChain's messages as the wire has them."""
    return [{"role": _ROLES[message.type], "content": str(message.text)} for message in messages]


def chat_result(answer: ChatCompletion) -> ChatResult:
    """Return a completion as LangChain has it, with what tells an answer from a refusal."""
    choice = answer.choices[0]
    metadata = {
        "finish_reason": choice.finish_reason or "",
        "model_name": answer.model or "",
        "refusal": choice.message.refusal or "",
    }
    message = AIMessage(
        content=_content(choice.message),
        response_metadata=metadata,
        usage_metadata=_usage(answer),
    )
    return ChatResult(generations=[ChatGeneration(message=message)])


def _content(message: ChatCompletionMessage) -> str:
    """Return the answer's text: a forced function's arguments count as such."""
    calls = [call for call in message.tool_calls or () if call.type == "function"]
    if calls:
        return "\n".join(call.function.arguments for call in calls)
    return message.content or ""


def _usage(answer: ChatCompletion) -> UsageMetadata | None:
    if answer.usage is None:
        return None
    details = answer.usage.prompt_tokens_details
    return UsageMetadata(
        input_tokens=answer.usage.prompt_tokens,
        output_tokens=answer.usage.completion_tokens,
        total_tokens=answer.usage.total_tokens,
        input_token_details=InputTokenDetails(
            cache_read=(details.cached_tokens or 0) if details else 0
        ),
    )
