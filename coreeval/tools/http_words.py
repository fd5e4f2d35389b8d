"""What went wrong with a request, in words that are safe to show."""

import aiohttp


def trouble(error: Exception) -> str:
    """Say what went wrong without the address: a proxy's may hold its password."""
    if isinstance(error, aiohttp.ClientResponseError):
        said = f"HTTP {error.status} {error.message}".strip()
        proxied = isinstance(error, aiohttp.ClientHttpProxyError)
        return f"the proxy answered {said}" if proxied else said
    return str(error) or type(error).__name__
