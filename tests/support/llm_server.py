"""A small server on loopback that speaks OpenAI's chat completions and Anthropic's messages.

It answers from a function of the request, counts requests and repeats, and can misbehave on
demand. As a process of its own, for tests that kill the client:

    python -m tests.support.llm_server --port 0 --answers tests.support.llm_server:empty_objects
"""

import argparse
import asyncio
import hashlib
import importlib
import inspect
import json
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.messages import message

Request = dict[str, object]
Answers = Callable[[Request], "str | Reply | Awaitable[str | Reply]"]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """How to answer one request, well or badly."""

    content: str | None = "{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    refusal: str | None = None
    thinking: str | None = None
    """Thoughts before the answer; only Anthropic's messages have them."""
    cached: int = 0
    """Tokens of the prompt that were in the cache; `written` ones were put there."""
    written: int = 0
    body: str | None = None
    """The whole body, in place of a completion."""
    error: dict[str, str] | None = None
    """The `error` object of a body that is no completion."""
    drop: bool = False
    """Cut the connection without an answer."""
    delay_s: float = 0.0

    @property
    def is_failure(self) -> bool:
        """True where the client has to send the same again."""
        return self.drop or self.body is not None or self.status != 200


def refused(status: int, message: str = "no", **headers: str) -> Reply:
    """Return a reply with an error status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, error={"message": message}, headers=named)


def empty_objects(_request: Request) -> str:
    """Answer every request with an empty JSON object."""
    return "{}"


def script(*replies: str | Reply) -> Answers:
    """Answer with the given replies in turn; the last one again and again."""
    left = list(replies)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


class LLMServer:
    """Counts what it is asked; `url` goes into a config's base_url."""

    def __init__(self, answers: Answers, *, latency_s: float = 0.0) -> None:
        self.answers = answers
        self.latency_s = latency_s
        self.requests: list[Request] = []
        self.keys: list[str] = []
        """The Authorization headers that came."""
        self.headers: list[dict[str, str]] = []
        """All headers that came, by lower-case name."""
        self.models: list[str] = []
        """What GET /v1/models lists; nothing unless a test says so."""
        self.port = 0
        self.repeats = 0
        """Requests whose body had come before and was answered, or is still being answered."""
        self._seen: set[str] = set()

    @property
    def url(self) -> str:
        """The base_url of this server."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base_url of this server for those who speak Anthropic's messages."""
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def running(
        self, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator["LLMServer"]:
        """Serve on loopback inside the block."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/{folders:.+}/chat/completions", self._complete)
        app.router.add_post("/v1/messages", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/counts", self._counts)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
        await site.start()
        self.port = int(runner.addresses[0][1])
        try:
            yield self
        finally:
            await runner.cleanup()

    @contextmanager
    def in_thread(self, tls: ssl.SSLContext | None = None) -> Iterator["LLMServer"]:
        """Serve inside the block from a thread, for clients that are not asynchronous."""
        loop, done = asyncio.new_event_loop(), asyncio.Event()
        serving = threading.Event()

        async def serve() -> None:
            async with self.running(tls=tls):
                serving.set()
                await done.wait()

        def work() -> None:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve())

        thread = threading.Thread(target=work, name="llm-server", daemon=True)
        thread.start()
        serving.wait(10)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(done.set)
            thread.join(10)

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        raw = await http.read()
        digest = hashlib.sha256(raw).hexdigest()
        self.repeats += digest in self._seen
        self._seen.add(digest)
        request: Request = json.loads(raw)
        self.requests.append(request)
        self.keys.append(http.headers.get("authorization", ""))
        self.headers.append({name.lower(): value for name, value in http.headers.items()})
        answer = self.answers(request)
        if inspect.isawaitable(answer):
            answer = await answer
        reply = Reply(content=answer) if isinstance(answer, str) else answer
        if reply.is_failure:
            self._seen.discard(digest)
        await asyncio.sleep(self.latency_s + reply.delay_s)
        return _respond(http, request, reply)

    async def _models(self, _http: web.Request) -> web.Response:
        listed = [{"id": name, "object": "model"} for name in self.models]
        return web.json_response({"object": "list", "data": listed})

    async def _counts(self, _http: web.Request) -> web.Response:
        return web.json_response({"requests": len(self.requests), "repeats": self.repeats})


def _respond(http: web.Request, request: Request, reply: Reply) -> web.StreamResponse:
    if reply.drop:
        if http.transport is not None:
            http.transport.abort()
        return web.Response()
    if reply.body is not None:
        return web.Response(
            text=reply.body,
            status=reply.status,
            headers=reply.headers,
            content_type="application/json",
        )
    as_messages = http.path == "/v1/messages"
    if reply.error:
        content: dict[str, object] = {"type": "error", "error": reply.error}
    else:
        content = _said(request, reply) if as_messages else _completion(request, reply)
    return web.json_response(content, status=reply.status, headers=reply.headers)


def _said(request: Request, reply: Reply) -> dict[str, object]:
    """Return a reply as Anthropic's messages have it."""
    tools = request.get("tools")
    return message(
        request,
        reply.refusal or reply.content,
        tool=tools[0]["name"] if tools and isinstance(tools, list) else None,
        stop_reason="refusal" if reply.refusal else reply.finish_reason,
        thinking=reply.thinking,
        cached=reply.cached,
        written=reply.written,
    )


def _completion(request: Request, reply: Reply) -> dict[str, object]:
    message: dict[str, object] = {
        "role": "assistant",
        "content": reply.content,
        "refusal": reply.refusal,
    }
    if (tools := request.get("tools")) and isinstance(tools, list):
        call = {"name": tools[0]["function"]["name"], "arguments": reply.content}
        message["content"] = None
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
    sent, said = len(json.dumps(request["messages"])) // 4, len(reply.content or "") // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": f"{request['model']}-2026-01",
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
        "usage": {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said},
    }


async def serve(port: int, answers: Answers, latency_s: float) -> None:
    """Serve until killed; the first line on stdout is the port."""
    async with LLMServer(answers, latency_s=latency_s).running(port) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Serve until killed; the first line on stdout is the port, GET /counts tells the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--answers", default="tests.support.llm_server:empty_objects")
    parser.add_argument("--latency", type=float, default=0.0)
    options = parser.parse_args()
    module, _, name = str(options.answers).partition(":")
    answers: Answers = getattr(importlib.import_module(module), name)
    asyncio.run(serve(options.port, answers, options.latency))


if __name__ == "__main__":
    main()
