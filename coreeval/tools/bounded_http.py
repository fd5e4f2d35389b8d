"""Clients of httpx2 that read no body without end, whatever they are asked for.

A response is read as a whole where it arrives, redirects and errors included, and is handed on
unpacked. Its text is UTF-8: the codec that a server names may take its time, or be none of texts.
"""

import time
from typing import Final

import httpx2

from coreeval.tools.bodies import MOST_BYTES, Body, BodyTooLong

MOST_PARTS: Final = 300_000
"""Commas of an answer: more than the longest that is read has characters. One of millions of empty
lists has few bytes, and takes gigabytes once it is read."""
_OF_THE_BODY: Final = {b"content-encoding", b"content-length", b"transfer-encoding"}


class ResponseTooLong(httpx2.TransportError):
    """A response has more bytes than are read of one, or takes longer than is waited for."""


class BoundedClient(httpx2.Client):
    """A client whose responses are bounded in size and time.

    Args:
        most_bytes: Bytes of a response, unpacked.
        most_s: Seconds that one response may take, besides the timeout of a single read.
        settings: What `httpx2.Client` takes.
    """

    def __init__(self, *, most_s: float, most_bytes: int = MOST_BYTES, **settings: object) -> None:
        self._most_bytes, self._most_s = most_bytes, most_s
        super().__init__(**settings)  # type: ignore[arg-type]

    def _send_single_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return a response with its body, before redirects are followed."""
        response = super()._send_single_request(request)
        body, end = Body(self._most_bytes), time.monotonic() + self._most_s
        try:
            for piece in response.iter_bytes():
                body.add(piece)
                if time.monotonic() > end:
                    raise BodyTooLong(f"the response takes more than {self._most_s:g} s")
        except BodyTooLong as error:
            raise ResponseTooLong(str(error), request=request) from None
        finally:
            response.close()
        return unpacked(response, body)


async def read_bounded(
    response: httpx2.Response, *, most_bytes: int = MOST_BYTES
) -> httpx2.Response:
    """Return a model's response with its body; whoever calls bounds the time.

    Raises:
        ResponseTooLong: it has more bytes than `most_bytes` when unpacked, or more than
            `MOST_PARTS` parts.
        httpx2.RequestError: its body is broken.
    """
    body = Body(most_bytes)
    try:
        async for piece in response.aiter_bytes():
            body.add(piece)
    except BodyTooLong as error:
        raise ResponseTooLong(str(error), request=response.request) from None
    finally:
        await response.aclose()
    read = unpacked(response, body)
    if read.content.count(b",") > MOST_PARTS:
        told = f"the response has more than {MOST_PARTS:,} parts"
        raise ResponseTooLong(told, request=response.request)
    return read


def unpacked(response: httpx2.Response, body: Body) -> httpx2.Response:
    """Return a response with a body that was read, and without what was said of it on the wire."""
    headers = [pair for pair in response.headers.raw if pair[0].lower() not in _OF_THE_BODY]
    made = httpx2.Response(
        response.status_code,
        headers=headers,
        content=body.whole(),
        request=response.request,
        extensions=response.extensions,
    )
    made.encoding = "utf-8"
    return made
