"""A sheet as XLSX: ratings are chosen from lists, and the guideline is its second page."""

import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final
from zipfile import BadZipFile, ZipFile

from coreeval.errors import UsageError
from coreeval.evaluation.annotation.guideline import CRITERIA, INSTRUCTIONS, SOURCE
from coreeval.evaluation.annotation.sheets import COLUMNS, SheetItem, cells_of
from coreeval.tools.text import sheet_error

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

RATINGS_SHEET: Final = "ratings"
WIDTHS: Final = {"text": 70, "asks": 28, "label": 30, "news": 60, "note": 30}
MOST_CHARACTERS: Final = 32_767
"""What a cell can hold (Microsoft, "Excel specifications and limits")."""
_MOST_ROWS: Final = 100_000
"""Rows of a sheet, and columns of a row below: a file of one kilobyte can claim a billion of them,
and openpyxl makes each."""
_MOST_COLUMNS: Final = 256
MOST_BYTES: Final = 200_000_000
"""Largest workbook that is unpacked: a sheet of 5,000 long texts has a tenth of it."""
_UNREADABLE: Final = (
    OSError, BadZipFile, zlib.error, EOFError, ValueError, LookupError, SyntaxError, TypeError,
    RuntimeError,
)  # fmt: skip
"""What openpyxl and zipfile raise for files that are damaged, locked, or no workbooks."""
_UNWRITABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML 1.0 does not have (section 2.2)."""


def write_xlsx(path: Path, items: Sequence[SheetItem], *, study: str, rater: str) -> None:
    """Write a sheet as a workbook.

    Raises:
        UsageError: a text is longer than a cell can be.
    """
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.worksheets[0])
    page = book.create_sheet(RATINGS_SHEET)
    for row in (list(COLUMNS), *(cells_of(each, rater) for each in items)):
        page.append([_fitting(cell, row[0]) for cell in row])
    _look(page)
    _choices(page, len(items) + 1)
    _guideline(book.create_sheet("guideline"), study)
    book.save(path)


def _fitting(text: str, item: str) -> str:
    text = _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"a text of {item} has {len(text):,} characters, and a cell of a workbook holds "
            f"{MOST_CHARACTERS:,}",
            where="--format xlsx",
            hint="write it as csv or page",
        )
    return text


def _look(page: "Worksheet") -> None:
    """Make every cell plain text, wrapped, and keep the first line in view."""
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    for row in page.iter_rows():
        for cell in row:
            if isinstance(cell.value, str):  # begins with =, and is no formula, edited or not
                cell.data_type, cell.quotePrefix = "s", True
            cell.alignment = Alignment(wrap_text=True, vertical="top")
    for cell in page[1]:
        cell.font = Font(bold=True)
    for column, name in enumerate(COLUMNS, start=1):
        page.column_dimensions[get_column_letter(column)].width = WIDTHS.get(name, 12)
    page.freeze_panes = "C2"


def _choices(page: "Worksheet", last: int) -> None:
    """Let ratings be chosen from their values, with their meanings beside."""
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    for criterion in CRITERIA:
        values = ",".join(map(str, criterion.values))
        choice = DataValidation(type="list", formula1=f'"{values}"', allow_blank=True)
        choice.promptTitle, choice.prompt = criterion.name, _prompt(criterion.anchors)
        choice.errorTitle, choice.error = criterion.name, f"one of {values}, or empty"
        choice.showInputMessage = choice.showErrorMessage = True
        page.add_data_validation(choice)
        letter = get_column_letter(COLUMNS.index(criterion.name) + 1)
        choice.add(f"{letter}2:{letter}{last}")


def _prompt(anchors: dict[int, str]) -> str:
    """Return the meanings, as long as a prompt may be (255 characters)."""
    return "\n".join(f"{value}: {meaning}" for value, meaning in anchors.items())[:255]


def _guideline(page: "Worksheet", study: str) -> None:
    from openpyxl.styles import Alignment, Font

    page.append([f"Study {study}"])
    for line in INSTRUCTIONS:
        page.append([line])
    for criterion in CRITERIA:
        page.append([])
        page.append([f"{criterion.name}: {criterion.asks}"])
        page.cell(page.max_row, 1).font = Font(bold=True)
        for value, meaning in criterion.anchors.items():
            page.append([f"{value}: {meaning}"])
    page.append([])
    page.append([SOURCE])
    page.column_dimensions["A"].width = 100
    for row in page.iter_rows():
        row[0].alignment = Alignment(wrap_text=True, vertical="top")


def workbook_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a workbook's ratings, numbered from 1.

    Raises:
        UsageError: it cannot be read, or unpacks to more than anybody can have filled in.
    """
    from openpyxl import load_workbook

    try:
        with path.open("rb") as file:  # openpyxl leaves a file open that it cannot read
            _refuse_bomb(path, file)
            yield from _rows(path, load_workbook(file, read_only=True, data_only=True))
    except _UNREADABLE as error:
        hint = "save it as XLSX, as it was written"
        raise sheet_error(path, str(error) or type(error).__name__, hint) from None


def _rows(path: Path, book: "Workbook") -> Iterator[tuple[int, list[str]]]:
    page = book[RATINGS_SHEET] if RATINGS_SHEET in book.sheetnames else book.worksheets[0]
    page.reset_dimensions()  # what a file says of its size may be less than it has
    rows = page.iter_rows(values_only=True, max_col=_MOST_COLUMNS)
    for line, row in enumerate(rows, start=1):
        if line > _MOST_ROWS:
            hint = "give the sheet that was written, filled in"
            raise sheet_error(path, f"it has more than {_MOST_ROWS:,} rows", hint)
        yield line, ["" if cell is None else str(cell) for cell in row]


def _refuse_bomb(path: Path, file: BinaryIO) -> None:
    with ZipFile(file) as packed:
        size = sum(member.file_size for member in packed.infolist())
    if size > MOST_BYTES:
        raise sheet_error(
            path, f"it unpacks to {size:,} bytes", "give the sheet that was written, filled in"
        )
