"""Shows where a run is: a bar on a terminal, a calm line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coreeval.cli.output import note, plain
from coreeval.graph.progress import Progress, Watch

EVERY_S = 10.0
"""Seconds between two lines where there is no terminal."""


@contextmanager
def watching(label: str = "") -> Iterator[Watch]:
    """Give a callback that shows progress on stderr until the block ends."""
    if sys.stderr.isatty():
        with _bar(label) as watch:
            yield watch
    else:
        yield _lines(time.monotonic, label)


def _lines(clock: Callable[[], float], label: str) -> Watch:
    """Write a line when the stage changes or has something to say, else every few seconds."""
    stage, last = "", clock()

    def watch(progress: Progress) -> None:
        nonlocal stage, last
        due = clock() - last >= EVERY_S or progress.done == progress.total > 0
        if progress.stage == stage and not due and not progress.note:
            return
        stage, last = progress.stage, clock()
        note(_line(progress, label))

    return watch


def _line(progress: Progress, label: str) -> str:
    share = f" {progress.done}/{progress.total}" if progress.total else ""
    counts = _counts(progress) if progress.total else ""
    said = "; ".join(part for part in (counts, progress.note) if part)
    start = f"{label}: " if label else ""
    return f"{start}{progress.stage}{share}" + (f": {said}" if said else "")


def _counts(progress: Progress) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(progress.counts.items()))


@contextmanager
def _bar(label: str) -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    # Only the last column gives way on a narrow terminal: a bar that wraps is drawn over itself.
    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        BarColumn(bar_width=20),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
        TextColumn(
            "{task.fields[said]}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
    )
    with Bar(*columns, console=Console(stderr=True), expand=True) as bar:
        row = bar.add_task(_described("plan", label), total=None, said="")

        def watch(progress: Progress) -> None:
            bar.update(
                row,
                description=_described(progress.stage, label),
                said=plain(progress.note or _counts(progress)),
            )
            if progress.total:  # a stage that counts nothing leaves the bar as it is
                bar.update(row, completed=progress.done, total=progress.total)

        yield watch


def _described(stage: str, label: str) -> str:
    return f"{label + ': ' if label else ''}{stage:<9}"
