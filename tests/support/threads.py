"""Serving from a thread, for clients that are not asynchronous."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

Server = TypeVar("Server")


@contextmanager
def from_thread(running: AbstractAsyncContextManager[Server], name: str) -> Iterator[Server]:
    """Run a server in a thread of its own inside the block."""
    loop, done, serving = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    found: list[Server] = []

    async def serve() -> None:
        async with running as server:
            found.append(server)
            serving.set()
            await done.wait()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    serving.wait(10)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(10)
