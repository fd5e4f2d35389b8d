"""Fetching a page from its host, if the host allows it.

A host gets one connection at a time, without cookies or proxy. Redirects are checked like the first
address. Paywalls and blocks are never bypassed.
"""

import asyncio
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp
from yarl import URL

from coreeval.config.credentials import has_hidden_credential
from coreeval.config.knowledge import ArticlesConfig
from coreeval.tools.articles.addresses import NotPublic, is_web_address, join_address
from coreeval.tools.articles.article_text import WhyNoText
from coreeval.tools.articles.pacing import PATIENCE_S, HostPaces
from coreeval.tools.articles.page import MOST_PAGE_BYTES, headers_forbid_mining
from coreeval.tools.articles.robots import (
    MOST_ROBOTS_BYTES,
    RobotsFile,
    RobotsFiles,
    RobotsRules,
    decode_robots,
)
from coreeval.tools.http import describe_http_error, parse_retry_after

AGENT: Final = "coreeval"
"""The name by which robots.txt files address CoreEval."""
MOST_REDIRECTS: Final = 5
_DEFAULT_PAUSE_S: Final = 300.0
"""The pause after 429 or 503 without a Retry-After header (own choice)."""
_BUSY: Final = (429, 503)
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_REFUSED: Final = (401, 402, 403, 407, 451)
_HTML: Final = ("text/html", "application/xhtml+xml")


class NotFetched(Exception):
    """The page was not fetched."""

    def __init__(self, reason: WhyNoText, detail: str = "") -> None:
        super().__init__(reason)
        self.reason: WhyNoText = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as sent by its host, decompressed."""

    url: str
    body: bytes


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


def user_agent(contact: str) -> str:
    """Return the User-Agent header, which names CoreEval and a contact."""
    try:
        number = version("coreeval")
    except PackageNotFoundError:
        number = "0"
    return f"{AGENT}/{number} (+{contact})"


@asynccontextmanager
async def open_session(
    contact: str, connector: aiohttp.BaseConnector
) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a session without cookies and without a proxy."""
    headers = {
        "User-Agent": user_agent(contact),
        "Accept-Encoding": "gzip, deflate",
        "Accept": "text/html,application/xhtml+xml",
    }
    async with aiohttp.ClientSession(
        connector=connector,
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    ) as session:
        yield session


@dataclass(frozen=True, kw_only=True)
class LivePages:
    """The pages of hosts.

    Args:
        config: The limits on requests to hosts.
        session: The session of `open_session`.
        robots: The rules of sites.
        paces: The paces of hosts.
    """

    config: ArticlesConfig
    session: aiohttp.ClientSession
    robots: RobotsFiles
    paces: HostPaces
    _hosts: defaultdict[str, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )

    async def fetch(self, url: str, until: float) -> WebPage:
        """Fetch a page and follow its redirects.

        Args:
            url: The address of the page.
            until: The event loop's time after which no request is sent.

        Raises:
            NotFetched: the page does not exist, is not allowed, or is not a page.
            KnowledgeError: the pace of requests cannot be kept.
        """
        for _ in range(MOST_REDIRECTS + 1):
            reply = await self._visit(url, until)
            if reply.status not in _REDIRECTS:
                return WebPage(url, reply.body)
            url = join_address(url, reply.header("location"))
        raise NotFetched("redirects", f"more than {MOST_REDIRECTS}")

    async def _visit(self, url: str, until: float) -> _Reply:
        """Request one page from one host, in its turn."""
        if not is_web_address(url):
            raise NotFetched("address", "not a web address without a password")
        if has_hidden_credential(url):
            raise NotFetched("address", "it needs a credential, which CoreEval does not keep")
        host = (urlsplit(url).hostname or "").lower()
        async with self._hosts[host]:
            if _time() >= until:
                raise NotFetched("out_of_time")
            rules = await self.robots.rules(_origin(url), lambda: self._read_robots(url))
            _raise_objection(rules, url)
            for last in (False, True):
                reply, pause_s = await self._ask(host, url, rules, until)
                if not pause_s:
                    return reply
                if last or pause_s > min(PATIENCE_S, until - _time()):
                    break
            raise NotFetched("host_busy", f"HTTP {reply.status}, for {pause_s:.0f} s")

    async def _ask(
        self, host: str, url: str, rules: RobotsRules, until: float
    ) -> tuple[_Reply, float]:
        """Return an answer, and the seconds of the pause that the host requests."""
        refused = await self.paces.turn(host, until - _time())
        if refused:
            raise NotFetched(refused)
        pause_s = 0.0
        try:
            reply = await self._get(url, MOST_PAGE_BYTES, pages_only=True)
            if reply.status in _BUSY:
                asked_s = parse_retry_after(reply.header("retry-after"))
                pause_s = _DEFAULT_PAUSE_S if asked_s is None else max(asked_s, 1.0)
        finally:
            delay_s = max(rules.delay_s(), self.config.delay_s)
            self.paces.note_end(host, delay_s, pause_s)
        if not pause_s:
            _check_reply(reply)
        return reply, pause_s

    async def _read_robots(self, url: str) -> RobotsFile:
        """Read the robots.txt of a page's site, after up to five redirects."""
        at = urljoin(url, "/robots.txt")
        for _ in range(MOST_REDIRECTS + 1):
            try:
                reply = await self._get(at, MOST_ROBOTS_BYTES, pages_only=False)
            except NotFetched as error:
                if error.reason == "address":
                    raise
                return RobotsFile(state="unknown")
            if reply.status not in _REDIRECTS:
                return _to_robots(reply)
            at = join_address(at, reply.header("location"))
            if not is_web_address(at):
                return RobotsFile(state="unknown")
        return RobotsFile(state="none")

    async def _get(self, url: str, most_bytes: int, *, pages_only: bool) -> _Reply:
        """Send one request, and read its answer within the limits.

        Raises:
            NotFetched: no answer arrives in time, or it cannot be used.
        """
        timeout = aiohttp.ClientTimeout(total=self.config.timeout_s)
        try:
            async with self.session.get(
                URL(url), timeout=timeout, allow_redirects=False
            ) as response:
                headers = [(str(name), str(value)) for name, value in response.headers.items()]
                if response.status != 200:
                    return _Reply(response.status, headers, b"")
                if pages_only:
                    _check_page(response)
                body = await _read_body(response, most_bytes, cut=not pages_only)
                return _Reply(200, headers, body)
        except TimeoutError:
            raise NotFetched("unreachable", f"after {self.config.timeout_s:g} s") from None
        except NotPublic as error:
            raise NotFetched("address", str(error)) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _explain(error) from None


def _time() -> float:
    return asyncio.get_running_loop().time()


def _origin(url: str) -> str:
    return str(URL(url).origin())


def _raise_objection(rules: RobotsRules, url: str) -> None:
    objection = rules.objection(url)
    if objection:
        raise NotFetched(*objection)


def _to_robots(reply: _Reply) -> RobotsFile:
    if reply.status == 200:
        return RobotsFile(state="rules", text=decode_robots(reply.body))
    absent = 400 <= reply.status < 500 and reply.status != 429
    return RobotsFile(state="none" if absent else "unknown")


def _check_reply(reply: _Reply) -> None:
    """Raise an error unless the reply is a page or a redirect."""
    detail = f"HTTP {reply.status}"
    if reply.status in _REDIRECTS and reply.header("location"):
        return
    if reply.status in _REFUSED:
        raise NotFetched("refused", detail)
    if reply.status >= 500:
        raise NotFetched("unreachable", detail)
    if reply.status != 200:
        raise NotFetched("gone", detail)
    if headers_forbid_mining(reply.headers):
        raise NotFetched("opted_out", "a header of the page")


def _check_page(response: aiohttp.ClientResponse) -> None:
    if response.content_type not in _HTML:
        raise NotFetched("not_html", response.content_type[:100])
    if (response.content_length or 0) > MOST_PAGE_BYTES:
        raise NotFetched("too_large", f"{response.content_length:,} bytes")


def _explain(error: Exception) -> NotFetched:
    """Return the meaning of a failed request."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, NotPublic | aiohttp.InvalidURL):
        return NotFetched("address", str(cause)[:200])
    return NotFetched("unreachable", describe_http_error(error)[:200])


async def _read_body(response: aiohttp.ClientResponse, most: int, *, cut: bool) -> bytes:
    """Return a decompressed body.

    Args:
        response: The response, whose body is still compressed.
        most: The most bytes, compressed and decompressed.
        cut: Whether a longer body is cut; otherwise it is an error.

    Raises:
        NotFetched: the body is too long, or its compression was not requested.
    """
    packed = bytearray()
    async for piece in response.content.iter_any():
        packed += piece
        if len(packed) > most:
            break
    body = _unpack(bytes(packed[: most + 1]), response.headers.get("Content-Encoding", ""), most)
    if max(len(packed), len(body)) > most and not cut:
        raise NotFetched("too_large", f"more than {most >> 20} MiB")
    return body[:most]


def _unpack(packed: bytes, encoding: str, most: int) -> bytes:
    """Decompress at most one byte more than the limit."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return packed
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise NotFetched(
            "unreadable", f"compressed with {encoding[:50]!r}, which was not requested"
        )
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        return unpacking.decompress(packed, most + 1)
    except zlib.error:
        raise NotFetched("unreadable", "it cannot be unpacked") from None
