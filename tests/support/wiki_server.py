"""A wiki's API on loopback: it has the pages that a test puts there, and misbehaves on demand."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiohttp import web

from tests.support.mirror_server import Answer, respond
from tests.support.threads import from_thread

HEAD = """<div class="mw-parser-output"><div class="current-events"><div role="region"
class="current-events-main vevent"><div class="current-events-heading plainlinks">
<div class="current-events-title" role="heading"><span class="summary">{day}</span></div>
<ul class="current-events-navbar editlink noprint"><li><a class="external text"
href="https://wiki.example/edit">edit</a></li></ul></div>
<div class="current-events-content description">"""
TAIL = """</div></div><div class="current-events-nav"><ul><li>More of July</li></ul></div></div>"""


def page_html(*facts: str, category: str = "Law and crime", day: str = "a day") -> str:
    """Return a day's page in the layout of the portal; the facts are HTML."""
    items = "".join(f"<li>{fact}</li>" for fact in facts)
    return f"{HEAD.format(day=day)}<p><b>{category}</b></p><ul>{items}</ul>{TAIL}"


def parsed(name: str, html: str, revision: int = 1) -> Answer:
    """Return the API's answer about a page."""
    page = {"title": name.replace("_", " "), "pageid": 7, "revid": revision, "text": html}
    return Answer(body=json.dumps({"parse": page}).encode(), headers=JSON)


def failed(code: str, **headers: str) -> Answer:
    """Return the API's own kind of error, which has status 200."""
    error = {"error": {"code": code, "info": f"said of {code}"}}
    return Answer(body=json.dumps(error).encode(), headers={**JSON, **headers})


JSON = {"Content-Type": "application/json; charset=utf-8"}


class WikiServer:
    """Serves pages by name and remembers what it was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, list[Answer]] = {}
        """The answers of each page in turn, the last one again and again; others are missing."""
        self.asked: list[str] = []
        self.queries: list[dict[str, str]] = []
        self.agents: set[str] = set()
        self.most_at_once = 0
        self._now = 0
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._port = 0

    @property
    def url(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self._port}/w/api.php"

    def put(self, name: str, *answers: Answer | str) -> None:
        """Let the wiki have a page; a text is the HTML of one fact after another."""
        self.pages[name] = [
            answer if isinstance(answer, Answer) else parsed(name, answer, number)
            for number, answer in enumerate(answers, start=1)
        ]

    @contextmanager
    def running(self) -> Iterator["WikiServer"]:
        """Serve inside the block, from a thread."""
        with from_thread(self._served(), "wiki") as server:
            yield server

    @asynccontextmanager
    async def _served(self) -> AsyncIterator["WikiServer"]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port = int(runner.addresses[0][1])
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        name = http.query.get("page", http.path)
        self.asked.append(name)
        self.queries.append(dict(http.query))
        self.agents.add(http.headers.get("User-Agent", ""))
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            await asyncio.sleep(0)
            return await respond(http, self._next(name), 0.0)
        finally:
            self._now -= 1

    def _next(self, name: str) -> Answer:
        answers = self.pages.get(name, [failed("missingtitle")])
        count = self._counts[name]
        self._counts[name] += 1
        return answers[min(count, len(answers) - 1)]
