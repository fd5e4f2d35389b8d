"""A server on loopback that speaks DOC 2.0: its rules, its answers, and its recorded misbehaviour.

As a process of its own, for runs by hand and for tests that start a command:

    python -m tests.support.doc_server --articles ../shared/data/gdelt/doc_api --throttle 9
"""

import argparse
import asyncio
import csv
import gzip
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from tests.support.doc_rules import Refused, Row, answering, complaint, pages
from tests.support.threads import from_thread

FIELDS = ("url", "url_mobile", "title", "socialimage", "domain", "language", "sourcecountry")
NOTICE = (
    "Please limit requests to one every 5 seconds or contact kalev.leetaru5@gmail.com for larger"
    " queries."
)
HTML = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head></html>"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An answer in place of the right one."""

    body: bytes | str = ""
    status: int = 200
    content_type: str = "text/html"
    retry_after: str = ""
    hang: bool = False
    """Never answer."""
    drop: bool = False
    """Cut the connection without an answer."""
    cut: bool = False
    """Send the right answer's first half as if it were all of it."""


Faults = Callable[[int], Fault | None]
"""Gives what goes wrong with a request, by its number from 0."""
THROTTLED = Fault(body=NOTICE, status=429)


def well(_number: int) -> Fault | None:
    """Do all as it should be."""
    return None


def always(fault: Fault) -> Faults:
    """Do nothing right."""
    return lambda _number: fault


def first(*faults: Fault | None) -> Faults:
    """Begin with these, and do well after them."""
    return lambda number: faults[number] if number < len(faults) else None


def refusing(times: int, fault: Fault = THROTTLED) -> Faults:
    """Answer one request well after so many that are refused, again and again."""
    return lambda number: None if number % (times + 1) == times else fault


class DocServer:
    """Answers from a list of articles; keeps what it was asked."""

    def __init__(self, rows: Sequence[Row], faults: Faults = well) -> None:
        self.pages = pages(rows)
        self.faults = faults
        self.asked: list[dict[str, str]] = []
        """The parameters of each request, decoded."""
        self.raw: list[str] = []
        """The query strings as they came."""
        self.agents: list[str] = []
        self.complaints: list[str] = []
        """What was refused for being against the rules."""
        self.port = 0

    @property
    def url(self) -> str:
        """The base_url of this server."""
        return f"http://127.0.0.1:{self.port}/api/v2/doc/doc"

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncIterator["DocServer"]:
        """Serve on loopback inside the block."""
        app = web.Application()
        app.router.add_get("/api/v2/doc/doc", self._search)
        app.router.add_get("/counts", self._counts)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self.port = int(runner.addresses[0][1])
        try:
            yield self
        finally:
            await runner.cleanup()

    @contextmanager
    def in_thread(self) -> Iterator["DocServer"]:
        """Serve inside the block from a thread, for clients that are not asynchronous."""
        with from_thread(self.running(), "doc-server") as server:
            yield server

    async def _search(self, http: web.Request) -> web.StreamResponse:
        parameters = dict(http.query)
        self.asked.append(parameters)
        fault = self.faults(len(self.asked) - 1)
        self.raw.append(http.rel_url.raw_query_string)
        self.agents.append(http.headers.get("User-Agent", ""))
        refused = complaint(parameters)
        self.complaints += [refused] if refused else []
        if fault is None or fault.cut:
            body = self._answer(parameters)
            return _text(body[: len(body) // 2] if fault else body, "application/json")
        return await _misbehave(http, fault)

    def _answer(self, parameters: dict[str, str]) -> str:
        if parameters.get("mode") != "artlist" or parameters.get("format") != "json":
            return HTML
        try:
            found = [listed(row) for row in answering(self.pages, parameters)]
        except Refused as refused:
            return str(refused)
        return json.dumps({"articles": found}) if found else "{}"

    async def _counts(self, _http: web.Request) -> web.Response:
        return web.json_response({"requests": len(self.asked), "refused": self.complaints})


def listed(row: Row) -> Row:
    """Return an article as the service lists it, whatever its owner renamed."""
    told = {key: row.get(key) or "" for key in FIELDS}
    return told | {"seendate": row.get("seendate") or row.get("date")}


async def _misbehave(http: web.Request, fault: Fault) -> web.StreamResponse:
    if fault.hang:
        while http.transport is not None:
            await asyncio.sleep(0.01)
    if fault.drop and http.transport is not None:
        http.transport.abort()
    response = _text(fault.body, fault.content_type, fault.status)
    if fault.retry_after:
        response.headers["Retry-After"] = fault.retry_after
    return response


def _text(body: bytes | str, content_type: str, status: int = 200) -> web.Response:
    data = body.encode() if isinstance(body, str) else body
    return web.Response(body=data, status=status, headers={"Content-Type": content_type})


def recorded(folder: Path) -> list[Row]:
    """Read the recorded article lists of a folder: JSON, JSON lines and CSV, plain or gzipped."""
    rows: list[Row] = []
    for file in sorted(folder.iterdir()):
        raw = file.read_bytes()
        text = (gzip.decompress(raw) if file.suffix == ".gz" else raw).decode()
        name = file.name.removesuffix(".gz")
        if name.endswith(".csv"):
            rows += csv.DictReader(text.splitlines())
        elif name.startswith("articles") and name.endswith(".jsonl"):
            rows += [json.loads(line) for line in text.splitlines()]
        elif name.endswith(".json"):
            rows += json.loads(text).get("articles", [])
    return rows


async def serve(port: int, server: DocServer) -> None:
    """Serve until killed; the first line on stdout is the base_url."""
    async with server.running(port):
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Serve recorded articles until killed; GET /counts tells what was asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--articles", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--throttle", type=int, default=0, help="requests refused before each one")
    parser.add_argument("--down", action="store_true", help="answer every request with HTML")
    options = parser.parse_args()
    faults = always(Fault(body=HTML, status=502)) if options.down else refusing(options.throttle)
    asyncio.run(serve(options.port, DocServer(recorded(options.articles), faults)))


if __name__ == "__main__":
    main()
