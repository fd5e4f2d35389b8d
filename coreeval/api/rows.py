"""Rows in memory: lists of dicts, data frames and Arrow tables."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast, runtime_checkable

import numpy as np
from typing_extensions import TypeIs

from coreeval.api.tables import Table, parse_columns
from coreeval.errors import UsageError
from coreeval.schema import BadRow
from coreeval.tools.formatting import format_quantity
from coreeval.tools.short_floats import find_shortener, is_narrow, list_arrow_rows, shorten_frame

if TYPE_CHECKING:
    from coreeval.evaluation.benchmarks.files import ObjectRow

DATE = "date"
"""The name of the column for a frame's date index."""


@runtime_checkable
class ArrowData(Protocol):
    """A table with the Arrow C interface: from pyarrow, pandas, polars, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as a stream of Arrow data."""
        ...


class Frame(Protocol):
    """The used part of a pandas data frame."""

    @property
    def index(self) -> object:
        """The labels of the rows."""
        ...

    def to_dict(self, orient: Literal["records"]) -> list[dict[str, object]]:
        """Return the rows as dicts."""
        ...

    def convert_dtypes(self) -> "Frame":
        """Return the frame with integers in place of whole floats caused by missing cells."""
        ...

    def reset_index(self, *, names: str) -> "Frame":
        """Return the frame with its index as a column."""
        ...


Rows = Iterable[Mapping[str, object]] | ArrowData
"""Rows: dicts, a data frame or an Arrow table."""
PathLike = str | Path


def is_path(given: object) -> TypeIs[PathLike]:
    """Return whether a caller gave a path instead of rows."""
    return isinstance(given, str | Path)


def list_rows(given: Rows, where: str, *, index: str = "") -> list[dict[str, object]]:
    """Return rows as dicts of plain Python values; missing cells are None.

    Args:
        given: The rows.
        where: The argument, for errors.
        index: The name of the column for a date index; empty to drop the index.

    Raises:
        UsageError: the argument does not contain rows.
    """
    if isinstance(given, Mapping):
        raise UsageError(
            "a single dict is not a list of rows",
            where=where,
            hint="pass a list of dicts, or a data frame",
        )
    if _is_frame(given):
        return _list_frame_rows(given, index)
    if isinstance(given, ArrowData):
        import pyarrow as pa  # type: ignore[import-untyped]  # slow to import

        return [_to_plain_row(row) for row in list_arrow_rows(pa.table(given))]
    try:
        rows = list(given)
    except TypeError:
        rows = [given]  # type: ignore[list-item]  # what is wrong with it is said below
    for row in rows:
        if not isinstance(row, Mapping):
            raise UsageError(
                f"a row is a {type(row).__name__}, not a dict",
                where=where,
                hint="pass a list of dicts, a data frame, an Arrow table or the path of a file",
            )
    return [_to_plain_row(row) for row in rows]


def number_rows(rows: Iterable[dict[str, object]]) -> "Iterator[ObjectRow]":
    """Yield rows numbered from 1, in the same form as rows of files."""
    from coreeval.evaluation.benchmarks.files import ObjectRow

    for number, row in enumerate(rows, start=1):
        yield ObjectRow(number, json.dumps(row, ensure_ascii=False, default=str), row)


def to_date_text(value: object) -> object:
    """Return a date as text, as in files; any other value is unchanged."""
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if type(value).__module__.startswith("pandas") or isinstance(value, int):
        return str(value)  # such as Period("2020Q1"), or a year
    return value


def to_plain(value: object) -> object:
    """Return a value of a frame or an array as a plain Python value; None if it is missing."""
    value = _unwrap(value)
    if isinstance(value, float) and np.isnan(value):
        return None
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, Mapping):
        return {str(key): each for key, each in _to_plain_row(value).items() if each is not None}
    return [to_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _unwrap(value: object) -> object:
    """Return a scalar or an array of NumPy or Arrow as Python values; others are unchanged."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value.astype("datetime64[D]"))
    if isinstance(value, np.generic | np.ndarray):
        if not is_narrow(value.dtype):
            return value.item() if isinstance(value, np.generic) else value.tolist()
        return np.asarray(value).astype(str).astype(float).tolist()
    if hasattr(value, "as_py"):  # an Arrow scalar
        change = find_shortener(value.type) if hasattr(value, "type") else None
        return change(value.as_py()) if change else value.as_py()
    return value


def _to_plain_row(row: Mapping[str, object]) -> dict[str, object]:
    return {str(key): to_plain(value) for key, value in row.items()}


def _is_frame(given: object) -> TypeIs[Frame]:
    """Return whether this is a pandas frame, which may have mixed cells that Arrow cannot hold."""
    return hasattr(given, "to_dict") and hasattr(given, "itertuples")


def _list_frame_rows(frame: Frame, index: str) -> list[dict[str, object]]:
    names = cast("Iterable[str]", frame)  # iterating over a frame yields its columns
    if index and index not in list(names):
        frame = frame.reset_index(names=index)
    whole = shorten_frame(frame).convert_dtypes()
    return [_to_plain_row(row) for row in whole.to_dict("records")]


_BAD_ROWS = parse_columns("source row:integer reason text")


def make_bad_table(rows: Iterable[BadRow]) -> Table:
    """Return the rejected rows, each with the reason."""
    cells = ((row.file, row.line, row.reason, row.text) for row in rows)
    return Table("bad rows", _BAD_ROWS, cells)


def count_bad_rows(table: Table) -> list[str]:
    """Return a clause with the number of bad rows and the first reason; empty if there are none.

    Args:
        table: The bad rows.
    """
    if not len(table):
        return []
    what = format_quantity(len(table), "bad row is", "bad rows are")
    return [f"{what} skipped; the first is row {table[0]['row']}: {table[0]['reason']}"]
