"""Endpoints that lack something, as functions of a request for the test server."""

import json

from tests.support.llm_server import Reply, Request

GOOD = '{"city": "Paris"}'
PROSE = f"<think>France. Its capital?</think>Sure, here it is: {GOOD} Anything else?"


def unsupported(parameter: str) -> Reply:
    """Return the refusal of a parameter."""
    return Reply(status=400, error={"message": f"Unsupported parameter: '{parameter}'"})


def completion(content: str, **more: object) -> Reply:
    """Return a completion with nothing in it but its text and what else is given."""
    choice = {"index": 0, "message": {"content": content}, "finish_reason": "stop"} | more
    return Reply(body=json.dumps({"model": "as it is called there", "choices": [choice]}))


def tools_only(request: Request) -> str | Reply:
    """Refuse response_format and take tools."""
    if "response_format" in request:
        return unsupported("response_format")
    return GOOD if "tools" in request else "Paris"


def prose_only(_request: Request) -> Reply:
    """Take everything, heed nothing, think aloud and count nothing."""
    return completion(PROSE)


def modern(request: Request) -> str | Reply:
    """Take only max_completion_tokens, and neither a seed nor log-probabilities."""
    return next(
        (unsupported(name) for name in ("max_tokens", "seed", "logprobs") if name in request), GOOD
    )


def complete(request: Request) -> str | Reply:
    """Take everything and heed it."""
    if "logprobs" in request:
        token = {"token": "Paris", "logprob": -0.1, "top_logprobs": []}
        return completion("Paris", logprobs={"content": [token]})
    return GOOD
