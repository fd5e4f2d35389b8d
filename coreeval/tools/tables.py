"""A table of results as a value, whoever shows it: a terminal, a page or Markdown."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """Rows of cells under a title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """What a reader must know about the numbers; empty for nothing."""


def table_lines(table: Table) -> Iterator[str]:
    """Yield the lines of a table for a terminal: each column as wide as its longest cell."""
    cells = [table.columns, *table.rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(table.columns))]
    yield table.title
    for row in cells:
        yield f"  {'  '.join(map(str.ljust, row, widths))}".rstrip()
    if table.note:
        yield table.note
