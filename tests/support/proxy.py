"""A small HTTP proxy on loopback: it passes plain requests on and opens tunnels for the others."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

_REFUSAL = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
_TUNNEL = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Proxy:
    """Remembers what it was asked for, as `METHOD target`.

    Args:
        login: `user:password` that it insists on.
    """

    def __init__(self, login: str = "") -> None:
        self.asked: list[str] = []
        self.port = 0
        self._login = login

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        """Serve on loopback inside the block."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await self._pass_on(reader, writer)
        writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.decode().split(" ", 2)
        self.asked.append(f"{method} {target}")
        wanted = base64.b64encode(self._login.encode()).decode()
        if (
            self._login
            and f"proxy-authorization: basic {wanted}".lower() not in head.decode().lower()
        ):
            writer.write(_REFUSAL)
            await writer.drain()
            return
        parts = urlsplit(target if "://" in target else f"//{target}")
        back, out = await asyncio.open_connection(parts.hostname, parts.port)
        if method == "CONNECT":
            writer.write(_TUNNEL)
        else:
            out.write(head.replace(target.encode(), parts.path.encode(), 1))
        await asyncio.gather(_pump(reader, out), _pump(back, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
