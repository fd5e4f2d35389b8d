"""The HTTP client that packages built upon OpenAI's SDK are given: it reads no body without end.

It also puts plain counts in place of what a body says of tokens: packages calculate with them
before anybody can look, and would fail, call after paid call, over a count that is none.
"""

import json

import httpx2
import openai

from coreeval.models.counts import IMPOSSIBLE_COUNT, ImpossibleCount, is_count
from coreeval.models.openai.wire import usage_told
from coreeval.tools.http import ResponseBody, read_bounded, replace_body

_CACHE_HITS = "prompt_cache_hit_tokens"
"""Where DeepSeek counts prompt tokens that it had in its cache."""


class BoundedAioClient(openai.DefaultAioHttpClient):
    """The SDK's client over aiohttp; the model's `timeout_s` bounds its time."""

    async def _send_single_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return a response with its body, before redirects are followed."""
        response = await read_bounded(await super()._send_single_request(request))
        return with_plain_counts(response) if response.status_code == 200 else response


def with_plain_counts(response: httpx2.Response) -> httpx2.Response:
    """Return a completion whose counts any package can read; all else as it is."""
    try:
        said = json.loads(response.content)
    except (ValueError, RecursionError):
        return response
    if not isinstance(said, dict) or "usage" not in said:
        return response
    said["usage"] = _plain_usage(said["usage"])
    content = json.dumps(said).encode()
    body = ResponseBody(len(content))
    body.add(content)
    return replace_body(response, body)


def _plain_usage(told: object) -> dict[str, object] | None:
    """Return counts as OpenAI has them; impossible ones are named, and read as below zero."""
    counted = usage_told(told)
    if counted is None:
        return None
    if isinstance(counted, ImpossibleCount):
        none = {"prompt_tokens": -1, "completion_tokens": -1, "total_tokens": -2}
        return {**none, IMPOSSIBLE_COUNT: str(counted)}
    details = counted.get("input_token_details", {})
    hits = told.get(_CACHE_HITS) if isinstance(told, dict) else None
    return {
        "prompt_tokens": counted["input_tokens"],
        "completion_tokens": counted["output_tokens"],
        "total_tokens": counted["total_tokens"],
        "prompt_tokens_details": {"cached_tokens": details.get("cache_read", 0)},
        **({_CACHE_HITS: hits} if is_count(hits) else {}),
    }
