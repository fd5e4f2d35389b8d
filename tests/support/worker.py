"""The command line as a process of its own that dies where a test wants it to.

    python -m tests.support.worker [--die after:NODE:COUNT | before:NODE:COUNT | at:STAGE] COMMAND…

A death is a SIGKILL to itself: nothing is flushed, closed or said. The program under test has no
hooks for it; the recorder that it puts round its nodes is wrapped from outside.
"""

import argparse
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest import mock

from coreeval import cli
from coreeval.graph import record, refreshing
from coreeval.graph.job import Job
from coreeval.graph.state import SampleNode, SampleState, SampleUpdate, Wrap

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__, "coreeval.graph.run", "coreeval.models.openai.chat"])


def start(
    command: Sequence[str], *, out: Path, environment: Mapping[str, str], die: str = ""
) -> BaseProcess:
    """Start a command in a process forked from one that has imported everything already."""
    process = _FORKS.Process(target=_work, args=(list(command), out, dict(environment), die))
    process.start()
    return process


def _work(command: list[str], out: Path, environment: dict[str, str], die: str) -> None:
    os.environ.update(environment)
    with out.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    code = _run(command, die)
    sys.stdout.flush()
    os._exit(code)


def _run(command: list[str], die: str) -> int:
    with ExitStack() as stack:
        if die:
            stack.enter_context(_dying(die))
        return cli.main(command)


def _dying(die: str) -> AbstractContextManager[object]:
    """Return the patch under which the process kills itself at a node or a stage."""
    moment, _, rest = die.partition(":")
    if moment == "at":
        return mock.patch.object(Job, "tell", _deadly_tell(rest))
    node, _, count = rest.partition(":")
    deadly = _deadly_recorder(moment, node, int(count))
    return mock.patch.object(refreshing, "recorder", deadly)


def _deadly_tell(stage: str) -> object:
    def tell(_job: Job, now: str, *_: object, **__: object) -> None:
        if now == stage:
            _die()

    return tell


def _deadly_recorder(moment: str, doomed: str, count: int) -> object:
    real: Callable[..., Wrap] = record.recorder
    seen = Counter[str]()

    def passed(at: str, name: str) -> None:
        seen[name] += at == moment
        if (at, name, seen[name]) == (moment, doomed, count):
            _die()

    def recorder(*means: object) -> Wrap:
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

    return recorder


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Run a command, perhaps to its death."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--die", default="")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    return _run(options.command, options.die)


if __name__ == "__main__":
    sys.exit(main())
