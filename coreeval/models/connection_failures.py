"""What goes wrong on the way to an endpoint, before it has answered."""

import errno
import re
import socket
import ssl

import aiohttp
import httpx2

from coreeval.models.failures import CallFailure, clean
from coreeval.models.network import proxy_variables
from coreeval.tools.http import ResponseTooLong

_NO_ROUTE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN}
_PLAIN = "it does not speak TLS; is its address http:// instead of https://?"
_REFUSING = {"401", "403", "407"}
"""How a proxy says that it lets nobody through."""


def connection_failure(error: BaseException, secret: str) -> CallFailure:
    """Tell an endpoint that is not there, or is barred, from a connection that broke.

    The aiohttp transport reports both as a timeout, so the chain of causes is what can be trusted.
    """
    chain = _chain(error)
    barred = next((told for cause in chain if (told := _barred(cause))), "")
    if barred:
        return CallFailure("blocked", clean(barred, secret))
    if absent := next((cause for cause in chain if _absent(cause)), None):
        told = _PLAIN if any(map(_speaks_no_tls, chain)) else str(absent) or repr(absent)
        told = f"nothing answers there: {told}"
        if proxies := proxy_variables():
            told = f"{told} (the environment names a proxy: {proxies})"
        return CallFailure("unreachable", clean(told, secret))
    if too_long := next((cause for cause in chain if isinstance(cause, ResponseTooLong)), None):
        return CallFailure("transient", str(too_long), billed=True)
    last = chain[-1]
    told = clean(f"the connection failed: {type(last).__name__}: {last}", secret)
    return CallFailure("transient", told, billed=True)


def _chain(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
        chain.append(cause)
    return chain


def _barred(cause: BaseException) -> str:
    """Say which certificate or proxy stands in the way for good; nothing where none does."""
    if isinstance(cause, aiohttp.ClientError):
        return ""  # it repeats its cause
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, httpx2.ProxyError):
        status = re.match(r"\d{3}", str(cause))
        if status and status.group() in _REFUSING:
            return f"the proxy lets nothing through (status {status.group()})"
    return ""


def _speaks_no_tls(cause: BaseException) -> bool:
    return isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER"


def _absent(cause: BaseException) -> bool:
    """Tell whether no connection came about; one that broke later is another matter."""
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return not isinstance(cause.__cause__, aiohttp.ClientError)
    if isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return True
    if isinstance(cause, ConnectionRefusedError | socket.gaierror):
        return True
    return isinstance(cause, OSError) and cause.errno in _NO_ROUTE
