"""Runs coroutines from synchronous functions."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def run_coroutine(coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine, in another thread if this one has an event loop (as in a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as other:
        return other.submit(copy_context().run, asyncio.run, coroutine).result()
