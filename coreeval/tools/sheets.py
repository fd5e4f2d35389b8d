"""CSV that people fill in with a spreadsheet: no cell is a formula, and it comes back as saved."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from coreeval.config.user_files import MOST_DATA_BYTES, read_text
from coreeval.errors import UsageError

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'", "＝", "＋", "－", "＠")  # noqa: RUF001
"""What makes a spreadsheet take a cell for a formula (OWASP, CSV Injection), and our own mark."""
_SEPARATORS = ",;\t"
"""Spreadsheets of some countries save with another one than they were given."""


def sheet_text(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a sheet as CSV, with the mark by which spreadsheets know UTF-8."""
    made = io.StringIO(newline="")
    writer = csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    return f"\ufeff{made.getvalue()}"


def one_cell(fields: Mapping[str, str]) -> str:
    """Return the texts of a sample as one: where there are several, each after its name."""
    if len(fields) == 1:
        return next(iter(fields.values()))
    return "\n".join(f"{name}: {text}" for name, text in fields.items())


def harmless(cell: str) -> str:
    """Return a cell with an apostrophe before what a spreadsheet would take for a formula."""
    cell = cell.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def as_meant(cell: str) -> str:
    """Take away the apostrophe that `harmless` put before a cell."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def sheet_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a sheet with the line that each begins on.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        text = read_text(path, most_bytes=MOST_DATA_BYTES)
        first = text.partition("\n")[0]
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=max(_SEPARATORS, key=first.count), strict=True
        )
        line = 1
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except UnicodeDecodeError:
        raise unreadable(path, "it is not UTF-8", "save it as CSV UTF-8") from None
    except (OSError, csv.Error) as error:
        raise unreadable(path, str(error), "save it as CSV, as it was written") from None


def unreadable(path: Path, problem: str, hint: str) -> UsageError:
    """Return the error about a sheet that cannot be read."""
    return UsageError(f"the sheet cannot be read: {problem}", where=str(path), hint=hint)


def places_of(path: Path, header: Sequence[str], wanted: Sequence[str]) -> dict[str, int]:
    """Return where the wanted columns stand, by their names.

    Raises:
        UsageError: one of them is missing or there twice.
    """
    names = [name.strip().casefold() for name in header]
    missing = [name for name in wanted if names.count(name) != 1]
    if missing:
        raise unreadable(
            path, f"it has not one column {missing[0]!r}", "keep the first line as it was written"
        )
    return {name: names.index(name) for name in wanted}
