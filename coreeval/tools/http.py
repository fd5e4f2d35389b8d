"""HTTP responses that are read up to a limit, and errors in words that are safe to show.

A server decides how much it sends, so nobody reads a body without an end. `BoundedClient` and
`read_bounded` read a response as a whole where it arrives, redirects and errors included, and
hand it on unpacked. Its text is UTF-8: the codec that a server names may take its time, or be
none of texts. `ResponseBody` does the same for clients of aiohttp.
"""

from typing import Final

import aiohttp
import httpx2

from coreeval.tools.deadlines import ResponseOverdue, keep_to_deadline, limit_response_time

MOST_BODY_BYTES: Final = 8 << 20
"""Bytes of a response that is read as a whole, after unpacking: 8 MiB (own choice). The longest
answer that is read has 1 MiB, the longest list of models 1 MB, and 250 rows of GDELT's 200 kB."""


class BodyTooLong(Exception):
    """A body has more bytes than are read of one."""


class ResponseBody:
    """Bytes as they come in, unpacked.

    Args:
        most_bytes: How many are taken.
    """

    def __init__(self, most_bytes: int = MOST_BODY_BYTES) -> None:
        self._most = most_bytes
        self._bytes = bytearray()

    def add(self, piece: bytes) -> None:
        """Take the next bytes.

        Raises:
            BodyTooLong: they are too many, together with those before.
        """
        if len(self._bytes) + len(piece) > self._most:
            raise BodyTooLong(f"the response has more than {self._most / (1 << 20):g} MiB")
        self._bytes += piece

    def to_bytes(self) -> bytes:
        """Return all bytes."""
        return bytes(self._bytes)


MOST_PARTS: Final = 300_000
"""Commas of an answer: more than the longest that is read has characters. One of millions of empty
lists has few bytes, and takes gigabytes once it is read."""
_BODY_HEADERS: Final = {b"content-encoding", b"content-length", b"transfer-encoding"}


class ResponseTooLong(httpx2.TransportError):
    """A response has more bytes than are read of one, or takes longer than is waited for."""


class BoundedClient(httpx2.Client):
    """A client whose responses are bounded in size and time.

    Args:
        most_bytes: Bytes of a response, unpacked.
        most_s: Seconds that a connection may take, and that a response may with its headers,
            besides the timeout of a single read. Sending the request does not count.
        settings: What `httpx2.Client` takes.
    """

    def __init__(
        self, *, most_s: float, most_bytes: int = MOST_BODY_BYTES, **settings: object
    ) -> None:
        self._most_bytes, self._most_s = most_bytes, most_s
        super().__init__(**settings)  # type: ignore[arg-type]
        for transport in (self._transport, *self._mounts.values()):
            keep_to_deadline(transport)

    def _send_single_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return a response with its body, before redirects are followed.

        Raises:
            ResponseTooLong: it has too many bytes, or takes too long.
            httpx2.RequestError: nothing answers, or the answer is broken.
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


async def read_bounded(
    response: httpx2.Response, *, most_bytes: int = MOST_BODY_BYTES
) -> httpx2.Response:
    """Return a model's response with its body; whoever calls bounds the time.

    Raises:
        ResponseTooLong: it has more bytes than `most_bytes` when unpacked, or more than
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
    """Return a response with a body that was read, and without what was said of it on the wire."""
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
    """Say what went wrong without the address: a proxy's may hold its password."""
    if isinstance(error, aiohttp.ClientResponseError):
        said = f"HTTP {error.status} {error.message}".strip()
        proxied = isinstance(error, aiohttp.ClientHttpProxyError)
        return f"the proxy answered {said}" if proxied else said
    return str(error) or type(error).__name__
