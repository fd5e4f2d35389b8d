"""Tables returned by functions: typed columns, as rows, as an Arrow table or as a data frame.

`Result` is the base of results with a JSON document and one main table; `CommandResult` has nothing
else.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, cast, overload

from coreeval.errors import UsageError
from coreeval.tools.formatting import format_number, format_quantity
from coreeval.tools.tables import Column, Foreign, cut_line, format_html, numbers, text_lines, texts
from coreeval.tools.tables import Table as ShownTable
from coreeval.tools.text import visible_line

if TYPE_CHECKING:
    import pandas
    import pyarrow  # type: ignore[import-untyped]
    from pydantic import JsonValue

    Slice = slice[int | None, int | None, int | None]
else:
    Slice = slice  # it does not accept types before Python 3.14

Cell = str | int | float | bool | date | datetime | tuple[str, ...] | None
"""A value of a table; None if it is missing."""
CellKind = Literal["text", "integer", "number", "boolean", "date", "time", "texts"]
"""The type of a column: `time` is a moment in UTC, `texts` a list of texts."""
Row = tuple[Cell, ...]

ROWS: Final = 10
"""The most rows that a repr shows."""
HTML_ROWS: Final = 20
"""The most rows that a notebook shows."""
SHOWN_COLUMNS: Final = 20
"""The most columns that either shows."""
WIDTH: Final = 40
"""The most characters of a cell in a repr."""
HTML_WIDTH: Final = 200
"""The most characters of a cell in a notebook."""
_RIGHT: Final = ("integer", "number")


class Table:
    """An immutable table.

    `len(table)` is the number of its rows. Iterating yields each row as a dict. `table[0]` is a row
    as a dict, `table["id"]` the values of a column, `table[:5]` a table of the first five rows.
    """

    __slots__ = ("_columns", "_rows", "_title")

    def __init__(
        self, title: str, columns: Mapping[str, CellKind], rows: Iterable[Sequence[Cell]] = ()
    ) -> None:
        """Make a table.

        Args:
            title: What its rows are, such as "samples".
            columns: The type of each column, by name, in order.
            rows: The cells of each row, in the order of the columns.

        Raises:
            ValueError: a row does not have one cell per column.
        """
        self._title = title
        self._columns = MappingProxyType(dict(columns))
        self._rows = tuple(map(tuple, rows))
        wrong = next((row for row in self._rows if len(row) != len(self._columns)), None)
        if wrong is not None:
            raise ValueError(f"a row has {len(wrong)} cells for {len(self._columns)} columns")

    @classmethod
    def from_dicts(
        cls, title: str, columns: Mapping[str, CellKind], dicts: Iterable[Mapping[str, object]]
    ) -> "Table":
        """Make a table from rows as dicts; keys without a column are left out.

        Args:
            title: What its rows are, such as "samples".
            columns: The type of each column, by name, in order.
            dicts: The rows; a missing key is a missing value, a list becomes a tuple.
        """
        return cls(
            title, columns, ([_to_cell(each.get(name)) for name in columns] for each in dicts)
        )

    @property
    def title(self) -> str:
        """The title, which says what the rows are."""
        return self._title

    @property
    def columns(self) -> Mapping[str, CellKind]:
        """The type of each column, by name."""
        return self._columns

    @property
    def rows(self) -> tuple[Row, ...]:
        """The cells of each row."""
        return self._rows

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self._rows), len(self._columns)

    def to_dicts(self) -> list[dict[str, Cell]]:
        """Return the rows as dicts."""
        return list(self)

    def to_arrow(self) -> "pyarrow.Table":
        """Return the table as an Arrow table, with the title in its metadata.

        Raises:
            pyarrow.ArrowInvalid: a cell does not have the type of its column.
        """
        import pyarrow as pa  # slow to import

        types = {
            "text": pa.string(),
            "integer": pa.int64(),
            "number": pa.float64(),
            "boolean": pa.bool_(),
            "date": pa.date32(),
            "time": pa.timestamp("us", tz="UTC"),
            "texts": pa.list_(pa.string()),
        }
        fields = [pa.field(name, types[kind]) for name, kind in self._columns.items()]
        arrays = [pa.array(self[name], types[kind]) for name, kind in self._columns.items()]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields, {"title": self._title}))

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table as a data frame.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas  # pandas is optional: Arrow would raise its own error
        except ModuleNotFoundError:
            raise UsageError(
                "to_pandas() requires the pandas package, which is not installed",
                hint="pip install pandas, or use to_arrow() or to_dicts()",
            ) from None
        frame = self.to_arrow().to_pandas()
        assert isinstance(frame, pandas.DataFrame)
        return frame

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return (dict(zip(self._columns, row, strict=True)) for row in self._rows)

    @overload
    def __getitem__(self, key: int) -> dict[str, Cell]: ...
    @overload
    def __getitem__(self, key: str) -> tuple[Cell, ...]: ...
    @overload
    def __getitem__(self, key: Slice) -> "Table": ...
    def __getitem__(self, key: int | str | Slice) -> "dict[str, Cell] | tuple[Cell, ...] | Table":
        """Return a row as a dict, the values of a column, or a table of some rows.

        Raises:
            IndexError: there is no such row.
            KeyError: there is no such column.
        """
        if isinstance(key, slice):
            return Table(self._title, self._columns, self._rows[key])
        if isinstance(key, int):
            return dict(zip(self._columns, self._rows[key], strict=True))
        if key not in self._columns:
            raise KeyError(f"{key!r} is not a column; the columns are: {', '.join(self._columns)}")
        place = list(self._columns).index(key)
        return tuple(row[place] for row in self._rows)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Table)
            and self._title == other.title
            and list(self._columns.items()) == list(other.columns.items())
            and self._rows == other.rows
        )

    def __repr__(self) -> str:
        return "\n".join(text_lines(self._shown(ROWS, WIDTH)))

    def _repr_html_(self) -> str:
        return str(format_html(self._shown(HTML_ROWS, HTML_WIDTH)))

    def _shown(self, most: int, width: int) -> ShownTable:
        """Return the cells of the first rows, each cut and on one line."""
        kinds = dict(list(self._columns.items())[:SHOWN_COLUMNS])
        rows = [
            [_show_cell(cell, width) for cell in row[:SHOWN_COLUMNS]] for row in self._rows[:most]
        ]
        heads = [_make_column(name, kind, width) for name, kind in kinds.items()]
        size = (
            f"{format_quantity(len(self), 'row')}, {format_quantity(len(self._columns), 'column')}"
        )
        title = f"{self._title}: {size}"
        return ShownTable(heads, rows, cut_line(visible_line(title), width * 3), self._rest(most))

    def _rest(self, most: int) -> str:
        rows, columns = len(self) - most, len(self._columns) - SHOWN_COLUMNS
        counted = ((rows, "more row"), (columns, "more column"))
        left = [format_quantity(number, what) for number, what in counted if number > 0]
        return f"and {' and '.join(left)}" if left else ""


def parse_columns(words: str) -> dict[str, CellKind]:
    """Return columns from words separated by spaces: `name` for a text, or `name:kind`.

    Args:
        words: The columns in order, such as `sample label attempts:integer`.
    """
    pairs = (word.partition(":") for word in words.split())
    return {name: cast("CellKind", kind or "text") for name, _, kind in pairs}


def _to_cell(value: object) -> Cell:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else cast("Cell", value)


def _make_column(name: str, kind: CellKind, width: int) -> Column:
    make = numbers if kind in _RIGHT else texts
    return make(cut_line(visible_line(name), width), gap=2, most=width)


def _show_cell(cell: Cell, width: int) -> Foreign:
    if cell is None:
        return Foreign("")
    if isinstance(cell, float):
        return Foreign(format_number(cell, ".4g"))
    if isinstance(cell, datetime):
        cell = cell.isoformat(" ", "seconds")
    text = ", ".join(cell) if isinstance(cell, tuple) else str(cell)
    return Foreign(cut_line(visible_line(text[: 4 * width]), width))


class Result(ABC):
    """A result: its command's JSON document, a one-line summary, and a main table."""

    @property
    @abstractmethod
    def document(self) -> "Mapping[str, JsonValue]":
        """The document that the command prints with `--json`."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The outcome, in a line."""

    @property
    @abstractmethod
    def table(self) -> Table:
        """The main table."""

    def to_json(self) -> str:
        """Return the document as JSON."""
        return json.dumps(self.document, indent=2)

    def to_dicts(self) -> list[dict[str, Cell]]:
        """Return the rows of the main table as dicts."""
        return self.table.to_dicts()

    def to_arrow(self) -> "pyarrow.Table":
        """Return the main table as an Arrow table."""
        return self.table.to_arrow()

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the main table as a data frame.

        Raises:
            UsageError: pandas is not installed.
        """
        return self.table.to_pandas()

    def _remarks(self) -> tuple[str, ...]:
        """Return what a repr says in full, each thing on a line, before the table."""
        return ()

    def __repr__(self) -> str:
        remarks = (f"  {visible_line(each)}" for each in self._remarks())
        return "\n".join((visible_line(self.summary), *remarks, repr(self.table)))

    def __str__(self) -> str:
        return repr(self)  # a pydantic base would print all its fields

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        line = Markup("<p>{}</p>\n")
        said = (line.format(visible_line(each)) for each in (self.summary, *self._remarks()))
        return "".join(said) + self.table._repr_html_()


class CommandResult(Result):
    """The result of a command: the document that it prints with `--json`, and its main table."""

    def __init__(self, document: Mapping[str, object], summary: str, table: Table) -> None:
        """Store the document, a one-line summary, and the main table."""
        self._document = cast("Mapping[str, JsonValue]", document)
        self._summary, self._table = summary, table

    @property
    def document(self) -> "Mapping[str, JsonValue]":
        """The document that the command prints with `--json`; docs/json.md describes its keys."""
        return self._document

    @property
    def summary(self) -> str:
        """The outcome, in a line."""
        return self._summary

    @property
    def table(self) -> Table:
        """The main table."""
        return self._table
