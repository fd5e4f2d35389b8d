"""Erases names from workbooks (XLSX): cells, links, comments, sheet names and properties."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate
from zipfile import ZipFile

from coreeval.agents.name_finder import TAKEN_DOWN, NameFinder
from coreeval.evaluation.annotation.sheets import MOST_BYTES
from coreeval.tools.files import replacing

_MOST_CELLS = 1_000_000
"""The most cells, including those of merged ranges and links, which openpyxl creates one by one."""
_ALL_COLUMNS, _ALL_ROWS = 16_384, 1_048_576
_RANGES = ("mergeCell", "hyperlink", "comment")
"""Elements for which openpyxl creates every cell of the range."""
_MARGINS = ("oddHeader", "oddFooter", "evenHeader", "evenFooter", "firstHeader", "firstFooter")


def blank_workbook(path: Path, finder: NameFinder, *, dry: bool) -> int:
    """Blank everything in a workbook that names a person, and return the number of changes.

    Raises:
        ValueError: it unpacks to more than the search limit, is damaged, or openpyxl is missing.
    """
    try:
        from openpyxl import load_workbook
    except ModuleNotFoundError:
        raise ValueError("workbooks need: pip install 'coreeval[sheets]'") from None

    _refuse_bomb(path)
    with path.open("rb") as file:  # openpyxl does not close files that it cannot read
        book = load_workbook(file)
    count = sum(1 for _ in _changes(book, finder))
    if count and not dry:
        with replacing(path) as draft:
            book.save(draft)
    return count


def _refuse_bomb(path: Path) -> None:
    with ZipFile(path) as packed:
        if sum(member.file_size for member in packed.infolist()) > MOST_BYTES:
            raise ValueError(f"it unpacks to more than {MOST_BYTES:,} bytes")
        cells = 0
        for name in packed.namelist():
            for number in _cells_of(packed, name):
                cells += number
                if cells > _MOST_CELLS:
                    raise ValueError(f"it has more than {_MOST_CELLS:,} cells")


def _cells_of(packed: ZipFile, name: str) -> Iterator[int]:
    """Yield the number of cells in each chunk of a member; nothing after invalid XML."""
    numbers: list[int] = []

    def begin(element: str, attributes: dict[str, str]) -> None:
        plain = element.rpartition(":")[2]
        if plain == "c":
            numbers.append(1)
        elif plain in _RANGES:
            numbers.append(_area(attributes.get("ref", "A1")))

    parser = ParserCreate()
    parser.StartElementHandler = begin
    with packed.open(name) as member:
        while piece := member.read(1 << 16):
            try:
                parser.Parse(piece)
            except ExpatError:
                return
            yield sum(numbers)
            numbers.clear()


def _area(ref: str) -> int:
    from openpyxl.utils import range_boundaries

    left, top, right, bottom = range_boundaries(ref)
    columns = (right or _ALL_COLUMNS) - (left or 1) + 1
    return int(columns * ((bottom or _ALL_ROWS) - (top or 1) + 1))


# -- changing -------------------------------------------------------------------------------------


def _changes(book: Any, finder: NameFinder) -> Iterator[str]:  # noqa: ANN401 - openpyxl's
    """Blank the matches in turn, and yield the kind of each."""
    for name in book.properties.__elements__:
        if finder.finds(str(getattr(book.properties, name) or "")):
            setattr(book.properties, name, None)
            yield "property"
    for own in [*book.custom_doc_props]:
        if _matches_name(finder, own.name, own.value):
            del book.custom_doc_props[own.name]
            yield "property"
    yield from _drop_definitions(book.defined_names, finder)
    for page in book.worksheets:
        yield from _page_changes(page, finder)


def _page_changes(page: Any, finder: NameFinder) -> Iterator[str]:  # noqa: ANN401
    for cell in [*page._cells.values()]:  # iter_rows would create every cell between them
        if _blank_cell(cell, finder):
            yield "cell"
    if finder.finds(page.title):
        page.title = TAKEN_DOWN
        yield "title"
    yield from _margin_changes(page, finder)
    yield from _drop_choices(page.data_validations, finder)
    for name, table in [*page.tables.items()]:
        if _matches_name(finder, name, table.displayName, *table.column_names):
            del page.tables[name]
            yield "table"
    yield from _drop_definitions(page.defined_names, finder)


def _margin_changes(page: Any, finder: NameFinder) -> Iterator[str]:  # noqa: ANN401
    for margin in (getattr(page, name) for name in _MARGINS):
        for part in (margin.left, margin.center, margin.right):
            if finder.finds(part.text or ""):
                part.text = None
                yield "margin"


def _drop_choices(choices: Any, finder: NameFinder) -> Iterator[str]:  # noqa: ANN401
    """Remove the data validations whose lists or messages match, and yield the kind of each."""
    for choice in [*choices.dataValidation]:
        told = (choice.prompt, choice.promptTitle, choice.error, choice.errorTitle)
        if _matches_name(finder, choice.formula1, choice.formula2, *told):
            choices.dataValidation.remove(choice)
            yield "validation"


def _drop_definitions(defined: dict[str, Any], finder: NameFinder) -> Iterator[str]:
    for name, definition in [*defined.items()]:
        if _matches_name(
            finder, name, definition.attr_text, definition.comment, definition.description
        ):
            del defined[name]
            yield "defined name"


def _blank_cell(cell: Any, finder: NameFinder) -> bool:  # noqa: ANN401
    """Blank a matching cell with its link and comment, or only a matching link or comment."""
    value, link, comment = cell.value, cell.hyperlink, cell.comment
    said = getattr(value, "text", value)
    by_link = link and _matches_name(finder, link.target, link.location, link.tooltip, link.display)
    by_comment = comment and _matches_name(finder, comment.text, comment.author)
    by_value = said is not None and finder.finds(str(said))
    if by_value:
        cell.value = TAKEN_DOWN
    if link and (by_value or by_link):
        cell.hyperlink = None
    if comment and (by_value or by_comment):
        cell.comment = None
    return bool(by_value or by_link or by_comment)


def _matches_name(finder: NameFinder, *texts: object) -> bool:
    return any(finder.finds(str(text)) for text in texts if text)
