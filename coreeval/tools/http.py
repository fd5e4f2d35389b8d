"""Reads HTTP responses up to limits of bytes and time, and checks redirects.

The timeout of an HTTP client applies to a single read, so a server that sends a byte from time to
time can keep it waiting forever. Here the limit applies to the whole response.

A server decides how much it sends, so bodies are never read without a limit. `BoundedClient` and
`read_bounded` read and decompress a whole response on arrival, including redirects and errors. Its
text is decoded as UTF-8: the codec that a server names may be slow, or not be a text codec.
`ResponseBody` does the same for clients of aiohttp.
"""

import ipaddress
import math
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import httpcore2
import httpx2


class ResponseOverdue(Exception):
    """The response takes longer than the limit."""


class Deadline:
    """The time left for one response."""

    def __init__(self, most_s: float) -> None:
        self.most_s, self._end = most_s, time.monotonic() + most_s

    @contextmanager
    def limit_step(self, timeout: float | None) -> Iterator[float]:
        """Yield the timeout of one step: the given one, or less if less time is left.

        Raises:
            ResponseOverdue: no time is left before the step, or the step timed out.
        """
        self._check()
        left = self._end - time.monotonic()
        try:
            yield max(0.001, left if timeout is None else min(timeout, left))
        except httpcore2.TimeoutException:
            self._check()
            raise

    def restart(self) -> None:
        """Restart the time: the server received a part of the request, and responds to that."""
        self._end = time.monotonic() + self.most_s

    def _check(self) -> None:
        if time.monotonic() >= self._end:
            raise ResponseOverdue(f"the response took more than {self.most_s:g} s")


_deadline: ContextVar[Deadline] = ContextVar("_deadline")


@contextmanager
def limit_response_time(most_s: float) -> Iterator[None]:
    """Limit the response time inside the block, for a transport prepared by `keep_to_deadline`."""
    token = _deadline.set(Deadline(most_s))
    try:
        yield
    finally:
        _deadline.reset(token)


def keep_to_deadline(transport: httpx2.BaseTransport | None) -> None:
    """Apply `limit_response_time` to a transport's connections; transports of tests have none."""
    if isinstance(transport, httpx2.HTTPTransport):
        pool = transport._pool
        pool._network_backend = _Network(pool._network_backend)


def _keep_client_to_deadline(client: httpx2.Client) -> None:
    for transport in (client._transport, *client._mounts.values()):
        keep_to_deadline(transport)


class _Network(httpcore2.NetworkBackend):
    """A network backend whose connections meet the deadline."""

    def __init__(self, inner: httpcore2.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        with _deadline.get().limit_step(timeout) as left:
            opened = self._inner.connect_tcp(host, port, left, local_address, socket_options)
        return _Stream(opened)

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _Stream(httpcore2.NetworkStream):
    """A connection that checks the deadline at each step."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _deadline.get().limit_step(timeout) as left:
            return self._inner.read(max_bytes, left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        most_s = _deadline.get().most_s
        self._inner.write(buffer, most_s if timeout is None else min(timeout, most_s))
        _deadline.get().restart()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        with _deadline.get().limit_step(timeout) as left:
            return _Stream(self._inner.start_tls(ssl_context, server_hostname, left))

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


MOST_BODY_BYTES: Final = 8 << 20
"""The most decompressed bytes of a response that is read as a whole: 8 MiB (own choice). The
longest answer has 1 MiB, the longest list of models 1 MB, and 250 rows of GDELT 200 kB."""


class BodyTooLong(Exception):
    """The body has more bytes than the limit."""


class ResponseBody:
    """A buffer for the decompressed bytes of a response."""

    def __init__(self, most_bytes: int = MOST_BODY_BYTES) -> None:
        self._most = most_bytes
        self._bytes = bytearray()

    def add(self, piece: bytes) -> None:
        """Append the next bytes.

        Raises:
            BodyTooLong: the body exceeds the limit with these bytes.
        """
        if len(self._bytes) + len(piece) > self._most:
            raise BodyTooLong(f"the response has more than {self._most / (1 << 20):g} MiB")
        self._bytes += piece

    def to_bytes(self) -> bytes:
        """Return all bytes."""
        return bytes(self._bytes)


MOST_PARTS: Final = 300_000
"""The most commas of an answer, more than the number of characters of the longest answer. Millions
of empty lists have few bytes but take gigabytes once parsed."""
_BODY_HEADERS: Final = {b"content-encoding", b"content-length", b"transfer-encoding"}


class ResponseTooLong(httpx2.TransportError):
    """The response has more bytes than the limit, or takes too long."""


class BoundedClient(httpx2.Client):
    """A client that limits the size and time of responses.

    Args:
        most_bytes: The most bytes of a decompressed response.
        most_s: The most seconds for connecting, and for a response including its headers, besides
            the timeout of each read. Sending the request does not count.
        settings: The arguments of `httpx2.Client`.
    """

    def __init__(
        self, *, most_s: float, most_bytes: int = MOST_BODY_BYTES, **settings: object
    ) -> None:
        self._most_bytes, self._most_s = most_bytes, most_s
        super().__init__(**settings)  # type: ignore[arg-type]
        _keep_client_to_deadline(self)

    def _send_single_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return a response with its body, before redirects are followed.

        Raises:
            ResponseTooLong: the response has too many bytes, or takes too long.
            httpx2.RequestError: the server does not respond, or the response is broken.
        """
        try:
            with limit_response_time(self._most_s):
                return self._read(super()._send_single_request(request))
        except (BodyTooLong, ResponseOverdue) as error:
            raise ResponseTooLong(str(error), request=request) from None

    def _read(self, response: httpx2.Response) -> httpx2.Response:
        body = ResponseBody(self._most_bytes)
        try:
            for piece in response.iter_bytes():
                body.add(piece)
        finally:
            response.close()
        return replace_body(response, body)


def post_for_status(url: str, body: object, *, most_s: float) -> int:
    """Post JSON and return the status of the response without reading its body.

    Args:
        url: The address; redirects are not followed.
        body: The JSON to send.
        most_s: The most seconds for connecting, and for the response up to its headers.

    Raises:
        ResponseOverdue: the response takes longer.
        httpx2.HTTPError: the server does not respond, or the response is broken.
    """
    with httpx2.Client(timeout=most_s) as client:
        _keep_client_to_deadline(client)
        with limit_response_time(most_s), client.stream("POST", url, json=body) as answer:
            return answer.status_code


async def read_bounded(
    response: httpx2.Response, *, most_bytes: int = MOST_BODY_BYTES
) -> httpx2.Response:
    """Return a model's response with its body; the caller limits the time.

    Raises:
        ResponseTooLong: it has more than `most_bytes` bytes when decompressed, or more than
            `MOST_PARTS` parts.
        httpx2.RequestError: its body is broken.
    """
    body = ResponseBody(most_bytes)
    try:
        async for piece in response.aiter_bytes():
            body.add(piece)
    except BodyTooLong as error:
        raise ResponseTooLong(str(error), request=response.request) from None
    finally:
        await response.aclose()
    read = replace_body(response, body)
    if read.content.count(b",") > MOST_PARTS:
        told = f"the response has more than {MOST_PARTS:,} parts"
        raise ResponseTooLong(told, request=response.request)
    return read


def replace_body(response: httpx2.Response, body: ResponseBody) -> httpx2.Response:
    """Return a response with the body that was read, without its transfer headers."""
    headers = [pair for pair in response.headers.raw if pair[0].lower() not in _BODY_HEADERS]
    made = httpx2.Response(
        response.status_code,
        headers=headers,
        content=body.to_bytes(),
        request=response.request,
        extensions=response.extensions,
    )
    made.encoding = "utf-8"
    return made


def describe_http_error(error: Exception) -> str:
    """Describe an error without the address, since a proxy's may hold its password."""
    if isinstance(error, aiohttp.ClientResponseError):
        said = f"HTTP {error.status} {error.message}".strip()
        proxied = isinstance(error, aiohttp.ClientHttpProxyError)
        return f"the proxy answered {said}" if proxied else said
    return str(error) or type(error).__name__


_PORTS: Final = {"http": 80, "https": 443}
_LOCAL: Final = ("localhost", ".localhost", ".local", ".internal")
Check = Callable[[httpx2.Request], None]


class LedElsewhere(httpx2.RequestError):
    """A redirect leads to a host that is not allowed."""


def to_same_host(url: str) -> Check:
    """Return a check that each request keeps the origin of `url`, or only changes http to https."""
    scheme, host, port = _origin(url)

    def check(request: httpx2.Request) -> None:
        found = _origin(str(request.url))
        better = (scheme, found[0]) == ("http", "https") and found[2] == _PORTS["https"]
        if found != (scheme, host, port) and not (better and found[1] == host):
            raise LedElsewhere(
                f"it redirects to {_shown(found)}; if this is intended, use that address",
                request=request,
            )

    return check


def to_public_stores(hub: str) -> Check:
    """Return a check that each request goes to a hub or to the public stores of its large files.

    A store must be public and use https, and does not get the hub's token. A host with a name
    counts as public unless the name is local; the address that it resolves to is not checked.
    """
    own = _origin(hub)

    def check(request: httpx2.Request) -> None:
        found = _origin(str(request.url))
        if found == own:
            return
        trusted = found[0] == "https" and _is_public(found[1])
        if not trusted or "authorization" in request.headers:
            raise LedElsewhere(
                f"the hub redirects to {_shown(found)}; CoreEval does not follow this redirect",
                request=request,
            )

    return check


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)


def _shown(origin: tuple[str, str, int]) -> str:
    scheme, host, port = origin
    return f"{scheme}://{host}" + ("" if port == _PORTS.get(scheme) else f":{port}")


def _is_public(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        plain = host.rstrip(".")
        numeric = plain.replace(".", "").removeprefix("0x").isdigit()  # 2130706433, 0x7f.1
        return not (numeric or plain.endswith(_LOCAL))


def parse_retry_after(header: str | None, *, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks for: a number or an HTTP date."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        return _seconds_until(header, now or datetime.now(UTC))
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(header: str, now: datetime) -> float | None:
    from email.utils import parsedate_to_datetime  # takes 6 ms, needed only for dates

    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)
