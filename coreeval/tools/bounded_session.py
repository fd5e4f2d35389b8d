"""Sessions of `requests` for SDKs that need one: no redirects, and limits for each response.

The timeout of `requests` applies to a single read, so a server that sends one byte per second never
exceeds it.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import TracebackType

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from coreeval.tools.http import BodyTooLong, ResponseBody

_PIECE = 1 << 16


class ResponseRejected(requests.RequestException):
    """The response has more bytes or parts than the limit allows."""


class StraightSession(requests.Session):
    """A session that returns redirects as responses instead of following them."""

    def get_redirect_target(self, _answer: requests.Response) -> None:
        """Return None, so that no redirect is followed."""
        return


class BoundedAdapter(HTTPAdapter):
    """An HTTP adapter that reads whole responses, with limits on bytes, parts and time.

    Args:
        most_bytes: The most bytes of a decompressed response.
        most_parts: The most commas of a response; parsing millions of empty lists takes gigabytes.
        silent_s: The most seconds that a single read may take.
        most_s: The most seconds from sending a request to the end of its response, unless
            `limit_request_time` sets another limit.
    """

    def __init__(self, *, most_bytes: int, most_parts: int, silent_s: float, most_s: float) -> None:
        self._most_bytes, self._most_parts = most_bytes, most_parts
        self._silent_s, self._most_s = silent_s, most_s
        super().__init__()

    def init_poolmanager(self, *sizes: object, **settings: object) -> None:
        """Register all connections with the watch of their request."""
        super().init_poolmanager(*sizes, **settings)  # type: ignore[arg-type]
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **settings: object) -> object:
        """Register connections through a proxy as well."""
        manager = super().proxy_manager_for(proxy, **settings)
        if "socks" not in proxy.split(":", 1)[0].lower():
            manager.pool_classes_by_scheme = _POOLS
        return manager

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: object = None,
        verify: bool | str = True,
        cert: str | tuple[str, str] | None = None,
        proxies: dict[str, str] | None = None,
    ) -> requests.Response:
        """Return a response with its body.

        Raises:
            ResponseRejected: the response has too many bytes or parts.
            requests.ReadTimeout: the response takes too long.
            requests.RequestException: the server does not respond, or the response is broken.
        """
        silent = (
            min(timeout, self._silent_s) if isinstance(timeout, int | float) else self._silent_s
        )
        with _Watch(_request_s.get(self._most_s)):
            answer = super().send(request, True, silent, verify, cert, proxies)
            answer._content = self._read(answer)
        return answer

    def _read(self, answer: requests.Response) -> bytes:
        body = ResponseBody(self._most_bytes)
        try:
            for piece in answer.iter_content(_PIECE):
                body.add(piece)
        except BodyTooLong as error:
            raise ResponseRejected(str(error), request=answer.request) from None
        finally:
            answer.close()
        read = body.to_bytes()
        if read.count(b",") > self._most_parts:
            told = f"the response has more than {self._most_parts:,} parts"
            raise ResponseRejected(told, request=answer.request)
        return read


_request_s: ContextVar[float] = ContextVar("_request_s")


@contextmanager
def limit_request_time(most_s: float) -> Iterator[None]:
    """Limit the time of each request inside the block, including its response."""
    token = _request_s.set(most_s)
    try:
        yield
    finally:
        _request_s.reset(token)


class _Watch:
    """A timer that shuts the connections of a request when its time is up, which ends all reads."""

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._timer = threading.Timer(max(0.0, most_s), self._end)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._is_over = False

    def __enter__(self) -> None:
        self._token = _watch.set(self)
        self._timer.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        _watch.reset(self._token)
        if self._is_over:  # the cause is the timeout
            raise requests.ReadTimeout(f"the response took more than {self._most_s:g} s") from None

    def hold(self, opened: socket.socket) -> None:
        """Register a connection that the request uses."""
        with self._lock:
            self._sockets.append(opened)
            over = self._is_over
        if over:
            _shut(opened)

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            held = list(self._sockets)
        for each in held:
            _shut(each)


_watch: ContextVar[_Watch] = ContextVar("_watch")


def _shut(opened: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        opened.shutdown(socket.SHUT_RDWR)


class _Watched(HTTPConnection):
    """A connection that the watch of its request can shut."""

    def send(self, data: object) -> None:
        """Send bytes, after registering the connection."""
        if self.sock is None:
            self.connect()
        _watch.get().hold(self.sock)
        super().send(data)  # type: ignore[arg-type]


class _WatchedTls(_Watched, HTTPSConnection):
    """A TLS connection that the watch of its request can shut."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Watched


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedTls


_POOLS = {"http": _Pool, "https": _TlsPool}
