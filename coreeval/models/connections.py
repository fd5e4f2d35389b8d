"""Clients that hold connections: one for each endpoint and key, made once in an event loop."""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar, cast
from weakref import WeakKeyDictionary


class Closable(Protocol):
    """Something that holds connections."""

    async def close(self) -> None:
        """Let go of them."""
        ...


C = TypeVar("C", bound=Closable)
_Clients = dict[tuple[str, str], Closable]
_OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients] = WeakKeyDictionary()


def shared(endpoint: str, key: str, make: Callable[[], C]) -> C:
    """Return the running loop's client for an endpoint and key; it is made at the first call."""
    clients = _OPEN.setdefault(asyncio.get_running_loop(), {})
    if (endpoint, key) not in clients:
        clients[endpoint, key] = make()
    return cast("C", clients[endpoint, key])


async def close_models() -> None:
    """Close the connections that models of the running loop hold; they open anew when asked."""
    for client in _OPEN.pop(asyncio.get_running_loop(), {}).values():
        await client.close()
