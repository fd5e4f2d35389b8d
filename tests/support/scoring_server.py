"""A server on loopback that scores prompts as OpenAI's completions do, well or badly."""

import json
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal

from aiohttp import web

from tests.support.threads import from_thread

Manner = Literal[
    "echo",
    "no offsets",
    "one token at least",
    "prompt_logprobs",
    "refuses",
    "chat only",
    "not implemented",
    "generated only",
    "fewer",
    "missing",
    "nan",
    "above 0",
    "no json",
]
"""How it answers; `generated only` is llama.cpp's own server."""


def split_tokens(text: str) -> list[str]:
    """Return a text in tokens of three characters."""
    return [text[at : at + 3] for at in range(0, len(text), 3)]


def score_token(token: str) -> float:
    """Return the log-probability that the server gives to a token."""
    return -float(sum(map(ord, token)) % 50) / 10 - 0.1


class ScoringServer:
    """Scores prompts, and counts what it is asked.

    Args:
        manner: How it answers.
    """

    def __init__(self, manner: Manner = "echo") -> None:
        self.manner = manner
        self.requests: list[dict[str, Any]] = []
        self.port = 0
        self.fail_after: int | None = None
        """Requests that are answered before all others fail."""

    @property
    def url(self) -> str:
        """The base_url of this server."""
        return f"http://127.0.0.1:{self.port}/v1"

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ScoringServer"]:
        """Serve on loopback inside the block."""
        app = web.Application()
        app.router.add_post("/v1/completions", self.complete)
        app.router.add_get("/v1/models", self._list)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = int(runner.addresses[0][1])
        try:
            yield self
        finally:
            await runner.cleanup()

    @contextmanager
    def in_thread(self) -> Iterator["ScoringServer"]:
        """Serve inside the block from a thread."""
        with from_thread(self.running(), "scoring-server") as server:
            yield server

    async def _list(self, _http: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": []})

    async def complete(self, http: web.Request) -> web.Response:
        """Answer a request for a completion."""
        request = await http.json()
        self.requests.append(request)
        if self.fail_after is not None and len(self.requests) > self.fail_after:
            return web.json_response({"error": {"message": "too hard"}}, status=400)
        if refusal := self._refuse(request):
            status, message = refusal
            return web.json_response({"error": {"message": message}}, status=status)
        if self.manner == "no json":
            return web.Response(text="<html>no</html>")
        tokens = split_tokens(request["prompt"])
        if self.manner == "fewer":
            tokens = tokens[: len(tokens) // 2]
        usage = {"prompt_tokens": len(tokens), "completion_tokens": request["max_tokens"]}
        choice = self._choose(request, tokens)
        return web.json_response({"model": "m-1", "choices": [choice], "usage": usage}, dumps=_dump)

    def _refuse(self, request: dict[str, Any]) -> tuple[int, str] | None:
        echo = request.get("echo")
        match self.manner:
            case "refuses":
                return 400, "echo with logprobs is not supported"
            case "chat only":
                return 404, "not found"
            case "not implemented":
                return 501, "not implemented"
            case "one token at least" if request["max_tokens"] == 0:
                return 400, "max_tokens must be at least 1"
            case "prompt_logprobs" if echo:
                return 400, "echo is not supported with logprobs"
        return None

    def _choose(self, request: dict[str, Any], tokens: list[str]) -> dict[str, Any]:
        scores: list[float | None] = [None, *map(score_token, tokens[1:])]
        if self.manner == "missing":
            scores[2] = None
        if self.manner == "nan":
            scores[2] = math.nan
        if self.manner == "above 0":
            scores[2] = 0.5
        if self.manner == "prompt_logprobs":
            places = [
                score
                and {
                    str(at): {"logprob": score, "rank": 9, "decoded_token": token},
                    "99999": {"logprob": -0.01, "rank": 1, "decoded_token": "likely"},
                }
                for at, (token, score) in enumerate(zip(tokens, scores, strict=True))
            ]
            return {"text": "x", "logprobs": None, "prompt_logprobs": places}
        if self.manner == "generated only":
            return {"text": "x", "logprobs": {"content": [{"token": "x", "logprob": -0.1}]}}
        generated = ["END"] * request["max_tokens"]
        told: dict[str, Any] = {
            "tokens": [*tokens, *generated],
            "token_logprobs": [*scores, *(-0.01 for _ in generated)],
        }
        if self.manner != "no offsets":
            told["text_offset"] = [3 * at for at in range(len(tokens) + len(generated))]
        return {"text": request["prompt"], "logprobs": told}


def _dump(value: object) -> str:
    return json.dumps(value)  # with NaN, as Python's servers write it
