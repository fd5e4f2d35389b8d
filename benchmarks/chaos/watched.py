"""The command line, watched: how long it holds up the event loop, and how much memory it takes.

    python -m benchmarks.chaos.watched FIGURES.json refresh CONFIG …

The callbacks of the event loop that follow on an answer are timed by the CPU seconds of their
thread: a busy machine makes none of them longer. What the stages before and after all answers take
is not counted: nothing waits for the loop then.
"""

import asyncio
import atexit
import json
import resource
import sys
import time
from pathlib import Path

from httpx2 import Request, Response

from coreeval.__main__ import run
from coreeval.models.http import HttpClient

_longest: list[tuple[float, str]] = []
_KEPT = 5
_FOLLOWING = 100
"""Callbacks after an answer by which it was read, checked and stored; all others between two
answers of a busy run are among them."""


def main() -> None:
    """Run the command that the arguments say, and write the figures whatever comes of it."""
    file = Path(sys.argv.pop(1))
    _watch()
    atexit.register(_write_figures, file)
    run()


def _write_figures(file: Path) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = [{"ms": 1000 * seconds, "what": what} for seconds, what in _longest]
    file.write_text(json.dumps({"longest": told, "peak_kib": peak}), encoding="utf-8")


def _watch() -> None:
    run_plainly, send_plainly = asyncio.Handle._run, HttpClient.send
    left = 0

    async def send(client: HttpClient, request: Request, **options: object) -> Response:
        nonlocal left
        try:
            return await send_plainly(client, request, **options)
        finally:
            left = _FOLLOWING

    def timed(handle: asyncio.Handle) -> None:
        nonlocal left
        began = time.thread_time()
        try:
            run_plainly(handle)
        finally:
            if left:
                left -= 1
                _note(time.thread_time() - began, handle)

    HttpClient.send = send  # type: ignore[method-assign, assignment]
    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]


def _note(seconds: float, handle: asyncio.Handle) -> None:
    if len(_longest) == _KEPT and seconds <= _longest[-1][0]:
        return
    step = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    _longest.append((seconds, repr(step or handle)[:300]))
    _longest.sort(reverse=True)
    del _longest[_KEPT:]


if __name__ == "__main__":
    main()
