"""The command line as a process of its own that dies where a test wants it to.

    python -m tests.support.worker [--die after:NODE:COUNT | before:NODE:COUNT | at:STAGE]
                                   [--full FILE:PAGES] [--slow FILE] COMMAND…

A death is a SIGKILL to itself: nothing is flushed, closed or said. The program under test has no
hooks for it; the recorder that it puts round its nodes is wrapped from outside. A full disk is a
database that may have so many pages and no more, which SQLite tells in the same words; a slow one
is a database whose commits take 30 ms.
"""

import argparse
import inspect
import multiprocessing
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, chdir, contextmanager
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

from coreeval import cli
from coreeval.graph import phases, recorder
from coreeval.graph.run_context import RunContext
from coreeval.graph.state import SampleNode, SampleState, SampleUpdate, Wrap
from coreeval.runs import comparison

ROOT = Path(__file__).parents[2]
_PREFIX = "COREEVAL_"
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        __name__,
        "coreeval.api.progress",
        "coreeval.cli.refresh",
        "coreeval.evaluation.comparability.measure",
        "coreeval.evaluation.decomposition",
        "coreeval.evaluation.numleak.audit_page",
        "coreeval.evaluation.pcr",
        "coreeval.graph.estimate",
        "coreeval.graph.pcr.split_comparison",
        "coreeval.graph.run",
        "coreeval.models.listing",
        "coreeval.models.openai",
        "coreeval.runs.status",
        "jinja2",
        "pandas",  # pyarrow imports it where it is installed
        "scipy.special",
    ]
)
"""What a run imports on its way: each process would do so anew."""


@dataclass(frozen=True)
class Trouble:
    """What befalls a process; each is empty where it does not."""

    die: str = ""
    full: str = ""
    slow: str = ""


def start(
    command: Sequence[str],
    *,
    out: Path,
    environment: Mapping[str, str],
    die: str = "",
    full: str = "",
    slow: str = "",
) -> BaseProcess:
    """Start a command in a process forked from one that has imported everything already."""
    trouble = Trouble(die=die, full=full, slow=slow)
    return heard(_run, list(command), trouble, out=out, environment=environment)


def heard(
    run: Callable[..., int],
    *given: object,
    out: Path,
    environment: Mapping[str, str] | None = None,
) -> BaseProcess:
    """Start a function in such a process: it returns the exit code, and what it says is kept."""
    own = {name: value for name, value in os.environ.items() if name.startswith(_PREFIX)}
    return fork(_work, run, given, out, own | dict(environment or {}))


def fork(work: Callable[..., None], *given: object) -> BaseProcess:
    """Start a function in such a process."""
    with chdir(ROOT):  # or it finds the `tests` of some installed package first
        forkserver.ensure_running()
    process = _FORKS.Process(target=work, args=given)
    process.start()
    return process


def _work(
    run: Callable[..., int], given: Sequence[object], out: Path, environment: dict[str, str]
) -> None:
    for name in [name for name in os.environ if name.startswith(_PREFIX)]:
        del os.environ[name]  # the server has the environment of the test that started it
    os.environ.update(environment)
    mock.patch.object(comparison, "EMBEDDER", "none").start()  # as in the tests' own process
    with out.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    code = run(*given)
    sys.stdout.flush()
    os._exit(code)


def _run(command: list[str], trouble: Trouble) -> int:
    with ExitStack() as stack:
        if trouble.die:
            stack.enter_context(_dying(trouble.die))
        if trouble.full:
            stack.enter_context(filling(trouble.full))
        if trouble.slow:
            stack.enter_context(_opened_as(trouble.slow, _Slow, "SELECT 1"))
        return cli.main(command)


def _dying(die: str) -> AbstractContextManager[object]:
    """Return the patch under which the process kills itself at a node or a stage."""
    moment, _, rest = die.partition(":")
    if moment == "at":
        return mock.patch.object(RunContext, "tell", _deadly_tell(rest))
    node, _, count = rest.partition(":")
    deadly = _deadly_recorder(moment, node, int(count))
    return mock.patch.object(phases, "build_recorder", deadly)


def _deadly_tell(stage: str) -> object:
    def tell(_job: RunContext, now: str, *_: object, **__: object) -> None:
        if now == stage:
            _die()

    return tell


def _deadly_recorder(moment: str, doomed: str, count: int) -> object:
    real: Callable[..., Wrap] = recorder.build_recorder
    seen = Counter[str]()

    def passed(at: str, name: str) -> None:
        seen[name] += at == moment
        if (at, name, seen[name]) == (moment, doomed, count):
            _die()

    def deadly_recorder(*means: object) -> Wrap:
        wrap = real(*means)

        def deadly(name: str, node: SampleNode) -> SampleNode:
            recorded = wrap(name, node)

            async def step(state: SampleState) -> SampleUpdate:
                passed("before", name)
                update = await recorded(state)
                passed("after", name)
                return update

            return step

        return deadly

    return deadly_recorder


class _Slow(sqlite3.Connection):
    """Commits as to a disk that takes its time."""

    def commit(self) -> None:
        time.sleep(0.03)
        super().commit()


@contextmanager
def filling(full: str) -> Iterator[None]:
    """Let a database, named with its most pages, find its disk full."""
    name, _, pages = full.partition(":")
    with _opened_as(name, sqlite3.Connection, f"PRAGMA max_page_count={pages}"):
        yield


@contextmanager
def _opened_as(name: str, kind: type[sqlite3.Connection], first: str) -> Iterator[None]:
    """Open databases of a name as connections of a kind, which run a statement first."""
    open_file = sqlite3.connect

    def connect(file: str, **options: object) -> sqlite3.Connection:
        made: Callable[..., sqlite3.Connection] = open_file
        if Path(file).name != name:
            return made(file, **options)
        connection = made(file, factory=kind, **options)
        connection.execute(first)
        return connection

    with mock.patch("sqlite3.connect", connect), mock.patch("sqlite3.dbapi2.connect", connect):
        yield


def deadly_method(method: Callable[..., Any], moment: str, count: int) -> Callable[..., Any]:
    """Return a method that kills its process before or after it was called so often."""
    left = count

    def pass_by(at: str) -> None:
        nonlocal left
        left -= at == moment
        if not left:
            _die()

    async def wait(called: Awaitable[object]) -> object:
        done = await called
        pass_by("after")
        return done

    def deadly(*given: object, **named: object) -> object:
        pass_by("before")
        done = method(*given, **named)
        if inspect.isawaitable(done):
            return wait(done)
        pass_by("after")
        return done

    return deadly


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Run a command, perhaps to its death."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--die", default="")
    parser.add_argument("--full", default="")
    parser.add_argument("--slow", default="")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    return _run(options.command, Trouble(options.die, options.full, options.slow))


if __name__ == "__main__":
    sys.exit(main())
