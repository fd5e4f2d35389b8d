"""The application (routes, middlewares, error pages), and the server that runs it.

The server listens on this machine until a signal ends it. Beyond loopback it asks for a token.
"""

import errno
import secrets
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from coreeval.errors import CoreEvalError, UsageError
from coreeval.tools.workspace import Workspace
from coreeval.viewer import compare_page, run_pages, sample_list, sample_page
from coreeval.viewer.catalog import RunCatalog
from coreeval.viewer.rendering import make_environment, render_page
from coreeval.viewer.security import SECURITY_HEADERS, AccessGuard, SecurityHeaders

ROUTES: tuple[Route, ...] = (
    Route("/", run_pages.show_runs),
    Route("/compare", compare_page.show_comparison),
    Route("/run/{key}", run_pages.show_run),
    Route("/run/{key}/live", run_pages.show_progress),
    Route("/run/{key}/samples", sample_list.show_samples),
    Route("/run/{key}/sample/{id:path}", sample_page.show_sample),
    Route("/run/{key}/detection", run_pages.show_detection),
    Route("/run/{key}/report", run_pages.send_report),
)


STATIC_FOLDERS: list[str | tuple[str, str]] = [
    ("coreeval.viewer", "static"),
    ("coreeval.evaluation.report", "static"),
]
"""Packages and their folders: the pages' own, and the style of plots that a report has too."""
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


def create_app(
    runs: Sequence[Path],
    *,
    workspace: Workspace | None = None,
    token: str | None = None,
    hide_texts: bool = False,
    allowed_hosts: Collection[str] = LOOPBACK_HOSTS,
) -> Starlette:
    """Return the pages of some runs.

    Args:
        runs: Directories of runs.
        workspace: Whose runs and releases are shown besides.
        token: What a reader must know; None lets everybody read who can reach the pages.
        hide_texts: Whether texts, prompts and answers are left out.
        allowed_hosts: Names that the pages are served under; `*` stands for any bare IP address.
    """
    app = Starlette(
        routes=[*ROUTES, Mount("/static", StaticFiles(packages=STATIC_FOLDERS))],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(AccessGuard, hosts=allowed_hosts, token=token),
        ],
        exception_handlers={
            CoreEvalError: _handle_known_error,
            HTTPException: _handle_http_error,
            Exception: _handle_bug,
        },
    )
    app.state.catalog = RunCatalog(runs=runs, workspace=workspace)
    app.state.templates = make_environment()
    app.state.hide_texts = hide_texts
    return app


def _handle_known_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CoreEvalError)
    status = 404 if isinstance(error, UsageError) else 500
    return _render_error(request, status, error.message, where=error.where, hint=error.hint)


def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _render_error(request, error.status_code, error.detail)


def _handle_bug(request: Request, error: Exception) -> Response:
    """Answer for a bug; its traceback goes to where the server was started."""
    said = f"These pages made a mistake: {type(error).__name__}. The terminal shows where."
    answer = _render_error(request, 500, said)
    answer.headers.update(SECURITY_HEADERS)  # it is made outside of the middlewares
    return answer


def _render_error(
    request: Request, status: int, message: str, *, where: str = "", hint: str = ""
) -> Response:
    context = {"title": HTTPStatus(status).phrase, "message": message, "where": where, "hint": hint}
    return render_page(request, "error.html", status=status, **context)


_WILDCARD_ADDRESSES = ("0.0.0.0", "::")


@dataclass(frozen=True, kw_only=True)
class ServerSocket:
    """Where pages are served: a socket that listens, and what a reader must know."""

    listener: socket.socket
    host: str
    token: str | None
    """None on loopback, where only those come who are on this machine."""

    @property
    def address(self) -> str:
        """What a reader opens."""
        name = socket.gethostname() if self.host in _WILDCARD_ADDRESSES else self.host
        shown = f"[{name}]" if ":" in name else name
        port = self.listener.getsockname()[1]
        return f"http://{shown}:{port}/" + (f"?token={self.token}" if self.token else "")

    @property
    def allowed_hosts(self) -> Collection[str]:
        """Names that the pages are served under; a bare address is safe where a token is asked."""
        if self.token is None:
            return LOOPBACK_HOSTS
        return {*LOOPBACK_HOSTS, socket.gethostname().lower(), self.host.lower(), "*"}


def open_server_socket(host: str, port: int) -> ServerSocket:
    """Listen on a port; 0 is any free one.

    Raises:
        UsageError: the port is in use or not ours to use, or the host is not this machine's.
    """
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
    except OSError as error:
        raise _build_socket_error(host, port, error) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise _build_socket_error(host, port, error) from None
    token = None if host in LOOPBACK_HOSTS else secrets.token_urlsafe(24)
    return ServerSocket(listener=listener, host=host, token=token)


def _build_socket_error(host: str, port: int, error: OSError) -> UsageError:
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


def serve(app: ASGIApp, server_socket: ServerSocket, *, ready: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM, which end it quietly; `ready` is called once it answers."""
    with (
        server_socket.listener,
        suppress(KeyboardInterrupt),
    ):  # the signal is raised again at the end
        PageServer(app, ready).run(sockets=[server_socket.listener])
