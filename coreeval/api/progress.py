"""Shows a run's progress: a bar on a terminal and in a notebook, occasional lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from types import ModuleType
from typing import TYPE_CHECKING, Final

from coreeval.graph.monitor import Progress, Watch, ignore_progress
from coreeval.runs.progress_lines import (
    forecast_parts,
    format_counts,
    format_idle_time,
    pace_parts,
    spend_parts,
    wait_lines,
)
from coreeval.tools.terminal import note, plain

if TYPE_CHECKING:
    from coreeval.api.progress_bar import FigureBar

SHARE = 0.1
"""The time between two lines without a terminal, as a share of the elapsed time; a log of one night
has about a hundred lines."""
SOONEST_S, LATEST_S = 10.0, 300.0
"""The shortest and longest time between two lines, in seconds."""
REDRAW_S: Final = 0.5
"""The shortest time between two updates in a notebook, in seconds."""
NOTEBOOK_WIDTH: Final = 100
"""The width of the bar in a notebook, in characters."""
_FRAME: Final = '<pre style="margin:0">{code}</pre>'


@contextmanager
def show_progress(label: str = "") -> Iterator[Watch]:
    """Yield a callback that shows progress on stderr until the block ends."""
    if sys.stderr.isatty():
        with _show_bar(label) as watch:
            yield watch
    else:
        yield _Lines(time.monotonic, label)


class _Lines:
    """Writes progress lines: one per event, otherwise at growing intervals.

    An event is a new stage, a note, the end of a count, or a stall.
    """

    def __init__(self, clock: Callable[[], float], label: str) -> None:
        self._clock, self._label = clock, label
        self._began = self._last = clock()
        self._stage, self._done = "", 0
        self._stalled = False

    def __call__(self, progress: Progress) -> None:
        """Record the progress of the run."""
        now, stalled = self._clock(), _stalled(progress)
        wait_s = min(max(SOONEST_S, SHARE * (now - self._began)), LATEST_S)
        ended = progress.done == progress.total > 0 and progress.done != self._done
        news = progress.stage != self._stage or stalled != self._stalled or progress.note
        if now - self._last < wait_s and not ended and not news:
            return
        self._stage, self._done = progress.stage, progress.done
        self._last, self._stalled = now, stalled
        note(_progress_line(progress, self._label))


def _progress_line(progress: Progress, label: str) -> str:
    share = f" {progress.done}/{progress.total}" if progress.total else ""
    counts = _format_counts(progress) if progress.total else ""
    said = "; ".join(part for part in (counts, progress.note, _format_figures(progress)) if part)
    start = f"{label}: " if label else ""
    return f"{start}{progress.stage}{share}" + (f": {said}" if said else "")


def _format_counts(progress: Progress) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(progress.counts.items()))


def _stalled(progress: Progress) -> bool:
    from coreeval.runs.status import STALLED_AFTER_S

    return progress.pulse is not None and progress.pulse.idle_s >= STALLED_AFTER_S


def _format_figures(progress: Progress) -> str:
    """Return speed and cost, or the reason if there is no progress."""
    pulse = progress.pulse
    if pulse is None:
        return ""
    if _stalled(progress):
        return "; ".join([format_idle_time(pulse.idle_s), *wait_lines(pulse.waits)])
    spent = spend_parts(pulse.spend) if pulse.spend else ()
    return ", ".join([*pace_parts(pulse), *spent, *forecast_parts(pulse.cost)])


@contextmanager
def show_progress_to_viewer(wanted: bool = True) -> Iterator[Watch]:
    """Yield a callback that shows a bar in a notebook or on a terminal, and nothing elsewhere.

    Args:
        wanted: Whether to show a bar.
    """
    kernel = _find_notebook() if wanted else None
    if kernel is not None:
        with _show_in_notebook(kernel) as watch:
            yield watch
    elif wanted and sys.stderr.isatty():
        with _show_bar("") as watch:
            yield watch
    else:
        yield ignore_progress


@contextmanager
def _show_bar(label: str) -> Iterator[Watch]:
    from rich.console import Console

    from coreeval.api.progress_bar import FigureBar

    with FigureBar(Console(stderr=True)) as bar:
        yield _feed_bar(bar, label)


def _feed_bar(bar: "FigureBar", label: str) -> Watch:
    """Return a callback that keeps a bar up to date."""
    row = bar.add_task(_describe_stage("plan", label), total=None, said="", guess=True)

    def watch(progress: Progress) -> None:
        if progress.pulse:
            bar.figures = plain(_format_figures(progress))
        bar.update(
            row,
            description=_describe_stage(progress.stage, label),
            said=plain(progress.note or format_counts(progress.counts)),
            guess=progress.pulse is None,
        )
        if progress.total:  # a stage without a count leaves the bar unchanged
            bar.update(row, completed=progress.done, total=progress.total)

    return watch


def _find_notebook() -> ModuleType | None:
    """Return IPython's display module if this process is a notebook kernel."""
    loaded = sys.modules.get("IPython")
    if loaded is None or getattr(loaded.get_ipython(), "kernel", None) is None:
        return None
    return import_module("IPython.display")


@contextmanager
def _show_in_notebook(displays: ModuleType) -> Iterator[Watch]:
    """Yield a callback that shows the bar as HTML, which needs no widgets."""
    from rich.console import Console

    from coreeval.api.progress_bar import FigureBar

    console = Console(
        file=StringIO(), record=True, width=NOTEBOOK_WIDTH, force_terminal=True, force_jupyter=False
    )
    bar = FigureBar(console)
    feed, drawn = _feed_bar(bar, ""), time.monotonic()

    def draw() -> object:
        console.print(bar.get_renderable())
        return displays.HTML(console.export_html(code_format=_FRAME, inline_styles=True))

    shown = displays.display(draw(), display_id=True)

    def watch(progress: Progress) -> None:
        nonlocal drawn
        feed(progress)
        if time.monotonic() - drawn >= REDRAW_S:
            drawn = time.monotonic()
            shown.update(draw())

    try:
        yield watch
    finally:
        shown.update(draw())


def _describe_stage(stage: str, label: str) -> str:
    return f"{label + ': ' if label else ''}{stage:<9}"
