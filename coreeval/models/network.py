"""The way to an endpoint: by which proxy, and whose certificates are trusted."""

import ipaddress
import os
import ssl
from base64 import b64encode
from functools import lru_cache
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from coreeval.errors import ConfigError


def check_route(url: str, ca_file: str | None) -> None:
    """Check what can be known about the way to an endpoint before it is taken.

    Raises:
        ConfigError: the certificates or the proxy that are named cannot be used.
    """
    trusted(ca_file)
    proxy_for(url)


# -- whose certificates are trusted -------------------------------------------------------------


def trusted(ca_file: str | None) -> ssl.SSLContext:
    """Return which certificates an endpoint may show.

    Args:
        ca_file: PEM file of the authorities that are trusted, and no others. Without it those of
            SSL_CERT_FILE and SSL_CERT_DIR, or the system's.

    Raises:
        ConfigError: the file cannot be read, or holds no certificate.
    """
    if ca_file:
        return _context(ca_file, None, named="ca_file")
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return _context(file or None, folder or None, named="SSL_CERT_FILE")


@lru_cache(maxsize=16)
def _context(file: str | None, folder: str | None, *, named: str) -> ssl.SSLContext:
    if file is None and folder is None:
        return httpx2.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=file, capath=folder)
    except ssl.SSLError:
        trouble = "it holds no certificate"
    except OSError as error:
        trouble = f"it cannot be read: {error.strerror}"
    raise ConfigError(
        f"{named} cannot be used: {trouble}",
        where=str(file),
        hint="it takes a PEM file with the certificates of the authorities that are trusted",
    )


# -- by which proxy -----------------------------------------------------------------------------


def proxy_for(url: str) -> httpx2.Proxy | None:
    """Return the proxy that the environment names for a URL, if it names one.

    HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY count, in capitals or not; on macOS and Windows
    the system's settings as well.

    Raises:
        ConfigError: it is a kind of proxy that cannot be spoken to.
    """
    parts, known = urlsplit(url), getproxies()
    proxy = known.get(parts.scheme) or known.get("all")
    if not proxy or _direct(parts.hostname or "", parts.netloc, known.get("no", "")):
        return None
    named = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if named.scheme not in ("http", "https") or not named.hostname:
        raise ConfigError(
            f"the environment names a proxy that cannot be used here: {named.scheme}://…",
            where=f"environment variable {proxy_variables()}",
            hint="name an http:// proxy, or put the endpoint's host into NO_PROXY",
        )
    return _proxy(named)


def _proxy(named: SplitResult) -> httpx2.Proxy:
    """Return a proxy with its login in a header, where the aiohttp transport looks for none."""
    place, headers = named.netloc.rpartition("@")[2], dict[str, str]()
    if named.username:
        login = f"{unquote(named.username)}:{unquote(named.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    return httpx2.Proxy(f"{named.scheme}://{place}", headers=headers)


def _direct(host: str, netloc: str, exceptions: str) -> bool:
    """Tell whether NO_PROXY holds a host, by name or by the network of its address."""
    if proxy_bypass(host) or proxy_bypass(netloc.rpartition("@")[2]):
        return True
    return any(_within(host, one.strip()) for one in exceptions.split(",") if "/" in one)


def _within(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def proxy_variables() -> str:
    """Name the variables of the environment's proxies; their values may hold a password."""
    return ", ".join(f"{kind.upper()}_PROXY" for kind in getproxies() if kind != "no")
