"""Serving the pages from this machine until a signal ends it."""

import errno
import secrets
import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from coreeval.errors import UsageError
from coreeval.viewer.app import LOOPBACK

_EVERY_ADDRESS = ("0.0.0.0", "::")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where pages are served: a socket that listens, and what a reader must know."""

    listener: socket.socket
    host: str
    token: str | None
    """None on loopback, where only those come who are on this machine."""

    @property
    def address(self) -> str:
        """What a reader opens."""
        name = socket.gethostname() if self.host in _EVERY_ADDRESS else self.host
        shown = f"[{name}]" if ":" in name else name
        port = self.listener.getsockname()[1]
        return f"http://{shown}:{port}/" + (f"?token={self.token}" if self.token else "")

    @property
    def allowed_hosts(self) -> Collection[str]:
        """Names that the pages are served under; a bare address is safe where a token is asked."""
        if self.token is None:
            return LOOPBACK
        return {*LOOPBACK, socket.gethostname().lower(), self.host.lower(), "*"}


def take_place(host: str, port: int) -> Place:
    """Listen on a port; 0 is any free one.

    Raises:
        UsageError: the port is in use or not ours to use, or the host is not this machine's.
    """
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
    except OSError as error:
        raise _no_place(host, port, error) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise _no_place(host, port, error) from None
    token = None if host in LOOPBACK else secrets.token_urlsafe(24)
    return Place(listener=listener, host=host, token=token)


def _no_place(host: str, port: int, error: OSError) -> UsageError:
    if error.errno == errno.EADDRINUSE:
        said, hint = f"port {port} is in use", "end what uses it, or give another with --port"
    else:
        said = f"the pages cannot be served there: {error.strerror or error}"
        hint = "give --host and --port of this machine"
    return UsageError(said, where=f"{host}:{port}", hint=hint)


class PageServer(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, app: ASGIApp, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,  # or it closes the log handlers of its process
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=1,
            )
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started:
            self._ready()


def serve(app: ASGIApp, place: Place, *, ready: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM, which end it quietly; `ready` is called once it answers."""
    with place.listener, suppress(KeyboardInterrupt):  # the signal is raised again at the end
        PageServer(app, ready).run(sockets=[place.listener])
