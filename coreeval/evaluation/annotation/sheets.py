"""The sheets of raters: writes them as CSV and workbooks, and reads them back.

In a workbook, ratings are chosen from lists, and the second page is the guideline.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal
from zipfile import ZipFile

from coreeval.errors import CoreEvalError, UsageError
from coreeval.evaluation.annotation.criteria import (
    LABEL_STUDY,
    NO_OPTION,
    STUDIES,
    Criterion,
    CriterionForm,
    RatedText,
    StudyDesign,
)
from coreeval.evaluation.annotation.rating_study import NewsExcerpt, StudyItem
from coreeval.evaluation.annotation.ratings import SheetRow
from coreeval.tasks.kinds import find_kind
from coreeval.tasks.kinds.choice import option_fields
from coreeval.tools.archives import check_packing
from coreeval.tools.extras import require_extra
from coreeval.tools.text import (
    find_columns,
    format_sheet,
    is_preamble,
    iter_sheet_rows,
    join_fields,
    sheet_error,
    unescape,
    unescape_formula,
)

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet


SheetForm = Literal["csv", "xlsx", "page"]
NumberedRow = tuple[int, list[str]]
"""The line number on which a row begins, and its cells."""
SHOWN_COLUMNS: Final = ("item", "rater", "text", "asks", "label", "news")


def list_columns(design: StudyDesign) -> list[str]:
    """Return the columns of a sheet."""
    return [*SHOWN_COLUMNS, *design.columns, "note"]


@dataclass(frozen=True, kw_only=True)
class SheetItem:
    """A text as shown to a rater, without any sign of its arm."""

    item: str
    fields: Mapping[str, str]
    question: str
    label: str
    meaning: str
    evidence: tuple[NewsExcerpt, ...]
    options: tuple[str, ...] = ()
    """The fields that contain its options."""


def make_sheet_item(drawn: StudyItem) -> SheetItem:
    """Return the part of an item that a rater sees.

    Whitespace and HTML entities (`&amp;`) are normalised: some benchmarks end every text with a
    space or contain entities, and rewritten texts do not.
    """
    candidate = drawn.candidate
    texts = candidate.texts[drawn.arm]
    kind = find_kind(texts, candidate.label)
    shown = _shown_fields(RatedText(texts, candidate.label))
    gold = kind.gold(texts, candidate.label) if STUDIES[kind.name].gold_title else ""
    return SheetItem(
        item=drawn.item,
        fields=shown,
        question=candidate.question,
        label=_join_lines(gold),
        meaning=candidate.meaning if gold == candidate.label else "",
        evidence=candidate.evidence,
        options=tuple(option_fields(list(shown))),
    )


def _shown_fields(rated: RatedText) -> dict[str, str]:
    shown = find_kind(*rated).display.rated(*rated)
    return {name: _join_lines(text) for name, text in shown.items()}


def _join_lines(text: str) -> str:
    return " ".join(unescape(text).split())


def make_cells(each: SheetItem, rater: str, design: StudyDesign) -> list[str]:
    """Return the row of an item, with the ratings left empty."""
    news = "\n".join(
        " ".join(filter(None, (one.published_at[:10], one.domain, one.snippet, one.url)))
        for one in each.evidence
    )
    told = f"{each.label}: {each.meaning}" if each.meaning else each.label
    text = join_fields(each.fields)
    return [each.item, rater, text, each.question, told, news, *[""] * (len(design.columns) + 1)]


def write_sheet_csv(
    path: Path,
    items: Sequence[SheetItem],
    *,
    study: str,
    rater: str,
    design: StudyDesign = LABEL_STUDY,
) -> None:
    """Write a sheet as CSV."""
    del study  # every item's name starts with it
    rows = (make_cells(each, rater, design) for each in items)
    path.write_text(format_sheet(list_columns(design), rows), encoding="utf-8", newline="")


def read_sheets(
    paths: Sequence[Path], criteria: Sequence[str] = LABEL_STUDY.columns
) -> Iterator[SheetRow]:
    """Yield the rows of filled-in sheets.

    Columns other than `item`, `rater` and the criteria may be missing.

    Raises:
        UsageError: a file is not a sheet.
    """
    for path in paths:
        yield from _read_rows(path, READERS[_check_suffix(path)](path), criteria)


def _check_suffix(path: Path) -> str:
    suffix = path.suffix.casefold()
    if suffix not in READERS:
        raise UsageError(
            f"a file that ends in {suffix!r} is not a rating sheet"
            if suffix
            else "this is not a rating sheet",
            where=str(path),
            hint=f"use a {' or '.join(READERS)} file; a rating page saves its ratings as CSV",
        )
    return suffix


def _read_rows(
    path: Path, rows: Iterator[NumberedRow], criteria: Sequence[str]
) -> Iterator[SheetRow]:
    _, header = next(rows, (1, []))
    places = find_columns(path, header, ("item", "rater", *criteria))
    names = [name.strip().casefold() for name in header]
    places |= {name: names.index(name) for name in ("note", "text") if name in names}
    for line, cells in rows:
        said = {
            name: unescape_formula(cells[place]) if place < len(cells) else ""
            for name, place in places.items()
        }
        text = said.pop("text", "")
        if any(value.strip() for value in said.values()):
            yield SheetRow(
                where=f"{path.name}, line {line}",
                item=said["item"].strip(),
                rater=said["rater"].strip(),
                cells={name: said[name] for name in criteria},
                note=said.get("note", "").strip(),
                text=text,
            )


def refuse_shifted_rows(rows: Iterable[SheetRow], texts: Mapping[str, RatedText]) -> None:
    """Refuse sheets of which only some columns were sorted, so that ratings are of other texts.

    A text that a spreadsheet or a rater has changed is accepted, unless it is another item's.

    Raises:
        UsageError: a row has the text of another item.
    """
    shown = {item: _join_words(join_fields(_shown_fields(text))) for item, text in texts.items()}
    others = {text: item for item, text in shown.items()}
    for row in rows:
        text = _join_words(row.text)
        if row.item in shown and text != shown[row.item] and text in others:
            raise UsageError(
                f"the row of {row.item!r} has the text of {others[text]!r}",
                where=row.where,
                hint="only some columns were sorted or moved: undo that, or rate a new sheet",
            )


def _join_words(text: str) -> str:
    return " ".join(text.split())


def _read_csv(path: Path) -> Iterator[NumberedRow]:
    return _limit_rows(path, iter_sheet_rows(path))


def _read_xlsx(path: Path) -> Iterator[NumberedRow]:
    return read_workbook_rows(path)


def _limit_rows(path: Path, rows: Iterator[NumberedRow]) -> Iterator[NumberedRow]:
    for number, row in enumerate(rows, start=1):
        if number > _MOST_ROWS:
            raise sheet_error(path, f"it has more than {_MOST_ROWS:,} rows", _AS_WRITTEN)
        yield row


READERS: Final[dict[str, Callable[[Path], Iterator[NumberedRow]]]] = {
    ".csv": _read_csv,
    ".xlsx": _read_xlsx,
}


RATINGS_SHEET: Final = "ratings"
WIDTHS: Final = {"text": 70, "asks": 28, "label": 30, "news": 60, "note": 30}
MOST_CHARACTERS: Final = 32_767
"""The most characters of a cell (Microsoft, "Excel specifications and limits")."""
_AS_WRITTEN: Final = "use the exported sheet and fill it in"
_MOST_ROWS: Final = 100_000
"""The most rows of a sheet, and below the most columns of a row: a workbook of one kilobyte can
declare a billion of them, and openpyxl creates each."""
_MOST_COLUMNS: Final = 256
MOST_BYTES: Final = 200_000_000
"""The most bytes of an unpacked workbook; a sheet of 5,000 long texts has a tenth of that."""
_UNWRITABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML 1.0 does not allow (section 2.2)."""


def write_sheet_xlsx(
    path: Path,
    items: Sequence[SheetItem],
    *,
    study: str,
    rater: str,
    design: StudyDesign = LABEL_STUDY,
) -> None:
    """Write a sheet as a workbook.

    Raises:
        UsageError: a text is too long for a cell, or openpyxl is not installed.
    """
    with require_extra("sheets", "an XLSX sheet", where=str(path), otherwise="write CSV"):
        from openpyxl import Workbook
        from openpyxl.utils import get_column_letter

    book = Workbook()
    book.remove(book.worksheets[0])
    page = book.create_sheet(RATINGS_SHEET)
    columns = list_columns(design)
    for row in (columns, *(make_cells(each, rater, design) for each in items)):
        page.append([_fitting(cell, row[0]) for cell in row])
    _format_cells(page, columns)
    _keep_as_typed(page, columns, design)
    options = max((each.options for each in items), key=len, default=())
    for criterion in design.criteria:
        letter = get_column_letter(columns.index(criterion.name) + 1)
        _add_choices(page, criterion, options, f"{letter}2:{letter}{len(items) + 1}")
    _write_guideline(book.create_sheet("guideline"), study, design)
    book.save(path)


def _fitting(text: str, item: str) -> str:
    text = _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"a text of {item} has {len(text):,} characters, but a cell of a workbook can hold "
            f"at most {MOST_CHARACTERS:,}",
            where="--format xlsx",
            hint="use --format csv or --format page",
        )
    return text


def _format_cells(page: "Worksheet", columns: Sequence[str]) -> None:
    """Format every cell as plain, wrapped text and freeze the first row."""
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    for row in page.iter_rows():
        for cell in row:
            if isinstance(cell.value, str):  # starts with =, but is not a formula
                cell.data_type, cell.quotePrefix = "s", True
            cell.alignment = Alignment(wrap_text=True, vertical="top")
    for cell in page[1]:
        cell.font = Font(bold=True)
    for column, name in enumerate(columns, start=1):
        page.column_dimensions[get_column_letter(column)].width = WIDTHS.get(name, 12)
    page.freeze_panes = "C2"


def _keep_as_typed(page: "Worksheet", columns: Sequence[str], design: StudyDesign) -> None:
    """Make cells for words text, so that a spreadsheet stores 14.5% and 007 as they are typed."""
    words = {each.name for each in design.criteria if each.form == "text"} | {"note"}
    for place in (place for place, name in enumerate(columns, start=1) if name in words):
        for line in range(2, page.max_row + 1):
            page.cell(line, place).number_format = "@"


def _add_choices(
    page: "Worksheet", criterion: Criterion, options: Sequence[str], cells: str
) -> None:
    """Add a drop-down list of values to rating cells, with a prompt that explains them.

    Answers in words have no list.
    """
    from openpyxl.worksheet.datavalidation import DataValidation

    values = ",".join(map(str, _OFFERED[criterion.form](criterion, options)))
    if not values:
        return
    choice = DataValidation(type="list", formula1=f'"{values}"', allow_blank=True)
    told = _prompt(criterion.anchors) if criterion.form == "scale" else criterion.asks
    choice.promptTitle, choice.prompt = criterion.name, told
    choice.errorTitle = criterion.name
    choice.error = f"Enter one of {values}, or leave the cell empty."
    choice.showInputMessage = choice.showErrorMessage = True
    page.add_data_validation(choice)
    choice.add(cells)


_OFFERED: Final[dict[CriterionForm, Callable[[Criterion, Sequence[str]], Sequence[object]]]] = {
    "scale": lambda criterion, options: criterion.values,
    "option": lambda criterion, options: (*options, NO_OPTION),
    "text": lambda criterion, options: (),
}


def _prompt(anchors: dict[int, str]) -> str:
    """Return the meanings of the values, cut to the longest prompt allowed (255 characters)."""
    return "\n".join(f"{value}: {meaning}" for value, meaning in anchors.items())[:255]


def _write_guideline(page: "Worksheet", study: str, design: StudyDesign) -> None:
    from openpyxl.styles import Alignment, Font

    page.append([f"Study {study}"])
    for line in design.instructions:
        page.append([line])
    for criterion in design.criteria:
        page.append([])
        page.append([f"{criterion.name}: {criterion.asks}"])
        page.cell(page.max_row, 1).font = Font(bold=True)
        for value, meaning in criterion.shown_anchors.items():
            page.append([f"{value}: {meaning}"])
    page.append([])
    page.append([design.source])
    page.column_dimensions["A"].width = 100
    for row in page.iter_rows():
        row[0].alignment = Alignment(wrap_text=True, vertical="top")


def read_workbook_rows(path: Path) -> Iterator[NumberedRow]:
    """Yield the rows of the ratings in a workbook, numbered from 1.

    Raises:
        UsageError: the workbook cannot be read, or unpacks to more than a rater could have entered.
    """
    with require_extra("sheets", "an XLSX sheet", where=str(path), otherwise="save it as CSV"):
        from openpyxl import load_workbook

    try:
        with path.open("rb") as file:  # openpyxl does not close a file that it cannot read
            _refuse_bomb(path, file)
            book = load_workbook(file, read_only=True, data_only=True)
            rows = _limit_rows(path, _rows(path, book))
            yield from dropwhile(lambda row: is_preamble(row[1]), rows)
    except CoreEvalError:
        raise
    except Exception as error:  # noqa: BLE001 - openpyxl raises whatever an odd part leads it to
        hint = "save the exported sheet as XLSX again"
        raise sheet_error(path, str(error) or type(error).__name__, hint) from None


def _rows(path: Path, book: "Workbook") -> Iterator[NumberedRow]:
    pages = book.worksheets  # without sheets that are charts
    if not pages:
        raise sheet_error(path, "it has no sheet of cells", _AS_WRITTEN)
    page = next((page for page in pages if page.title == RATINGS_SHEET), pages[0])
    page.reset_dimensions()  # a file may declare a smaller size than it has
    rows = page.iter_rows(max_col=_MOST_COLUMNS)
    left = MOST_BYTES  # a text that many cells share is stored once in the file
    for line, row in enumerate(rows, start=1):
        cells = [_read_cell(cell) for cell in row]
        left -= sum(map(len, cells))
        if left < 0:
            raise sheet_error(
                path, f"its cells have more than {MOST_BYTES:,} characters", _AS_WRITTEN
            )
        yield line, cells


_LITERAL: Final = re.compile(r'"[^"]*"|\\.')
"""The parts of a number format that are shown as they are."""


def _read_cell(cell: Any) -> str:  # noqa: ANN401 - one of three classes of openpyxl
    """Return what was typed into a cell: a spreadsheet stores 14.5% as 0.145 with a format."""
    value = cell.value
    if type(value) in (int, float) and "%" in _LITERAL.sub("", cell.number_format):
        return f"{100 * value:.12g}%"
    return "" if value is None else str(value)


def _refuse_bomb(path: Path, file: BinaryIO) -> None:
    with ZipFile(file) as packed:
        members = packed.infolist()
    for member in members:
        check_packing(member)
    size = sum(member.file_size for member in members)
    if size > MOST_BYTES:
        raise sheet_error(path, f"it unpacks to {size:,} bytes", _AS_WRITTEN)
