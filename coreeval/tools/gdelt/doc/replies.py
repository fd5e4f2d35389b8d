"""One request to DOC 2.0, and the meaning of its reply: news, none, a refusal, or invalid."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from coreeval.config.models import split_address
from coreeval.errors import KnowledgeError
from coreeval.project import make_user_agent
from coreeval.tools.gdelt.rows import parse_lenient_json
from coreeval.tools.http import BodyTooLong, ResponseBody, describe_http_error, parse_retry_after


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    """The response received for a request."""

    status: int
    body: bytes
    retry_after: str = ""
    """The Retry-After header."""


class NoReply(Exception):
    """No complete response arrived; the message gives the reason."""


class DocWire(Protocol):
    """A connection over which requests can be sent."""

    async def get(self, parameters: Mapping[str, str], timeout_s: float) -> HttpReply:
        """Send one request.

        Raises:
            NoReply: no complete answer arrives within the time.
        """
        ...


@dataclass(frozen=True)
class HttpWire:
    """A connection that sends requests over HTTP."""

    session: aiohttp.ClientSession
    base_url: str
    proxy: str | None

    async def get(self, parameters: Mapping[str, str], timeout_s: float) -> HttpReply:
        """Send one request, its query percent-encoded as a whole.

        Raises:
            NoReply: no complete answer arrives within the time.
        """
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self.session.get(
                build_url(self.base_url, parameters),
                proxy=self.proxy,
                timeout=timeout,
                allow_redirects=False,  # the target has no consent
            ) as response:
                body = await _read_body(response)
                return HttpReply(
                    status=response.status,
                    body=body,
                    retry_after=response.headers.get("Retry-After", ""),
                )
        except TimeoutError as error:
            raise NoReply(f"no answer within {timeout_s:.0f} s") from error
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise NoReply(describe_http_error(error)) from None


@asynccontextmanager
async def open_wire(base_url: str) -> AsyncIterator[HttpWire]:
    """Yield a connection to the service, through the proxy that the environment names.

    The service refuses requests without a User-Agent.
    """
    headers = {"User-Agent": make_user_agent("dated news for benchmarks")}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield HttpWire(session, base_url, find_proxy(base_url))


def build_url(base_url: str, parameters: Mapping[str, str]) -> URL:
    """Return the URL of a request, encoded so that `AT&T` and `C#` arrive unchanged."""
    query = urlencode(parameters, quote_via=quote, safe="")
    return URL(f"{base_url}{'&' if '?' in base_url else '?'}{query}", encoded=True)


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    body = ResponseBody()
    try:
        async for chunk in response.content.iter_any():
            body.add(chunk)
    except BodyTooLong as error:
        raise NoReply(str(error)) from None
    return body.to_bytes()


def find_proxy(url: str) -> str | None:
    """Return the proxy of HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, unless NO_PROXY names the host.

    Raises:
        KnowledgeError: the kind of proxy is not supported.
    """
    parts, known = urlsplit(url), getproxies()
    proxy = known.get(parts.scheme) or known.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    named = proxy if "://" in proxy else f"http://{proxy}"
    try:
        usable = split_address(named).scheme in ("http", "https")
    except ValueError:
        usable = False
    if not usable:
        raise KnowledgeError(
            "the environment names a proxy that DOC 2.0 requests cannot use: "
            f"{named.partition('://')[0]}://…",
            where="environment variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY",
            hint="name an http:// proxy, or add the service's host to NO_PROXY",
        )
    return named


DocRow = Mapping[str, object]

THROTTLED = ("please limit requests to one every", "larger queries", "too many requests")
REJECTED = (
    "specified phrase is too short",
    "contained a keyword that was too short",
    "query was too short or too long",
    "too short, too long or too common",
    "or'd terms must be surrounded by ()",
    "or's may only appear inside of a () clause",
    "parentheses may only be used around or'd statements",
    "parenthetical clauses had an error in it",
    "contained an illegal character",
    "timespan is too short",
    "invalid query start date",
    "invalid query end date",
    "invalid/unsupported country",
    "contained an invalid location search",
    "must contain at least one station",
)
"""Messages of the service that mean a rejection, in lower case."""
LONGEST_REFUSAL = 200
"""The most characters of a rejection; a short sentence that is not JSON is a rejection in new
words."""


@dataclass(frozen=True)
class ArticleList:
    """Articles, as described by the service."""

    rows: tuple[DocRow, ...]


@dataclass(frozen=True)
class EmptyAnswer:
    """An empty answer: no match, or a mistake of the service; `{}` was seen for both."""


@dataclass(frozen=True)
class RateLimitAnswer:
    """The service rejected the request because of its rate limit."""

    retry_after_s: float | None = None


@dataclass(frozen=True)
class Rejection:
    """The service rejected the query itself; repeating it is useless."""

    message: str


@dataclass(frozen=True)
class ServiceFailure:
    """The service does not work as usual."""

    message: str


DocAnswer = ArticleList | EmptyAnswer | RateLimitAnswer | Rejection | ServiceFailure


def read_reply(reply: HttpReply) -> DocAnswer:
    """Return the meaning of a reply."""
    # A stray Latin-1 byte harms one character, not the list.
    text = reply.body.decode("utf-8", errors="replace").removeprefix("\ufeff").strip()
    document = _document(text) if reply.status == 200 else None
    if document is not None:
        return _article_list(document)
    folded = text.casefold()
    if reply.status == 429 or any(notice in folded for notice in THROTTLED):
        return RateLimitAnswer(parse_retry_after(reply.retry_after))
    if reply.status not in (200, 400):
        return ServiceFailure(f"status {reply.status}")
    return _refusal(text, folded)


def _document(text: str) -> DocRow | None:
    """Parse a JSON object; stray backslashes and control characters are kept as characters."""
    if not text.startswith("{"):
        return None
    return parse_lenient_json(text)


def _article_list(document: DocRow) -> DocAnswer:
    if not document:
        return EmptyAnswer()
    rows = document.get("articles")
    if not isinstance(rows, list):
        return ServiceFailure("JSON without articles")
    listed = tuple(row for row in rows if isinstance(row, dict))
    return ArticleList(listed) if listed else EmptyAnswer()


def _refusal(text: str, folded: str) -> DocAnswer:
    if not text:
        return ServiceFailure("an empty answer")
    if text.startswith("{"):
        return ServiceFailure("truncated JSON")
    if text.startswith("<") or "<html" in folded:
        return ServiceFailure("an HTML page")
    known = any(refusal in folded for refusal in REJECTED)
    if known or (len(text) <= LONGEST_REFUSAL and text[0].isupper()):
        return Rejection(" ".join(text.split())[:LONGEST_REFUSAL])
    return ServiceFailure("an answer that is neither JSON nor a sentence")
