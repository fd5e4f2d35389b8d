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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.messages import message
from tests.support.scoring_server import ScoringServer
from tests.support.threads import from_thread

Request = dict[str, object]
Answers = Callable[[Request], "str | Reply | Awaitable[str | Reply]"]
"""Where it has `counts` of its own, the server tells them too."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """How to answer one request, well or badly."""

    content: str | list[dict[str, object]] | None = "{}"
    """What the model says: a text, or parts of one."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    refusal: str | None = None
    thinking: str | None = None
    """Thoughts before the answer; only Anthropic's messages have them."""
    cached: int = 0
    """Tokens of the prompt that were in the cache; `written` ones were put there."""
    written: int = 0
    usage: object = None
    """What a completion tells of tokens, in place of a count."""
    tool: str = ""
    """The function that is called with the content, be it asked for or not."""
    body: str | None = None
    """The whole body, in place of a completion."""
    error: object = None
    """The `error` of a body that is no completion; an object, as a rule."""
    content_type: str = "application/json"
    raw: bytes | None = None
    """All that goes over the wire, in place of a response; the connection is closed after it."""
    drop: bool = False
    """Cut the connection without an answer."""
    cut: bool = False
    """Cut the connection after half of the body."""
    close: bool = False
    """Answer well, and cut the connection that was to be kept alive."""
    hang: bool = False
    """Never answer."""
    logprobs: object = None
    """What stands beside the message of a completion."""
    delay_s: float = 0.0
    drip_s: float = 0.0
    """Send the body byte by byte, over so many seconds."""

    @property
    def is_failure(self) -> bool:
        """True where the client has to send the same again."""
        broken = self.drop or self.cut or self.hang or self.raw is not None
        return broken or bool(self.error) or self.body is not None or self.status != 200


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
        self.scoring = ScoringServer("chat only")
        """Answers POST /v1/completions."""
        self.port = 0
        self.repeats = 0
        """Requests whose body had come before and was answered, or is still being answered."""
        self.open = 0
        """Requests that are being answered."""
        self.most_open = 0
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
        app.router.add_post("/v1/completions", self._score)
        app.router.add_post("/v1/messages", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/counts", self._counts)
        self.add_routes(app)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
        await site.start()
        self.port = int(runner.addresses[0][1])
        try:
            yield self
        finally:
            await runner.cleanup()

    def add_routes(self, app: web.Application) -> None:
        """Add what a server answers besides."""

    @contextmanager
    def in_thread(self, tls: ssl.SSLContext | None = None) -> Iterator["LLMServer"]:
        """Serve inside the block from a thread, for clients that are not asynchronous."""
        with from_thread(self.running(tls=tls), "llm-server") as server:
            yield server

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        raw = await http.read()
        digest = hashlib.sha256(raw).hexdigest()
        self.repeats += digest in self._seen
        self._seen.add(digest)
        request: Request = json.loads(raw)
        self.requests.append(request)
        self.keys.append(http.headers.get("authorization", ""))
        self.headers.append({name.lower(): value for name, value in http.headers.items()})
        reply = await self.reply_to(request)
        if reply.is_failure:
            self._seen.discard(digest)
        else:
            self.record_paid(request)
        with self._being_answered():
            await asyncio.sleep(self.latency_s + reply.delay_s)
            return await _respond(http, request, reply)

    async def reply_to(self, request: Request) -> Reply:
        """Return how a request is answered."""
        answer = self.answers(request)
        if inspect.isawaitable(answer):
            answer = await answer
        return Reply(content=answer) if isinstance(answer, str) else answer

    def record_paid(self, request: Request) -> None:
        """Count an answer that a provider would have paid for."""

    @contextmanager
    def _being_answered(self) -> Iterator[None]:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            yield
        finally:
            self.open -= 1

    async def _score(self, http: web.Request) -> web.Response:
        return await self.scoring.complete(http)

    async def _models(self, _http: web.Request) -> web.Response:
        listed = [{"id": name, "object": "model"} for name in self.models]
        return web.json_response({"object": "list", "data": listed})

    async def _counts(self, _http: web.Request) -> web.Response:
        return web.json_response(self.counts() | getattr(self.answers, "counts", {}))

    def counts(self) -> dict[str, object]:
        """Return what GET /counts tells."""
        return {
            "requests": len(self.requests),
            "repeats": self.repeats,
            "most_open": self.most_open,
        }


async def _respond(http: web.Request, request: Request, reply: Reply) -> web.StreamResponse:
    if reply.hang:
        await _silence(http)
    if reply.drop or reply.raw is not None:
        return _cut_off(http, reply.raw or b"")
    body = response_body(request, reply, messages=http.path.endswith("/v1/messages"))
    if reply.cut or reply.close or reply.drip_s:
        return await _piecemeal(http, reply, body)
    return web.Response(
        body=body, status=reply.status, headers=reply.headers, content_type=reply.content_type
    )


async def _silence(http: web.Request) -> None:
    """Wait until the client has had enough."""
    while http.transport is not None:
        await asyncio.sleep(0.01)


def _cut_off(http: web.Request, said: bytes = b"") -> web.Response:
    """Say something, or nothing, and cut the connection; what is returned reaches nobody."""
    if http.transport is not None:
        http.transport.write(said)
        http.transport.close() if said else http.transport.abort()
    return web.Response()


def response_body(request: Request, reply: Reply, *, messages: bool) -> bytes:
    """Return the body of a reply, as Anthropic's messages or as a chat completion."""
    if reply.body is not None:
        return reply.body.encode()
    if reply.error:
        content: dict[str, object] = {"type": "error", "error": reply.error}
    elif messages:
        content = _said(request, reply)
    else:
        content = _completion(request, reply)
    return json.dumps(content).encode()


async def _piecemeal(http: web.Request, reply: Reply, body: bytes) -> web.StreamResponse:
    """Send a body of known length, whole or in part, at once or slowly."""
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.content_type, response.content_length = reply.content_type, len(body)
    await response.prepare(http)
    step = 1 if reply.drip_s else max(1, len(body))
    wanted = body[: len(body) // 2] if reply.cut else body
    with suppress(ConnectionResetError):  # the client has had enough
        for start in range(0, len(wanted), step):
            await response.write(wanted[start : start + step])
            await asyncio.sleep(reply.drip_s / len(body))
        if not reply.cut:
            await response.write_eof()
    if http.transport is not None and (reply.cut or reply.close):
        http.transport.close()
    return response


def _said(request: Request, reply: Reply) -> dict[str, object]:
    """Return a reply as Anthropic's messages have it."""
    tools = request.get("tools")
    return message(
        request,
        reply.refusal or (reply.content if isinstance(reply.content, str) else None),
        tool=tools[0]["name"] if tools and isinstance(tools, list) else None,
        stop_reason="refusal" if reply.refusal else reply.finish_reason,
        thinking=reply.thinking,
        cached=reply.cached,
        written=reply.written,
    )


def _completion(request: Request, reply: Reply) -> dict[str, object]:
    tools, name = request.get("tools"), reply.tool
    if tools and isinstance(tools, list):
        name = tools[0]["function"]["name"]
    message: dict[str, object] = {"role": "assistant", "refusal": reply.refusal}
    message["content"] = None if name else reply.content
    if name:
        call = {"name": name, "arguments": reply.content if isinstance(reply.content, str) else ""}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
    sent, said = len(json.dumps(request["messages"])) // 4, len(reply.content or "") // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": f"{request['model']}-2026-01",
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": reply.finish_reason,
                "logprobs": reply.logprobs,
            }
        ],
        "usage": reply.usage
        or {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said},
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
