"""The bar on a terminal; without a terminal, rich is not imported."""

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text


class _TimeLeft(TimeRemainingColumn):
    """The time left, unless the figures contain it."""

    def render(self, task: Task) -> Text:
        """Return rich's own estimate, or nothing."""
        return super().render(task) if task.fields["guess"] else Text("")


class FigureBar(Progress):
    """A one-line progress bar, with the figures of the run below it if there are any.

    Only the last column shrinks on a narrow terminal, because a wrapped bar would overwrite itself.
    """

    figures = ""
    """The text of the second line."""

    def __init__(self, console: Console) -> None:
        last = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        super().__init__(
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            BarColumn(bar_width=20),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            _TimeLeft(compact=True, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[said]}", markup=False, table_column=last),
            console=console,
            expand=True,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar and the figures below it."""
        yield from super().get_renderables()
        if self.figures:
            yield Text(f"  {self.figures}", no_wrap=True, overflow="ellipsis")
