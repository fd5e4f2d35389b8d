"""A time limit on what a server takes for one answer: its connection, its headers and its body.

The timeout of an HTTP client is that of a single read, so that a server which sends a byte now and
then holds it for ever. Here each read may take no longer than is left of the whole.
"""

import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import httpcore2
import httpx2


class ResponseOverdue(Exception):
    """An answer takes longer than is waited for."""


class Deadline:
    """The seconds that are left for one answer.

    Args:
        most_s: How many there are.
    """

    def __init__(self, most_s: float) -> None:
        self.most_s, self._end = most_s, time.monotonic() + most_s

    @contextmanager
    def limit_step(self, timeout: float | None) -> Iterator[float]:
        """Give the timeout of one step: the one asked for, or less where less is left.

        Raises:
            ResponseOverdue: nothing is left, before the step or when it has timed out.
        """
        self._check()
        left = self._end - time.monotonic()
        try:
            yield max(0.001, left if timeout is None else min(timeout, left))
        except httpcore2.TimeoutException:
            self._check()
            raise

    def restart(self) -> None:
        """Count from now on: the server has got a piece of the request, and answers to that."""
        self._end = time.monotonic() + self.most_s

    def _check(self) -> None:
        if time.monotonic() >= self._end:
            raise ResponseOverdue(f"the response takes more than {self.most_s:g} s")


_deadline: ContextVar[Deadline] = ContextVar("_deadline")


@contextmanager
def limit_response_time(most_s: float) -> Iterator[None]:
    """Bound the time of an answer inside the block, over a transport of `keep_to_deadline`."""
    token = _deadline.set(Deadline(most_s))
    try:
        yield
    finally:
        _deadline.reset(token)


def keep_to_deadline(transport: httpx2.BaseTransport | None) -> None:
    """Have the connections of a transport keep to `limit_response_time`; one of a test has none."""
    if isinstance(transport, httpx2.HTTPTransport):
        pool = transport._pool
        pool._network_backend = _Network(pool._network_backend)


class _Network(httpcore2.NetworkBackend):
    """Opens connections that keep to the deadline."""

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
    """A connection each of whose steps keeps to the deadline."""

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
