"""The HTTP client that the SDKs are given: straight to aiohttp, with what they look at of httpx2.

At each request httpx2 merges URL, headers, cookies and redirects, between an SDK that has done so
and aiohttp that does it again: a quarter of what a request takes.
"""

from collections.abc import AsyncIterator
from functools import lru_cache
from typing import cast

import aiohttp
import httpx2
import orjson

from coreeval.models.network import proxy_for, trusted
from coreeval.tools.http import read_bounded
from coreeval.tools.open_files import connections_allowed

MOST_LISTED = 128
"""Parts of an answer, such as choices, of which one is asked for."""
_KEEP_ALIVE_S = 5.0
"""As httpx2 does: servers let go of idle connections a little later."""
parsed = lru_cache(maxsize=64)(httpx2.URL)


class HttpClient(httpx2.AsyncClient):
    """Sends what an SDK has made ready: one URL with all its headers, and a body in bytes.

    Made in the event loop that it is used in.

    Args:
        url: The endpoint, for the proxy that the environment names for it.
        ca_file: PEM file of the authorities that are trusted; None for the system's.

    Raises:
        ConfigError: the proxy or the certificates that are named cannot be used.
    """

    def __init__(self, url: str, ca_file: str | None) -> None:
        tls = trusted(ca_file)
        super().__init__(verify=tls, trust_env=False)
        self._by = proxy_for(url)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=connections_allowed(), ssl=tls, keepalive_timeout=_KEEP_ALIVE_S
            ),
            headers={"Accept-Encoding": self.headers["accept-encoding"]},
            auto_decompress=False,  # the response does
        )

    def build_request(self, method: str, url: httpx2.URL | str, **parts: object) -> httpx2.Request:
        """Return a request with the headers and the content given, and none besides.

        It names neither the host nor the length of its content: aiohttp does.
        """
        timeout = cast("httpx2.Timeout", parts["timeout"])
        return httpx2.Request(
            method,
            url if isinstance(url, httpx2.URL) else parsed(url),
            headers=cast("httpx2.Headers", parts["headers"]),
            stream=httpx2.ByteStream(cast("bytes", parts["content"])),
            extensions={"timeout": timeout.as_dict()},
        )

    async def send(self, request: httpx2.Request, **_options: object) -> httpx2.Response:
        """Return a response with its whole body; a redirect is a response and is not followed.

        Whatever an SDK asks for: the body holds a prompt, and the headers a key.

        Raises:
            httpx2.RequestError: there is none, or its body is broken or too long.
        """
        timeout = request.extensions["timeout"]
        try:
            async with self._session.request(
                request.method,
                str(request.url),
                data=request.read(),
                headers=request.headers.multi_items(),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    sock_connect=timeout["connect"], sock_read=timeout["read"]
                ),
                proxy=str(self._by.url) if self._by else None,
                proxy_headers=self._by.headers if self._by else None,
            ) as answer:
                response = httpx2.Response(
                    answer.status,
                    headers=answer.raw_headers,
                    stream=_Arriving(answer.content),
                    request=request,
                )
                return await read_bounded(response)
        except aiohttp.ClientHttpProxyError as error:
            raise httpx2.ProxyError(str(error), request=request) from error
        except TimeoutError as error:
            raise httpx2.TimeoutException(str(error), request=request) from error
        except (aiohttp.ClientError, UnicodeError) as error:
            raise httpx2.TransportError(str(error), request=request) from error

    async def aclose(self) -> None:
        """Let go of all connections."""
        await self._session.close()
        await super().aclose()


class _Arriving(httpx2.AsyncByteStream):
    """A body as aiohttp reads it."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._content.iter_any():
            yield piece


def body_of(words: object) -> bytes:
    """Return what is sent of a request's words: as bytes, since an SDK walks through all else."""
    try:
        return orjson.dumps(words)
    except TypeError as error:
        raise UnicodeError(f"it cannot be sent: {error}") from None
