import asyncio
import threading
from contextvars import ContextVar

import pytest

from coreeval.tools.loops import run_coroutine

NAME = ContextVar("NAME", default="")


async def where() -> tuple[int, str]:
    await asyncio.sleep(0)
    return threading.get_ident(), NAME.get()


async def fail() -> None:
    raise ValueError("as it was raised")


def test_without_a_loop_it_runs_here() -> None:
    assert run_coroutine(where()) == (threading.get_ident(), "")


async def test_under_a_loop_it_runs_elsewhere_with_the_same_context() -> None:
    NAME.set("mine")
    thread, name = run_coroutine(where())
    assert thread != threading.get_ident()
    assert name == "mine"


async def test_its_error_is_the_one_that_was_raised() -> None:
    with pytest.raises(ValueError, match="as it was raised"):
        run_coroutine(fail())
