"""Shows where a run is: a bar on a terminal, a calm line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coreeval.cli.output import note
from coreeval.graph.progress import Progress, Watch

EVERY_S = 10.0
"""Seconds between two lines where there is no terminal."""


@contextmanager
def watching(quiet: bool = False) -> Iterator[Watch]:
    """Give a callback that shows progress on stderr until the block ends."""
    if quiet:
        yield lambda progress: None
    elif sys.stderr.isatty():
        with _bar() as watch:
            yield watch
    else:
        yield _lines(time.monotonic)


def _lines(clock: Callable[[], float]) -> Watch:
    """Write a line when the stage changes or has something to say, else every few seconds."""
    stage, last = "", clock()

    def watch(progress: Progress) -> None:
        nonlocal stage, last
        due = clock() - last >= EVERY_S or progress.done == progress.total > 0
        if progress.stage == stage and not due and not progress.note:
            return
        stage, last = progress.stage, clock()
        note(_line(progress))

    return watch


def _line(progress: Progress) -> str:
    share = f" {progress.done}/{progress.total}" if progress.total else ""
    counts = ", ".join(f"{name} {count}" for name, count in sorted(progress.counts.items()))
    return " ".join(part for part in (f"{progress.stage}{share}", counts, progress.note) if part)


@contextmanager
def _bar() -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description:<9}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[counts]}", markup=False),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        row = bar.add_task("plan", total=None, counts="")

        def watch(progress: Progress) -> None:
            counts = "  ".join(f"{name} {n}" for name, n in sorted(progress.counts.items()))
            bar.update(
                row,
                description=progress.stage,
                completed=progress.done,
                total=progress.total or None,
                counts=progress.note or counts,
            )

        yield watch
