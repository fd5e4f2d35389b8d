"""Tables, and their rendering on a terminal, in Markdown and in HTML.

Foreign texts in cells are marked as such, and every renderer escapes them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from markupsafe import Markup


class Foreign(str):
    """A foreign text in a cell, shown on one line with its formatting escaped."""

    __slots__ = ()


Cell = str | int
Row = Sequence[Cell]


class Column(NamedTuple):
    """A column: its head, and its alignment on a terminal.

    Without `most`, it is `width` characters wide on a terminal, and longer cells shift the next
    ones; with it, the column is as wide as its longest cell, from `width` to `most`, and longer
    cells are cut.
    """

    head: str
    align: Literal["left", "right"]
    width: int
    gap: int
    """Blanks before the column."""
    most: int
    numeric: bool
    """Whether its cells are numbers, which have their own class in HTML."""


class Table(NamedTuple):
    """A table; a row that is shorter than the columns ends early."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    note: str = ""
    """A sentence about the whole table, shown below it."""


def texts(head: str = "", width: int = 0, *, gap: int = 0, most: int = 0) -> Column:
    """Return a column of texts."""
    return Column(head, "left", width, gap, most, numeric=False)


def numbers(head: str = "", width: int = 0, *, gap: int = 0, most: int = 0) -> Column:
    """Return a column of numbers."""
    return Column(head, "right", width, gap, most, numeric=True)


def intervals(width: int = 0, *, gap: int = 2) -> Column:
    """Return a column of intervals."""
    return Column("95 % interval", "left", width, gap, 0, numeric=True)


def cut_line(text: str, most: int) -> str:
    """Return a text on one line, cut to a number of characters with a mark at the cut."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


# -- a terminal -----------------------------------------------------------------------------------


def text_lines(table: Table, indent: str = "", *, heads: bool = True) -> Iterator[str]:
    """Yield the lines of a table for a terminal, without blanks after the last cell."""
    fitted = [_fit_column(table, place) for place in range(len(table.columns))]
    if table.title:
        yield table.title
    for row in ([column.head for column in table.columns], *table.rows)[not heads :]:
        cells = zip(fitted, row, strict=False)
        yield (indent + "".join(_pad_cell(column, cell) for column, cell in cells)).rstrip()
    if table.note:
        yield table.note


def _fit_column(table: Table, place: int) -> Column:
    column = table.columns[place]
    if not column.most:
        return column
    longest = max((len(str(row[place])) for row in table.rows if place < len(row)), default=0)
    wanted = max(column.width, len(column.head), longest)
    return column._replace(width=min(column.most, wanted))


def _pad_cell(column: Column, cell: Cell) -> str:
    text = " ".join(cell.split()) if isinstance(cell, Foreign) else str(cell)
    if column.most:
        text = cut_line(text, column.width)
    padded = text.ljust(column.width) if column.align == "left" else text.rjust(column.width)
    return " " * column.gap + padded


# -- Markdown -------------------------------------------------------------------------------------


def format_markdown(table: Table) -> str:
    """Return a table as Markdown, without its title and without a newline at the end."""
    heads = "".join(f"| {column.head} " if column.head else "| " for column in table.columns)
    rows = (f"| {' | '.join(map(_markdown_cell, row))} |" for row in table.rows)
    made = f"{heads}|\n{'|---' * len(table.columns)}|\n" + "\n".join(rows)
    return f"{made}\n\n{table.note}" if table.note else made


def markdown_table(*heads: str, rows: Iterable[Row]) -> str:
    """Return a table as Markdown, given the heads of its columns."""
    return format_markdown(Table([*map(texts, heads)], [*rows]))


def _markdown_cell(cell: Cell) -> str:
    from coreeval.tools.markdown import escape

    return escape(cell) if isinstance(cell, Foreign) else str(cell)


# -- a page ---------------------------------------------------------------------------------------


def format_html(table: Table, style: str = "") -> "Markup":
    """Return a table as HTML, each cell escaped and without hidden characters.

    Args:
        table: The table; its title is the caption.
        style: The classes of the element; cells of numbers have the class `n`.
    """
    from markupsafe import Markup

    title = Markup("<caption>{}</caption>\n").format(_shown(table.title)) if table.title else ""
    heads = [column.head for column in table.columns]
    rows = [_html_row(table, heads, "th"), *(_html_row(table, row, "td") for row in table.rows)]
    made = Markup('<table class="{}">\n{}{}</table>').format(style, title, Markup("").join(rows))
    return made + Markup("\n<p>{}</p>").format(_shown(table.note)) if table.note else made


def _html_row(table: Table, row: Row, element: str) -> "Markup":
    from markupsafe import Markup

    numbers = (' class="n"' if column.numeric else "" for column in table.columns)
    cells = (
        Markup(f"<{element}{number}>{{}}</{element}>").format(_shown(str(cell)))
        for number, cell in zip(numbers, row, strict=False)
    )
    return Markup("<tr>{}</tr>\n").format(Markup("").join(cells))


def _shown(text: str) -> str:
    from coreeval.tools.text import visible

    return visible(text)
