"""`coreeval gdelt sync` as a process of its own that dies or runs out of room where a test wants.

    python -m tests.support.doomed_sync [--die before|after:STEP:COUNT] [--full segment|STORE:PAGES]
                                        [--files N] [--now STAMP] [--apart] COMMAND…

STEP is `read` (a file), `write` (the segments of a commit) or `commit` (their listing). A death is
a SIGKILL to itself. A full disk is a segment of which half can be written, or a database of so many
pages. With `--apart` every file is read in a process of its own, as are all of many files. The
program under test has no hooks for it: its functions are wrapped from outside.
"""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

from coreeval import cli
from coreeval.api import news
from coreeval.tools import clock
from coreeval.tools.gdelt.sync import intake, reader_processes, sync
from coreeval.tools.gdelt.sync.store_ledger import StoreLedger

STEPS: dict[str, tuple[object, str]] = {
    "read": (intake, "read"),
    "write": (intake, "write_articles"),
    "commit": (StoreLedger, "commit"),
}


def run(arguments: Sequence[str]) -> int:
    """Run a command, perhaps to its death; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--die", default="")
    parser.add_argument("--full", default="")
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--now", type=datetime.fromisoformat)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(intake, "FILES", options.files))
        if options.apart:
            stack.enter_context(mock.patch.object(reader_processes, "FEW", -1))
        if options.now:
            stack.enter_context(_clock_at(options.now))
        if options.die:
            stack.enter_context(_dying(*options.die.split(":")))
        if options.full == "segment":
            stack.enter_context(_half_written())
        elif options.full:
            from tests.support.worker import filling  # which imports the whole program

            stack.enter_context(filling(options.full))
        return cli.main(options.command)


@contextmanager
def _clock_at(now: datetime) -> Iterator[None]:
    real = sync.Around

    def around(**given: Any) -> sync.Around:  # noqa: ANN401 - what Around takes
        return real(now=lambda: now, **given)

    with (
        mock.patch.object(clock, "utc_now", lambda: now),
        mock.patch.object(news, "utc_now", lambda: now),
        mock.patch.object(sync, "Around", around),
    ):
        yield


def _dying(moment: str, step: str, count: str) -> AbstractContextManager[object]:
    owner, name = STEPS[step]
    real: Callable[..., Any] = getattr(owner, name)
    left = int(count)

    def deadly(*arguments: object, **named: object) -> object:
        nonlocal left
        left -= 1
        if left == 0 and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **named)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return mock.patch.object(owner, name, deadly)


def _half_written() -> AbstractContextManager[object]:
    def write(_table: object, path: Path, **_how: object) -> None:
        path.write_bytes(b"PAR1 and half of it")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return mock.patch("pyarrow.parquet.write_table", write)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
