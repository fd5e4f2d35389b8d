"""Hosts of news on loopback that behave as real ones do: slow, forbidding and hostile ones too.

Names that end in `.test` lead to 127.0.0.2, where a server answers by the name that it is asked
under; every other name leads where a test says.
"""

import asyncio
import gzip
import socket
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from coreeval.tools.articles.addresses import is_public_address
from coreeval.tools.articles.sources import Network

ADDRESS = "127.0.0.2"
TITLE = "Harbour ferry service returns after winter repairs"
BODY = (
    "The ferry between the old harbour and the island of Lenn began to run again on Monday, after "
    "four months in which its hull was repaired at a yard in the north of the country.",
    "About two hundred passengers were on board when it left the quay at half past six in the "
    "morning, most of them on their way to work, and the captain said that all was on time.",
    "The council paid for the repairs together with the operator, and says that the harbour will "
    "get a second ferry within two years if the number of passengers stays as it was last summer.",
    "People on the island had used a small boat during the winter, which could take no cars and "
    "stayed in port when the wind was strong.",
)
GERMAN = (
    "Die F\u00e4hre zwischen dem alten Hafen und der Insel f\u00e4hrt seit Montag wieder, nachdem "
    "ihr Rumpf vier Monate lang in einer Werft im Norden des Landes ausgebessert worden war.",
    "Etwa zweihundert Fahrg\u00e4ste waren an Bord, als sie um halb sieben Uhr morgens vom Kai "
    "ablegte, die meisten von ihnen auf dem Weg zur Arbeit, und der Kapit\u00e4n war zufrieden.",
    "Die Gemeinde hat die Arbeiten zusammen mit dem Betreiber bezahlt, und der Hafen soll in zwei "
    "Jahren ein zweites Schiff bekommen, wenn so viele Menschen fahren wie im letzten Sommer.",
)
_Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def article_page(
    title: str = TITLE,
    body: tuple[str, ...] = BODY,
    *,
    date: str = "2026-10-05T06:30:00+00:00",
    head: str = "",
    language: str = "en",
) -> str:
    """Return a page as news sites make them."""
    paragraphs = "".join(f"<p>{each}</p>" for each in body)
    stated = f'<meta property="article:published_time" content="{date}">' if date else ""
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta property="og:site_name" content="The Lenn Herald">{stated}{head}</head><body><nav>'
        '<a href="/">Home</a><a href="/sport">Sport</a></nav><main><article>'
        f"<h1>{title}</h1>{paragraphs}</article></main><footer>Imprint</footer></body></html>"
    )


@dataclass
class NewsSite:
    """The hosts of a test."""

    port: int = 0
    robots: dict[str, str] = field(default_factory=dict)
    """The text of robots.txt by host; a host without one has no such file."""
    answers: dict[str, _Answer] = field(default_factory=dict)
    """What a host answers instead of an article."""
    asked: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The paths that each host was asked for."""
    headers: list[Mapping[str, str]] = field(default_factory=list)
    """The headers of all requests for pages."""
    most_open: Counter[str] = field(default_factory=Counter)
    _open: Counter[str] = field(default_factory=Counter)

    def url(self, host: str, path: str = "/2026/ferry") -> str:
        """Return the address of a page."""
        return f"http://{host}:{self.port}{path}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a request as its host does."""
        host = request.host.partition(":")[0]
        self.asked[host].append(request.path)
        self._open[host] += 1
        self.most_open[host] = max(self.most_open[host], self._open[host])
        try:
            if request.path == "/robots.txt" and f"robots {host}" not in self.answers:
                text = self.robots.get(host)
                return web.Response(text=text) if text is not None else web.Response(status=404)
            if request.path == "/robots.txt":
                return await self.answers[f"robots {host}"](request)
            self.headers.append(request.headers)
            return await self.answers.get(host, _article)(request)
        finally:
            self._open[host] -= 1


async def _article(_request: web.Request) -> web.Response:
    return page(article_page())


def page(text: str, **more: str) -> web.Response:
    """Return a page as a response."""
    return web.Response(text=text, content_type="text/html", headers=more)


def always(response: Callable[[], web.Response]) -> _Answer:
    """Return a host that always answers the same."""

    async def answer(_request: web.Request) -> web.Response:
        return response()

    return answer


def status(number: int, **headers: str) -> _Answer:
    """Return a host that answers with a status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return always(lambda: web.Response(status=number, headers=named))


async def hang(_request: web.Request) -> web.Response:
    """Answer nothing."""
    await asyncio.sleep(3600)
    raise AssertionError


async def endless(request: web.Request) -> web.StreamResponse:
    """Answer with a page of 200 MB."""
    response = web.StreamResponse(headers={"Content-Type": "text/html"})
    await response.prepare(request)
    for _ in range(200):
        await response.write(b"<p>word</p>" * ((1 << 20) // 11))
    return response


async def bomb(_request: web.Request) -> web.Response:
    """Answer with 200 MB that have 200 kB when packed."""
    headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
    return web.Response(body=gzip.compress(bytes(200 << 20), 9), headers=headers)


class _Resolver(AbstractResolver):
    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = self._addresses.get(host, ADDRESS)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=family, proto=0,
                flags=socket.AI_NUMERICHOST,
            )
        ]  # fmt: skip

    async def close(self) -> None:
        """Do nothing."""


@dataclass
class FastTime:
    """A clock that goes on when somebody sleeps."""

    now: float = 1_790_000_000.0
    slept: list[float] = field(default_factory=list)

    def time(self) -> float:
        """Return the time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def network_of(addresses: Mapping[str, str] | None = None, time: FastTime | None = None) -> Network:
    """Return a network in which 127.0.0.2 counts as public, and other addresses as they are."""
    time = time or FastTime()
    return Network(
        check=lambda address: address == ADDRESS or is_public_address(address),
        resolver=_Resolver(addresses or {}),
        clock=time.time,
        sleep=time.sleep,
    )


@asynccontextmanager
async def news_site() -> AsyncIterator[NewsSite]:
    """Yield hosts that answer until the block ends."""
    site = NewsSite()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", site.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    listening = socket.create_server((ADDRESS, 0))
    site.port = listening.getsockname()[1]
    await web.SockSite(runner, listening).start()
    try:
        yield site
    finally:
        await runner.cleanup()
