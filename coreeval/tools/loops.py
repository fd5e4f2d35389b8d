"""Coroutines run to their end by functions that are not asynchronous."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def run_coroutine(coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end, in another thread if this one has an event loop (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as other:
        return other.submit(copy_context().run, asyncio.run, coroutine).result()
