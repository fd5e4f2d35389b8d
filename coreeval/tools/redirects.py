"""Where an answer may lead: a server that a user has named must not choose whom we ask next."""

import ipaddress
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import httpx2

_PORTS: Final = {"http": 80, "https": 443}
_LOCAL: Final = ("localhost", ".localhost", ".local", ".internal")
Check = Callable[[httpx2.Request], None]


class LedElsewhere(httpx2.RequestError):
    """An answer leads where nobody has agreed to."""


def to_same_host(url: str) -> Check:
    """Return a check of each request that `url` leads to: its host, by http or better https."""
    scheme, host, port = _origin(url)

    def check(request: httpx2.Request) -> None:
        found = _origin(str(request.url))
        better = (scheme, found[0]) == ("http", "https") and found[2] == _PORTS["https"]
        if found != (scheme, host, port) and not (better and found[1] == host):
            raise LedElsewhere(
                f"it leads to {_shown(found)}; name that address if it is meant", request=request
            )

    return check


def to_public_stores(hub: str) -> Check:
    """Return a check of each request to a hub, and to the stores that it names for large files.

    A store is public, is spoken to by https, and does not get the hub's token. A host that has a
    name is taken for public unless it is a local one: what a name resolves to is not looked at.
    """
    own = _origin(hub)

    def check(request: httpx2.Request) -> None:
        found = _origin(str(request.url))
        if found == own:
            return
        trusted = found[0] == "https" and _is_public(found[1])
        if not trusted or "authorization" in request.headers:
            raise LedElsewhere(
                f"the hub leads to {_shown(found)}, which is not its own", request=request
            )

    return check


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)


def _shown(origin: tuple[str, str, int]) -> str:
    scheme, host, port = origin
    return f"{scheme}://{host}" + ("" if port == _PORTS.get(scheme) else f":{port}")


def _is_public(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        plain = host.rstrip(".")
        numeric = plain.replace(".", "").removeprefix("0x").isdigit()  # 2130706433, 0x7f.1
        return not (numeric or plain.endswith(_LOCAL))
