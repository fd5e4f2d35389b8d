"""Answers in the words of Anthropic's messages, for the test server."""

import json
from collections.abc import Mapping
from contextlib import suppress

_STOP = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def message(
    request: Mapping[str, object],
    content: str | None,
    *,
    tool: str | None,
    stop_reason: str,
    thinking: str | None,
    cached: int,
    written: int,
) -> dict[str, object]:
    """Return an answer.

    Args:
        request: What was asked.
        content: The text, or the JSON of a tool's input; None for an answer without a word.
        tool: Name of the tool that the request forces.
        stop_reason: Why the answer ended, in the words of either provider.
        thinking: Thoughts that stand before it.
        cached: Tokens of the prompt that were in the cache.
        written: Tokens of the prompt that were put there.
    """
    blocks: list[dict[str, object]] = []
    if thinking is not None:
        blocks.append({"type": "thinking", "thinking": thinking, "signature": "c2ln"})
    if content is not None:
        blocks.append(_block(content, tool))
    called = tool is not None and stop_reason == "stop"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": f"{request['model']}-20260101",
        "content": blocks,
        "stop_reason": "tool_use" if called else _STOP.get(stop_reason, stop_reason),
        "stop_sequence": None,
        "usage": {
            "input_tokens": len(json.dumps(request["messages"])) // 4,
            "output_tokens": len(content or "") // 4,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
        },
    }


def _block(content: str, tool: str | None) -> dict[str, object]:
    if tool is None:
        return {"type": "text", "text": content}
    with suppress(ValueError):
        return {"type": "tool_use", "id": "toolu_1", "name": tool, "input": json.loads(content)}
    return {"type": "text", "text": content}
