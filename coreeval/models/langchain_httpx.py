"""What bounds the bodies of packages that open a client of `httpx` themselves, such as Ollama's."""

from collections.abc import AsyncIterator
from typing import Any

import httpx

from coreeval.tools.http import MOST_BODY_BYTES, BodyTooLong


def bounded_settings() -> dict[str, Any]:
    """Return settings of an `httpx.AsyncClient` that reads no body without end.

    A body comes as it is, since what unpacks it has no bound.
    """
    return {
        "headers": {"accept-encoding": "identity"},
        "event_hooks": {"response": [_bound_response]},
    }


async def _bound_response(response: httpx.Response) -> None:
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        await response.aclose()
        raise httpx.DecodingError(f"the response is packed, unasked: {packed[:40]!r}")
    if isinstance(response.stream, httpx.AsyncByteStream):
        response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body's pieces as long as they are not too many."""
        left = MOST_BODY_BYTES
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise BodyTooLong(f"the response has more than {MOST_BODY_BYTES / (1 << 20):g} MiB")
            yield piece

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._stream.aclose()
