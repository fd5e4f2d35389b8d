"""Sending one request to DOC 2.0 and taking whatever comes back."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from coreeval.errors import KnowledgeError
from coreeval.tools.http import BodyTooLong, ResponseBody, describe_http_error

USER_AGENT = "coreeval (dated news for benchmarks)"
"""Requests that do not say who they are are refused (research: gdelt §1)."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back over the wire."""

    status: int
    body: bytes
    retry_after: str = ""
    """The Retry-After header."""


class NoReply(Exception):
    """Nothing came back, or not all of it; the message says why."""


class Wire(Protocol):
    """Whatever a request can be sent over."""

    async def get(self, parameters: Mapping[str, str], timeout_s: float) -> Reply:
        """Send one request.

        Raises:
            NoReply: no whole answer within the time.
        """
        ...


@dataclass(frozen=True)
class HttpWire:
    """Sends requests over HTTP."""

    session: aiohttp.ClientSession
    base_url: str
    proxy: str | None

    async def get(self, parameters: Mapping[str, str], timeout_s: float) -> Reply:
        """Send one request, its query percent-encoded as a whole.

        Raises:
            NoReply: no whole answer within the time.
        """
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self.session.get(
                encoded(self.base_url, parameters),
                proxy=self.proxy,
                timeout=timeout,
                allow_redirects=False,  # it says where next, and nobody has agreed to that
            ) as response:
                body = await _body(response)
                return Reply(
                    status=response.status,
                    body=body,
                    retry_after=response.headers.get("Retry-After", ""),
                )
        except TimeoutError as error:
            raise NoReply(f"no answer within {timeout_s:.0f} s") from error
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise NoReply(describe_http_error(error)) from None


@asynccontextmanager
async def http(base_url: str) -> AsyncIterator[HttpWire]:
    """Give a wire to a service, through the proxy that the environment names."""
    async with aiohttp.ClientSession(headers={"User-Agent": USER_AGENT}) as session:
        yield HttpWire(session, base_url, proxy_for(base_url))


def encoded(base_url: str, parameters: Mapping[str, str]) -> URL:
    """Return the address of a request: `AT&T` and `C#` arrive as they were written."""
    query = urlencode(parameters, quote_via=quote, safe="")
    return URL(f"{base_url}{'&' if '?' in base_url else '?'}{query}", encoded=True)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = ResponseBody()
    try:
        async for chunk in response.content.iter_any():
            body.add(chunk)
    except BodyTooLong as error:
        raise NoReply(str(error)) from None
    return body.to_bytes()


def proxy_for(url: str) -> str | None:
    """Return the proxy of HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, unless NO_PROXY names the host.

    Raises:
        KnowledgeError: it is a kind of proxy that cannot be spoken to.
    """
    parts, known = urlsplit(url), getproxies()
    proxy = known.get(parts.scheme) or known.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    named = proxy if "://" in proxy else f"http://{proxy}"
    kind = urlsplit(named).scheme
    if kind not in ("http", "https"):
        raise KnowledgeError(
            f"the environment names a proxy that cannot be used for DOC 2.0: {kind}://…",
            where="environment variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY",
            hint="name an http:// proxy, or put the service's host into NO_PROXY",
        )
    return named
