"""GDELT's mirror on loopback: it has what a test puts there, and misbehaves on demand."""

import asyncio
import base64
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.threads import from_thread


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How to answer one request for a file."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    """In place of the checksum that the mirror states."""
    cut: bool = False
    """Close the connection after half of the body."""
    delay_s: float = 0.0
    hang: bool = False
    """Say nothing until the client goes."""


class MirrorServer:
    """Serves files by path and remembers what it was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, list[Answer]] = {}
        """The answers of each path in turn, the last one again and again; others are 404."""
        self.asked: list[str] = []
        self.most_at_once = 0
        self.delay_s = 0.0
        self._now = 0
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._port = 0

    @property
    def url(self) -> str:
        """The base URL, above gdeltv2/."""
        return f"http://127.0.0.1:{self._port}"

    def put(self, path: str, *answers: Answer | bytes) -> None:
        """Let the mirror have a file."""
        self.files[path] = [
            answer if isinstance(answer, Answer) else Answer(body=answer) for answer in answers
        ]

    @contextmanager
    def running(self) -> Iterator["MirrorServer"]:
        """Serve inside the block, from a thread."""
        with from_thread(self._served(), "mirror") as server:
            yield server

    @asynccontextmanager
    async def _served(self) -> AsyncIterator["MirrorServer"]:
        app = web.Application()
        app.router.add_get("/{path:.+}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port = int(runner.addresses[0][1])
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        path = http.match_info["path"]
        self.asked.append(path)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            return await respond(http, self._next(path), self.delay_s)
        finally:
            self._now -= 1

    def _next(self, path: str) -> Answer:
        answers = self.files.get(path, [Answer(status=404)])
        count = self._counts[path]
        self._counts[path] += 1
        return answers[min(count, len(answers) - 1)]


async def respond(http: web.Request, answer: Answer, delay_s: float) -> web.StreamResponse:
    """Answer a request, after a delay."""
    await asyncio.sleep(answer.delay_s + delay_s)
    while answer.hang and http.transport is not None:
        await asyncio.sleep(0.01)
    digest = base64.b64encode(hashlib.md5(answer.body).digest()).decode()
    headers = answer.headers or {"x-goog-hash": f"crc32c=AAAAAA==,md5={digest}"}
    if not answer.cut:
        return web.Response(body=answer.body, status=answer.status, headers=headers)
    response = web.StreamResponse(headers={**headers, "Content-Length": str(len(answer.body))})
    await response.prepare(http)
    await response.write(answer.body[: len(answer.body) // 2])
    if http.transport is not None:
        http.transport.close()
    return response
