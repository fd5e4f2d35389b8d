"""Who may read the pages, and what a page may do in a browser."""

import hmac
import ipaddress
from collections.abc import Collection, Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_POLICY = "; ".join(
    [
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)
"""Nothing from elsewhere and nothing inline, so that words from news and models stay words."""
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
    """Adds to each answer the headers that it does not set itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, answer)


class AccessGuard:
    """Refuses what does not come from a reader: another method, another host, no token.

    A page of a stranger can make a browser ask any address, and can give its own name the address
    of this machine; it cannot choose the `Host` header.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], token: str | None) -> None:
        self._app, self._hosts, self._token = app, frozenset(hosts), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        refusal = self._refuse(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refuse(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in READ_METHODS:
            allowed = {"allow": ", ".join(READ_METHODS)}
            return PlainTextResponse("These pages can only be read.", 405, allowed)
        if not self._is_served(headers.get("host", "")):
            return PlainTextResponse("These pages are not served under this name.", 421)
        return self._check_token(scope, headers) if self._token else None

    def _is_served(self, host: str) -> bool:
        """Tell whether a name is one of those served; a bare address is nobody's to give away."""
        name = _strip_port(host).lower()
        return name in self._hosts or ("*" in self._hosts and _is_address(name))

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Take the token out of the address into a cookie; refuse who has neither."""
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


def _local_path(scope: Scope) -> str:
    """Return the asked path so that it stays on this host: two slashes would name another."""
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
