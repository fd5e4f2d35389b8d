"""Clients that hold connections: one for each kind, endpoint and key, made once in a loop."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar, cast
from weakref import WeakKeyDictionary


class Closable(Protocol):
    """Something that holds connections."""

    async def close(self) -> None:
        """Let go of them."""
        ...


C = TypeVar("C", bound=Closable)
_Clients = dict[Hashable, Closable]
_OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients] = WeakKeyDictionary()


def shared(key: Hashable, make: Callable[[], C]) -> C:
    """Return the running loop's client of a key; it is made at the first call.

    Args:
        key: What the client is made of: its class, endpoint, key and whatever else sets it apart.
        make: Makes it.
    """
    clients = _OPEN.setdefault(asyncio.get_running_loop(), {})
    if key not in clients:
        clients[key] = make()
    return cast("C", clients[key])


async def close_models() -> None:
    """Close the connections that models of the running loop hold; they open anew when asked."""
    for client in _OPEN.pop(asyncio.get_running_loop(), {}).values():
        await client.close()
