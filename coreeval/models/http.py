"""Connections to endpoints: HTTP client, proxy, certificates, and connection failures.

The SDKs get a client that has the parts of httpx2's interface that they use and calls aiohttp
directly. For each request, httpx2 would merge URL, headers, cookies and redirects, which the SDK
did before and aiohttp does again: a quarter of the request's CPU time.
"""

import errno
import ipaddress
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import cast
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import orjson

from coreeval.config.models import split_address
from coreeval.errors import ConfigError
from coreeval.models.failures import CallFailure, clean_message
from coreeval.tools.http import ResponseTooLong, read_bounded


def check_route(url: str, ca_file: str | None) -> None:
    """Check the certificates and the proxy for an endpoint before connecting to it.

    Raises:
        ConfigError: the named certificates or proxy cannot be used.
    """
    load_trusted_certificates(ca_file)
    find_proxy(url)


# -- whose certificates are trusted -------------------------------------------------------------


def load_trusted_certificates(ca_file: str | None) -> ssl.SSLContext:
    """Return an SSL context with the trusted certificate authorities.

    Args:
        ca_file: PEM file of the only trusted authorities. Without it, those of SSL_CERT_FILE and
            SSL_CERT_DIR are used, or the system's.

    Raises:
        ConfigError: the file cannot be read, or holds no certificate.
    """
    if ca_file:
        return _load_ssl_context(ca_file, None, named="ca_file")
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return _load_ssl_context(file or None, folder or None, named="SSL_CERT_FILE")


@lru_cache(maxsize=16)
def _load_ssl_context(file: str | None, folder: str | None, *, named: str) -> ssl.SSLContext:
    if file is None and folder is None:
        return httpx2.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=file, capath=folder)
    except ssl.SSLError:
        trouble = "it contains no certificate"
    except OSError as error:
        trouble = f"it cannot be read: {error.strerror}"
    raise ConfigError(
        f"{named} cannot be used: {trouble}",
        where=str(file),
        hint="use a PEM file with the certificates of the trusted authorities",
    )


# -- by which proxy -----------------------------------------------------------------------------


def find_proxy(url: str) -> httpx2.Proxy | None:
    """Return the proxy that the environment names for a URL, if it names one.

    HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY are read, in upper or lower case; on macOS and
    Windows, so are the system's settings.

    Raises:
        ConfigError: the kind of proxy is not supported.
    """
    parts, known = urlsplit(url), getproxies()
    proxy = known.get(parts.scheme) or known.get("all")
    if not proxy or _bypasses_proxy(parts.hostname or "", parts.netloc, known.get("no", "")):
        return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    try:
        named = split_address(address)
    except ValueError:
        named = SplitResult("", "", "", "", "")
    if named.scheme not in ("http", "https") or not named.hostname:
        raise ConfigError(
            f"the environment names an unsupported proxy: {address.partition('://')[0]}://…",
            where=f"environment variable {name_proxy_variables()}",
            hint="name an http:// proxy, or add the endpoint's host to NO_PROXY",
        )
    return _to_proxy(named)


def _to_proxy(named: SplitResult) -> httpx2.Proxy:
    """Return a proxy with its login in a header, since the aiohttp transport ignores it in URLs."""
    place, headers = named.netloc.rpartition("@")[2], dict[str, str]()
    if named.username:
        login = f"{unquote(named.username)}:{unquote(named.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    return httpx2.Proxy(f"{named.scheme}://{place}", headers=headers)


def _bypasses_proxy(host: str, netloc: str, exceptions: str) -> bool:
    """Return whether NO_PROXY contains a host, by name or by the network of its address."""
    if proxy_bypass(host) or proxy_bypass(netloc.rpartition("@")[2]):
        return True
    return any(_is_in_network(host, one.strip()) for one in exceptions.split(",") if "/" in one)


def _is_in_network(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def name_proxy_variables() -> str:
    """Return the names of the environment's proxy variables; their values may hold a password."""
    return ", ".join(f"{kind.upper()}_PROXY" for kind in getproxies() if kind != "no")


# -- how many connections, and what is sent on them -----------------------------------------------


_ENOUGH_FILES = 4096
"""Enough for three endpoints with the highest configurable concurrency, and a run's files."""
_KEPT_FILES = 100
"""If few files may be open: for databases, news, figures and Python itself."""


def connections_allowed() -> int:
    """Return the number of connections that may be open at once; 0 means no limit.

    A shell's usual limit of 256 or 1024 is raised as far as the system permits.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= _ENOUGH_FILES:
        return 0
    allowed = _ENOUGH_FILES if hard == unlimited else min(_ENOUGH_FILES, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (OSError, ValueError):
        allowed = soft
    return 0 if allowed >= _ENOUGH_FILES else max(1, allowed - _KEPT_FILES)


MOST_LISTED = 128
"""The most parts of an answer, such as choices; one is requested."""
_KEEP_ALIVE_S = 5.0
"""The same as in httpx2: servers close idle connections a little later."""
parse_url = lru_cache(maxsize=64)(httpx2.URL)


class HttpClient(httpx2.AsyncClient):
    """Sends the requests that an SDK prepared: a URL, all headers, and a body in bytes.

    It is created in the event loop in which it is used.

    Args:
        url: The endpoint, for selecting the proxy of the environment.
        ca_file: PEM file of trusted certificate authorities; None for the system's.

    Raises:
        ConfigError: the named proxy or certificates cannot be used.
    """

    def __init__(self, url: str, ca_file: str | None) -> None:
        tls = load_trusted_certificates(ca_file)
        super().__init__(verify=tls, trust_env=False)
        self._proxy = find_proxy(url)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=connections_allowed(), ssl=tls, keepalive_timeout=_KEEP_ALIVE_S
            ),
            headers={"Accept-Encoding": self.headers["accept-encoding"]},
            auto_decompress=False,  # the response does
        )

    def build_request(self, method: str, url: httpx2.URL | str, **parts: object) -> httpx2.Request:
        """Return a request with the given headers and content, and no others.

        It sets neither the host nor the content length: aiohttp does.
        """
        timeout = cast("httpx2.Timeout", parts["timeout"])
        return httpx2.Request(
            method,
            url if isinstance(url, httpx2.URL) else parse_url(url),
            headers=cast("httpx2.Headers", parts["headers"]),
            stream=httpx2.ByteStream(cast("bytes", parts["content"])),
            extensions={"timeout": timeout.as_dict()},
        )

    async def send(self, request: httpx2.Request, **_options: object) -> httpx2.Response:
        """Return a response with its whole body; redirects are returned, not followed.

        The SDK cannot change this, because the body contains a prompt and the headers a key.

        Raises:
            httpx2.RequestError: there is no response, or its body is invalid or too long.
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
                proxy=str(self._proxy.url) if self._proxy else None,
                proxy_headers=self._proxy.headers if self._proxy else None,
            ) as answer:
                response = httpx2.Response(
                    answer.status,
                    headers=answer.raw_headers,
                    stream=_ResponseStream(answer.content),
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
        """Close all connections."""
        await self._session.close()
        await super().aclose()


class _ResponseStream(httpx2.AsyncByteStream):
    """A response body that is read by aiohttp."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._content.iter_any():
            yield piece


def encode_body(words: object) -> bytes:
    """Return a request body as bytes; an SDK would process any other type."""
    try:
        return orjson.dumps(words)
    except TypeError as error:
        raise UnicodeError(f"it cannot be sent: {error}") from None


_NO_ROUTE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN}
_NO_TLS = "it does not use TLS; its address may have to start with http:// instead of https://"
_REFUSING = {"401", "403", "407"}
"""How proxies say that they refuse a connection."""


def to_connection_failure(error: BaseException, secret: str) -> CallFailure:
    """Return the failure of a connection: unreachable, blocked, or broken off.

    The aiohttp transport reports all of them as a timeout, so only the chain of causes is reliable.
    """
    chain = _list_causes(error)
    barred = next((told for cause in chain if (told := _find_barrier(cause))), "")
    if barred:
        return CallFailure("blocked", clean_message(barred, secret))
    if absent := next((cause for cause in chain if _is_not_connected(cause)), None):
        told = _NO_TLS if any(map(_speaks_no_tls, chain)) else str(absent) or repr(absent)
        told = f"no server answers at this address: {told}"
        if proxies := name_proxy_variables():
            told = f"{told} (the environment names a proxy: {proxies})"
        return CallFailure("unreachable", clean_message(told, secret))
    if too_long := next((cause for cause in chain if isinstance(cause, ResponseTooLong)), None):
        return CallFailure("transient", str(too_long), billed=True)
    last = chain[-1]
    told = clean_message(f"the connection failed: {type(last).__name__}: {last}", secret)
    return CallFailure("transient", told, billed=True)


def _list_causes(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
        chain.append(cause)
    return chain


def _find_barrier(cause: BaseException) -> str:
    """Return which certificate or proxy blocks the connection permanently; "" if none does."""
    if isinstance(cause, aiohttp.ClientError):
        return ""  # it repeats its cause
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, httpx2.ProxyError):
        status = re.match(r"\d{3}", str(cause))
        if status and status.group() in _REFUSING:
            return f"the proxy blocks requests (status {status.group()})"
    return ""


def _speaks_no_tls(cause: BaseException) -> bool:
    return isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER"


def _is_not_connected(cause: BaseException) -> bool:
    """Return whether no connection was made, as opposed to one that broke later."""
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return not isinstance(cause.__cause__, aiohttp.ClientError)
    if isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return True
    if isinstance(cause, ConnectionRefusedError | socket.gaierror):
        return True
    return isinstance(cause, OSError) and cause.errno in _NO_ROUTE
