"""The application (routes, middlewares, error pages), and its server.

The server listens on this machine until a signal ends it. Outside loopback, it requires a token.
"""

import errno
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coreeval.errors import CoreEvalError, UsageError
from coreeval.tools.workspace import Workspace
from coreeval.viewer import (
    compare_page,
    downloads,
    note_form,
    run_pages,
    sample_list,
    sample_page,
    several_page,
)
from coreeval.viewer.bundle import BundlePlan
from coreeval.viewer.catalog import RunCatalog
from coreeval.viewer.rendering import make_environment, render_page

CONTENT_POLICY = "; ".join(
    [
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)
"""Allows no external and no inline code, so text from news and models cannot run."""
SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
COOKIE = "coreeval-token"
READ_METHODS = ("GET", "HEAD")


class SecurityHeaders:
    """Adds security headers to each response that does not set them itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, and add security headers to its response."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, answer)


class AccessGuard:
    """Refuses requests that do not come from a reader: wrong method, wrong host or no token.

    A malicious page can make a browser request any URL, and can point its own domain at this
    machine, but it cannot choose the `Host` header.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], token: str | None) -> None:
        self._app, self._hosts, self._token = app, frozenset(hosts), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or answer it if it is refused or redirected."""
        refusal = self._refuse(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refuse(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in READ_METHODS and not _keeps_note(scope):
            allowed = {"allow": ", ".join(READ_METHODS)}
            return PlainTextResponse("These pages are read-only.", 405, allowed)
        if not self._is_served(headers.get("host", "")):
            return PlainTextResponse("These pages are not served under this host name.", 421)
        return self._check_token(scope, headers) if self._token else None

    def _is_served(self, host: str) -> bool:
        """Return whether a host name is allowed; `*` allows bare IPs, which DNS cannot rebind."""
        name = _strip_port(host).lower()
        return name in self._hosts or ("*" in self._hosts and _is_address(name))

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Move the token from the address to a cookie; refuse requests that have neither."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        if given is not None and self._matches(given):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            there = RedirectResponse(_local_path(scope) + (f"?{rest}" if rest else ""), 303)
            there.set_cookie(COOKIE, given, httponly=True, samesite="lax")
            return there
        if self._matches(_read_cookie(headers)):
            return None
        return PlainTextResponse("Open the address that `coreeval view` printed.", 401)

    def _matches(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self._token or "").encode())


def _keeps_note(scope: Scope) -> bool:
    """Return whether a request saves a note, the only request that may change anything."""
    return scope["method"] == "POST" and note_form.is_note_path(scope["path"])


def _local_path(scope: Scope) -> str:
    """Return the requested path with one leading slash; two would name another host."""
    path: bytes = scope.get("raw_path") or b"/"
    return "/" + path.decode("latin-1").split("?")[0].lstrip("/\\")


def _read_cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _strip_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


ROUTES: tuple[Route, ...] = (
    Route("/", run_pages.show_runs),
    Route("/compare", compare_page.show_comparison),
    Route("/benchmark/{name}", several_page.show_benchmark),
    Route("/run/{key}", run_pages.show_run),
    Route("/run/{key}/live", run_pages.show_progress),
    Route("/run/{key}/samples", sample_list.show_samples),
    Route("/run/{key}/targets", sample_list.show_targets),
    Route("/run/{key}/sample/{id:path}", sample_page.show_sample),
    Route("/run/{key}/note", note_form.keep_note, methods=["POST"]),
    Route("/run/{key}/detection", run_pages.show_detection),
    Route("/run/{key}/report", run_pages.send_report),
    Route("/run/{key}/story/{id:path}", downloads.send_story),
    Route("/run/{key}/download/samples.csv", downloads.send_list),
    Route("/run/{key}/download/{name}", downloads.send_file),
)


STATIC_FOLDERS: list[str | tuple[str, str]] = [
    ("coreeval.viewer", "static"),
    ("coreeval.evaluation.report", "static"),
]
"""Packages and their static folders: the viewer's own, and the plot styles shared with reports."""
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


def create_app(
    runs: Sequence[Path],
    *,
    workspace: Workspace | None = None,
    token: str | None = None,
    hide_texts: bool = False,
    allowed_hosts: Collection[str] = LOOPBACK_HOSTS,
    bundle: BundlePlan | None = None,
) -> Starlette:
    """Return the app that serves the pages of runs.

    Args:
        runs: Directories of runs.
        workspace: The workspace whose runs and releases are also shown.
        token: The token that a reader must send; None admits everyone who can reach the pages.
        hide_texts: Whether to leave out texts, prompts and answers.
        allowed_hosts: The host names of the server; `*` stands for any bare IP address.
        bundle: The pages to write as files; None if they are served.
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
    app.state.bundle = bundle
    app.state.form = secrets.token_urlsafe()
    return app


def _handle_known_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CoreEvalError)
    status = 404 if isinstance(error, UsageError) else 500
    return _render_error(request, status, error.message, where=error.where, hint=error.hint)


def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    missing = error.detail == HTTPStatus.NOT_FOUND.phrase  # Starlette's default
    return _render_error(
        request, error.status_code, "There is no such page." if missing else error.detail
    )


def _handle_bug(request: Request, error: Exception) -> Response:
    """Return the response to a bug; its traceback goes to the server's terminal."""
    said = f"This page could not be created ({type(error).__name__}). The terminal shows the error."
    answer = _render_error(request, 500, said)
    answer.headers.update(SECURITY_HEADERS)  # it is created outside the middlewares
    return answer


def _render_error(
    request: Request, status: int, message: str, *, where: str = "", hint: str = ""
) -> Response:
    context = {"title": HTTPStatus(status).phrase, "message": message, "where": where, "hint": hint}
    return render_page(request, "error.html", status=status, **context)


_WILDCARD_ADDRESSES = ("0.0.0.0", "::")


@dataclass(frozen=True, kw_only=True)
class ServerSocket:
    """The listening socket of the server, and what a reader needs to open the pages."""

    listener: socket.socket
    host: str
    token: str | None
    """The token; None on loopback, which only users of this machine can reach."""

    @property
    def address(self) -> str:
        """Return the address that a reader opens."""
        name = socket.gethostname() if self.host in _WILDCARD_ADDRESSES else self.host
        shown = f"[{name}]" if ":" in name else name
        port = self.listener.getsockname()[1]
        return f"http://{shown}:{port}/" + (f"?token={self.token}" if self.token else "")

    @property
    def allowed_hosts(self) -> Collection[str]:
        """Return the allowed host names; bare addresses are safe if a token is required."""
        if self.token is None:
            return LOOPBACK_HOSTS
        return {*LOOPBACK_HOSTS, socket.gethostname().lower(), self.host.lower(), "*"}


def open_server_socket(host: str, port: int) -> ServerSocket:
    """Listen on a port; 0 picks a free one.

    Raises:
        UsageError: the port is in use or not permitted, or the host is not on this machine.
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
        said, hint = (
            f"port {port} is in use",
            ("stop the program that uses it, or choose another port with --port"),
        )
    else:
        said = f"cannot serve the pages at this address: {error.strerror or error}"
        hint = "set --host and --port to an address of this machine"
    return UsageError(said, where=f"{host}:{port}", hint=hint)


class PageServer(uvicorn.Server):
    """A server that calls a function once it responds."""

    def __init__(self, app: ASGIApp, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,  # otherwise it closes the log handlers of its process
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=1,
            )
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server, and call `ready`."""
        await super().startup(sockets)
        if self.started:
            self._ready()


def serve(app: ASGIApp, server_socket: ServerSocket, *, ready: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM, then exit quietly; call `ready` once the server responds."""
    with (
        server_socket.listener,
        suppress(KeyboardInterrupt),
    ):  # the signal is raised again at the end
        PageServer(app, ready).run(sockets=[server_socket.listener])
