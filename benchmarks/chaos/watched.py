"""The command line, watched: how long it holds up the event loop, and how much memory it takes.

    python -m benchmarks.chaos.watched FIGURES.json refresh CONFIG …

Every callback of an event loop is timed by the CPU seconds of its thread: a busy machine makes
none of them longer.
"""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path

from coreeval.__main__ import run

_longest: list[tuple[float, str]] = []
_KEPT = 5


def main() -> None:
    """Run the command that the arguments say, and write the figures whatever comes of it."""
    file = Path(sys.argv.pop(1))
    _watch()
    try:
        run()
    finally:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        told = [{"ms": 1000 * seconds, "what": what} for seconds, what in _longest]
        file.write_text(json.dumps({"longest": told, "peak_kib": peak}), encoding="utf-8")


def _watch() -> None:
    plain = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        try:
            plain(handle)
        finally:
            _note(time.thread_time() - began, handle)

    asyncio.Handle._run = timed  # type: ignore[method-assign]


def _note(seconds: float, handle: asyncio.Handle) -> None:
    if len(_longest) == _KEPT and seconds <= _longest[-1][0]:
        return
    _longest.append((seconds, repr(handle)[:300]))
    _longest.sort(reverse=True)
    del _longest[_KEPT:]


if __name__ == "__main__":
    main()
