"""The layouts of publishers' files: reads a row for each date from a file or its archive."""

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from coreeval.errors import DatasetError, suggest_name
from coreeval.evaluation.numleak.periods import Frequency
from coreeval.evaluation.numleak.series.definition import Format, SeriesDefinition
from coreeval.tools.archives import ARCHIVE_DAMAGE, check_packing
from coreeval.tools.formatting import list_first

MOST_BYTES: Final = 32 << 20
"""Maximum size of a file, compressed and uncompressed; daily factors since 1926 take 2 MB."""


def extract_text(data: bytes) -> str:
    """Return the text of a file, unzipped if it is a zip archive.

    Raises:
        DatasetError: the file is not text, or is an archive that is damaged, too large, or has
            several files.
    """
    unpacked = _unzip(data) if data.startswith(b"PK\x03\x04") else data
    if b"\0" in unpacked:
        raise DatasetError(
            "this is not a text file", hint="save it as CSV, plain or in a zip archive"
        )
    return unpacked.decode("utf-8-sig", errors="replace")  # prose may be in Latin-1, numbers not


def _unzip(data: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [name for name in archive.namelist() if name.lower().endswith((".csv", ".txt"))]
            if len(names) != 1:
                raise DatasetError(
                    f"the archive has {len(names)} CSV files instead of one",
                    hint="unpack it and use the file",
                )
            check_packing(archive.getinfo(names[0]))
            with archive.open(names[0]) as member:
                unpacked = member.read(MOST_BYTES + 1)
    except ARCHIVE_DAMAGE as error:
        told = str(error) or type(error).__name__
        raise DatasetError(f"the archive cannot be unpacked: {told}") from None
    if len(unpacked) > MOST_BYTES:
        raise DatasetError(f"the archive has more than {MOST_BYTES >> 20} MiB when unpacked")
    return unpacked


_DIGITS: Final[dict[Frequency, int]] = {"daily": 8, "weekly": 8, "monthly": 6, "annual": 4}
"""The number of digits of a date in French's files, which have a block for each frequency."""
_MONTHS: Final = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip
_QUARTER: Final = re.compile(r"q(?:tr)?\.?\s*([1-4])|([1-4])q?", re.IGNORECASE)
_NOAA_MISSING: Final = re.compile(
    r"^#?[^\S\n]*Missing:\s*(\S*[^\s,]),*\s*$", re.IGNORECASE | re.MULTILINE
)
_NOTHING: Final = ("", ".", "NA", "N/A", "NaN", "nan", "null", "None", "-")


class CellRow(NamedTuple):
    """One cell and its date, as written in the file."""

    line: int
    """Line number in the file, from 1."""
    date: str
    cell: str
    place: int = 0
    """Column index of the cell, from 0."""


class CellRows(NamedTuple):
    """The cells of a file before their values are parsed."""

    rows: list[CellRow]
    missing: tuple[str, ...]
    """Markers of "no value" in the file."""
    header: int
    """The number of the line that names the columns."""
    delimiter: str = ","
    """The character between two columns."""


class _Line(NamedTuple):
    number: int
    cells: list[str]


# -- one row for a date ---------------------------------------------------------------------------


def _read_csv(text: str, definition: SeriesDefinition) -> CellRows:
    lines = _lines(text)
    header = _header(lines, definition)
    rows = list(_table(header.cells, [line for line in lines if line > header], definition))
    return CellRows(rows, _NOTHING, header.number)


def _read_noaa(text: str, definition: SeriesDefinition) -> CellRows:
    """Read a Climate at a Glance file, with prose above its header, or a plain table of dates."""
    lines = [line for line in _lines(text) if not line.cells[0].startswith("#")]
    starts = ("date", "month", "year")
    header = next((line for line in lines if line.cells[0].lower() in starts), None)
    if header is None:
        raise DatasetError(
            "this is not a file from NOAA's Climate at a Glance: no line starts with Date",
            hint="download the CSV file for all months (time scale: 1 month, month: all)",
        )
    said = _NOAA_MISSING.search(text)
    missing = (said[1],) if said else ("-99", "-9999")
    table = list(_table(header.cells, [line for line in lines if line > header], definition))
    return CellRows(table, (*_NOTHING, *missing), header.number)


def _read_french(text: str, definition: SeriesDefinition) -> CellRows:
    """Read the first block of French's file whose dates have the series' frequency."""
    digits, block, header = _DIGITS.get(definition.frequency), list[_Line](), None
    for line in _lines(text, delimiter=","):
        if not line.cells[0] and any(line.cells):
            if block:
                break
            header = line
        elif header and len(line.cells[0]) == digits and line.cells[0].isdecimal():
            block.append(line)
        elif block:
            break
    if header is None or not block:
        raise DatasetError(
            f"this file from Kenneth French's library has no {definition.frequency} values",
            hint="download the CSV file of the factors; its header starts with a comma",
        )
    rows = list(_table(header.cells, block, definition))
    return CellRows(rows, (*_NOTHING, "-99.99", "-999", "-99.9999"), header.number)


def _table(
    header: Sequence[str], lines: Sequence[_Line], definition: SeriesDefinition
) -> Iterator[CellRow]:
    dates = [_place(header, name) for name in definition.source.dates] or [0]
    column = _value_column(header, dates, definition)
    for line in lines:
        cells = line.cells + [""] * (len(header) - len(line.cells))
        date = cells[dates[0]] if len(dates) == 1 else _join_date(cells, dates, definition)
        yield CellRow(line.number, date, cells[column], column)


def _value_column(header: Sequence[str], dates: list[int], definition: SeriesDefinition) -> int:
    if definition.column is not None:
        return _place(header, definition.column)
    others = [place for place in range(len(header)) if place not in dates]
    if len(others) != 1:
        raise DatasetError(
            f"the file has {len(others)} columns besides the dates, but the definition names none "
            "of them",
            hint=f"set `column` in the definition (the file has: {_name_columns(header)})",
        )
    return others[0]


def _place(header: Sequence[str], name: str) -> int:
    if name in header:
        return header.index(name)
    raise DatasetError(
        f"the file has no column {name!r}",
        hint=f"{suggest_name(name, header, likeness=0.5)} (the file has: {_name_columns(header)})",
    )


def _name_columns(header: Sequence[str]) -> str:
    return list_first([name or "(no name)" for name in header], 20)


def _join_date(cells: Sequence[str], dates: Sequence[int], definition: SeriesDefinition) -> str:
    """Join year and month, or year and quarter, into one date; leave other dates unchanged."""
    year, part = (cells[place] for place in dates)
    quarterly = definition.frequency == "quarterly" and not definition.transform.combine
    return (
        _of_year(trim_number(year), trim_number(part), quarterly=quarterly)
        or f"{year} {part}".strip()
    )


def trim_number(number: str) -> str:
    """Return a number without the empty fraction that some programs add."""
    return re.sub(r"\.0*$", "", number)


def _of_year(year: str, part: str, *, quarterly: bool) -> str | None:
    if not re.fullmatch(r"\d{4}", year):
        return None
    if quarterly:
        found = _QUARTER.fullmatch(part)
        return f"{year}-Q{found[1] or found[2]}" if found else None
    month = part if part.isdecimal() else _month_number(part)
    return f"{year}-{int(month):02d}" if month else None


def _month_number(name: str) -> str | None:
    short = name.lower().rstrip(".")[:3]
    return str(_MONTHS.index(short) + 1) if short in _MONTHS else None


# -- one row for a year ---------------------------------------------------------------------------


def _read_wide(text: str, definition: SeriesDefinition) -> CellRows:
    """Read a table with a row per year and a column per month or quarter; ignore other columns."""
    header, *lines = _lines(text) or [_Line(1, [""])]
    year = _place(header.cells, definition.source.dates[0]) if definition.source.dates else 0
    quarterly = definition.frequency == "quarterly" and not definition.transform.combine
    parts = {
        place: name
        for place, name in enumerate(header.cells)
        if place != year and _of_year("2000", name, quarterly=quarterly)
    }
    if not parts:
        kind = "quarters (Q1 … Q4)" if quarterly else "months (1 … 12 or JAN … DEC)"
        raise DatasetError(
            f"the file has no columns for {kind}; its columns: {_name_columns(header.cells)}"
        )
    return CellRows(
        [
            CellRow(line.number, _of_year(trim_number(line.cells[year]), name, quarterly=quarterly)
                or line.cells[year], line.cells[place], place)
            for line in lines
            for place, name in parts.items()
            if place < len(line.cells)
        ],
        _NOTHING,
        header.number,
    )  # fmt: skip


# -- lines ----------------------------------------------------------------------------------------


def _lines(text: str, delimiter: str | None = None) -> list[_Line]:
    """Return the non-blank lines, with their cells stripped."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter or find_delimiter(text))
    try:
        cells = [(reader.line_num, [cell.strip() for cell in line]) for line in reader]
    except csv.Error as error:
        raise DatasetError(f"line {reader.line_num} cannot be read: {error}") from None
    return [_Line(number, line) for number, line in cells if any(line)]


def find_delimiter(text: str) -> str:
    """Return the column delimiter: the most frequent of comma, semicolon and tab."""
    head = text[:2000]
    return max(",;\t", key=head.count)


def _header(lines: Sequence[_Line], definition: SeriesDefinition) -> _Line:
    """Return the first line that contains the named columns; lines above it are prose."""
    names = [*definition.source.dates, *([definition.column] if definition.column else [])]
    named = (line for line in lines if all(name in line.cells for name in names))
    found = next(named, None) if names else None
    if found or lines:
        return found or lines[0]
    raise DatasetError("the file is empty")


READERS: Final[Mapping[Format, Callable[[str, SeriesDefinition], CellRows]]] = {
    "french": _read_french,
    "fred": _read_csv,
    "noaa": _read_noaa,
    "csv": _read_csv,
    "wide_csv": _read_wide,
}


def read_rows(text: str, definition: SeriesDefinition) -> CellRows:
    """Return the dates and cells of a file in the layout that its definition names.

    Raises:
        DatasetError: the file does not have this layout, or lacks the column.
    """
    found = READERS[definition.source.format](text, definition)
    return found._replace(delimiter=find_delimiter(text))
