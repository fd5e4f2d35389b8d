"""The sheets of raters: what each of them is shown, written in three forms and read back.

In a workbook ratings are chosen from lists, and the guideline is its second page. The page works
from a folder: nothing is fetched, nothing is sent.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Literal
from zipfile import ZipFile

from coreeval.errors import CoreEvalError, UsageError
from coreeval.evaluation.annotation.rating_study import (
    CRITERIA,
    INSTRUCTIONS,
    SOURCE,
    NewsExcerpt,
    StudyItem,
)
from coreeval.evaluation.annotation.ratings import SheetRow
from coreeval.tasks.kinds import find_kind
from coreeval.tools.archives import check_packing
from coreeval.tools.extras import require_extra
from coreeval.tools.text import (
    find_columns,
    format_sheet,
    iter_sheet_rows,
    join_fields,
    sheet_error,
    unescape,
    unescape_formula,
    visible_value,
)

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet


SheetForm = Literal["csv", "xlsx", "page"]
NumberedRow = tuple[int, list[str]]
"""The line number on which a row begins, and its cells."""
RATING_COLUMNS: Final = tuple(each.name for each in CRITERIA)
SHOWN_COLUMNS: Final = ("item", "rater", "text", "asks", "label", "news")
COLUMNS: Final = (*SHOWN_COLUMNS, *RATING_COLUMNS, "note")
_READ: Final = ("item", "rater", *RATING_COLUMNS)
"""The columns that are read back, and `note` if present; the others may be removed."""


@dataclass(frozen=True, kw_only=True)
class SheetItem:
    """A text as shown to a rater; nothing in it depends on its arm."""

    item: str
    fields: Mapping[str, str]
    question: str
    label: str
    meaning: str
    evidence: tuple[NewsExcerpt, ...]


def make_sheet_item(drawn: StudyItem) -> SheetItem:
    """Return the part of an item that a rater sees.

    Whitespace and HTML entities (`&amp;`) are normalised: some benchmarks end every text with a
    space or contain entities, and rewritten texts do not.
    """
    candidate = drawn.candidate
    texts = candidate.texts[drawn.arm]
    kind = find_kind(texts, candidate.label)
    shown = kind.display.rated(texts, candidate.label)
    return SheetItem(
        item=drawn.item,
        fields={name: _join_lines(text) for name, text in shown.items()},
        question=candidate.question,
        label=_join_lines(kind.gold(texts, candidate.label)),
        meaning=candidate.meaning,
        evidence=candidate.evidence,
    )


def _join_lines(text: str) -> str:
    return " ".join(unescape(text).split())


def make_cells(each: SheetItem, rater: str) -> list[str]:
    """Return the row of an item, with the ratings left empty."""
    news = "\n".join(
        " ".join(filter(None, (one.published_at[:10], one.domain, one.snippet, one.url)))
        for one in each.evidence
    )
    told = f"{each.label}: {each.meaning}"
    text = join_fields(each.fields)
    return [each.item, rater, text, each.question, told, news, *[""] * (len(RATING_COLUMNS) + 1)]


def write_sheet_csv(path: Path, items: Sequence[SheetItem], *, study: str, rater: str) -> None:
    """Write a sheet as CSV."""
    del study  # every item's name begins with it
    rows = (make_cells(each, rater) for each in items)
    path.write_text(format_sheet(COLUMNS, rows), encoding="utf-8", newline="")


def read_sheets(paths: Sequence[Path]) -> Iterator[SheetRow]:
    """Yield the rows of filled-in sheets.

    Raises:
        UsageError: a file is not a sheet.
    """
    for path in paths:
        yield from _read_rows(path, READERS[_check_suffix(path)](path))


def _check_suffix(path: Path) -> str:
    suffix = path.suffix.casefold()
    if suffix not in READERS:
        raise UsageError(
            f"a file that ends in {suffix!r} is no sheet" if suffix else "this is no sheet",
            where=str(path),
            hint=f"give {' or '.join(READERS)}; a page downloads its ratings as CSV",
        )
    return suffix


def _read_rows(path: Path, rows: Iterator[NumberedRow]) -> Iterator[SheetRow]:
    _, header = next(rows, (1, []))
    places = find_columns(path, header, _READ)
    names = [name.strip().casefold() for name in header]
    places |= {"note": names.index("note")} if "note" in names else {}
    for line, cells in rows:
        said = {
            name: unescape_formula(cells[place]) if place < len(cells) else ""
            for name, place in places.items()
        }
        if any(value.strip() for value in said.values()):
            yield SheetRow(
                where=f"{path.name}, line {line}",
                item=said["item"].strip(),
                rater=said["rater"].strip(),
                cells={name: said[name] for name in RATING_COLUMNS},
                note=said.get("note", "").strip(),
            )


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
_AS_WRITTEN: Final = "give the sheet that was written, filled in"
_MOST_ROWS: Final = 100_000
"""The most rows of a sheet, and below the most columns of a row: a workbook of one kilobyte can
claim a billion of them, and openpyxl creates each."""
_MOST_COLUMNS: Final = 256
MOST_BYTES: Final = 200_000_000
"""The largest workbook to unpack, in bytes; a sheet of 5,000 long texts has a tenth of that."""
_UNWRITABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML 1.0 does not allow (section 2.2)."""


def write_sheet_xlsx(path: Path, items: Sequence[SheetItem], *, study: str, rater: str) -> None:
    """Write a sheet as a workbook.

    Raises:
        UsageError: a text is too long for a cell, or openpyxl is not installed.
    """
    with require_extra("sheets", "an XLSX sheet", where=str(path), otherwise="write CSV"):
        from openpyxl import Workbook

    book = Workbook()
    book.remove(book.worksheets[0])
    page = book.create_sheet(RATINGS_SHEET)
    for row in (list(COLUMNS), *(make_cells(each, rater) for each in items)):
        page.append([_fitting(cell, row[0]) for cell in row])
    _format_cells(page)
    _add_choices(page, len(items) + 1)
    _write_guideline(book.create_sheet("guideline"), study)
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


def _format_cells(page: "Worksheet") -> None:
    """Format every cell as plain, wrapped text and freeze the first row."""
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


def _add_choices(page: "Worksheet", last: int) -> None:
    """Add a drop-down list of values to each rating cell, with a prompt that explains them."""
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
    """Return the meanings of the values, cut to the longest prompt allowed (255 characters)."""
    return "\n".join(f"{value}: {meaning}" for value, meaning in anchors.items())[:255]


def _write_guideline(page: "Worksheet", study: str) -> None:
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


def read_workbook_rows(path: Path) -> Iterator[NumberedRow]:
    """Yield the rows of the ratings in a workbook, numbered from 1.

    Raises:
        UsageError: the workbook cannot be read, or unpacks to more than a rater could have entered.
    """
    with require_extra("sheets", "an XLSX sheet", where=str(path), otherwise="save it as CSV"):
        from openpyxl import load_workbook

    try:
        with path.open("rb") as file:  # openpyxl leaves a file open that it cannot read
            _refuse_bomb(path, file)
            book = load_workbook(file, read_only=True, data_only=True)
            yield from _limit_rows(path, _rows(path, book))
    except CoreEvalError:
        raise
    except Exception as error:  # noqa: BLE001 - openpyxl raises whatever an odd part leads it to
        hint = "save it as XLSX, as it was written"
        raise sheet_error(path, str(error) or type(error).__name__, hint) from None


def _rows(path: Path, book: "Workbook") -> Iterator[NumberedRow]:
    pages = book.worksheets  # without sheets that are charts
    if not pages:
        raise sheet_error(path, "it has no sheet of cells", _AS_WRITTEN)
    page = next((page for page in pages if page.title == RATINGS_SHEET), pages[0])
    page.reset_dimensions()  # what a file says of its size may be less than it has
    rows = page.iter_rows(values_only=True, max_col=_MOST_COLUMNS)
    for line, row in enumerate(rows, start=1):
        yield line, ["" if cell is None else str(cell) for cell in row]


def _refuse_bomb(path: Path, file: BinaryIO) -> None:
    with ZipFile(file) as packed:
        members = packed.infolist()
    for member in members:
        check_packing(member)
    size = sum(member.file_size for member in members)
    if size > MOST_BYTES:
        raise sheet_error(path, f"it unpacks to {size:,} bytes", _AS_WRITTEN)


def write_sheet_page(path: Path, items: Sequence[SheetItem], *, study: str, rater: str) -> None:
    """Write a sheet as a page that stores the ratings in the browser and downloads them as CSV."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, finalize=visible_value, undefined=StrictUndefined, trim_blocks=True
    )
    style, script = _read_asset("page.css"), _read_asset("page.js")
    page = environment.from_string(_read_asset("page.html.jinja")).render(
        study=study,
        rater=rater,
        items=items,
        instructions=INSTRUCTIONS,
        source=SOURCE,
        style=style,
        style_hash=_hash_source(style),
        script=script,
        script_hash=_hash_source(script),
        data=_script_data(items, study, rater),
    )
    path.write_text(page, encoding="utf-8", newline="")


def _read_asset(name: str) -> str:
    return resources.files("coreeval.evaluation.annotation").joinpath(name).read_text("utf-8")


def _hash_source(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _script_data(items: Sequence[SheetItem], study: str, rater: str) -> str:
    """Return the data for the page's script, in ASCII and without any `<` that ends its element."""
    told = {
        "study": study,
        "rater": rater,
        "criteria": [{**each.model_dump(), "values": each.values} for each in CRITERIA],
        "items": [_item_data(each) for each in items],
    }
    return json.dumps(told).replace("<", "\\u003c")


def _item_data(each: SheetItem) -> dict[str, object]:
    return {
        "item": each.item,
        "fields": dict(each.fields),
        "question": each.question,
        "label": each.label,
        "meaning": each.meaning,
        "evidence": [one.model_dump() for one in each.evidence],
    }
