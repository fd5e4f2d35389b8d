"""Telling a model in words which JSON it is to answer with."""

import json
from collections.abc import Mapping


def with_schema(
    messages: list[dict[str, str]], schema: Mapping[str, object]
) -> list[dict[str, str]]:
    """Return the messages with the schema at the end of the first one, the instructions.

    There it stays the same from call to call, so that a provider's prompt cache holds it. Without a
    schema the messages stay as they are.
    """
    if not schema:
        return messages
    wanted = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    told = f"{messages[0]['content']}\n\nAnswer with one JSON object that follows this JSON schema:"
    return [{**messages[0], "content": f"{told}\n{wanted}"}, *messages[1:]]
