"""Sheets go out in three forms and come back; nothing in them can act, and nothing is lost."""

import csv
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZipFile

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.chart import BarChart

from coreeval.errors import UsageError
from coreeval.evaluation.annotation import sheets
from coreeval.evaluation.annotation.criteria import LABEL_STUDY
from coreeval.evaluation.annotation.rating_study import NewsExcerpt
from coreeval.evaluation.annotation.ratings import SheetRow
from coreeval.evaluation.annotation.sheet_page import write_sheet_page
from coreeval.evaluation.annotation.sheets import (
    SheetItem,
    list_columns,
    read_sheets,
    write_sheet_csv,
    write_sheet_xlsx,
)

HOSTILE = "=HYPERLINK(\"http://x\")</script><script>alert('x')</script>\x00\x1b"
ITEMS = [
    SheetItem(
        item=f"abc123-00{n}",
        fields={"premise": text, "hypothesis": f"+{n}"} if n == 2 else {"text": text},
        question="What?",
        label=HOSTILE,
        meaning="@mean",
        evidence=(
            NewsExcerpt(
                published_at="2026-11-02T00:00:00+00:00",
                domain="-x",
                url="javascript:alert(1)",
                snippet=HOSTILE,
            ),
        ),
    )
    for n, text in enumerate((HOSTILE, "plain", "two"))
]
GIVEN = (("3", "2", "1", "0"), ("1", "1", "", "1"), ("2", "3", "0", "1"))
"""What a rater says of the items; one rating is left open."""


def fill_csv(path: Path, separator: str = ",", encoding: str = "utf-8-sig") -> None:
    """Fill a sheet in and save it as a spreadsheet would."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    for row, given in zip(rows, GIVEN, strict=True):
        row[header.index("fluency") : header.index("note")] = given
        row[-1] = "-note"
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=separator).writerows([header, *rows])


def fill_xlsx(path: Path) -> None:
    book = load_workbook(path)
    page = book["ratings"]
    columns = list_columns(LABEL_STUDY)
    for number, given in enumerate(GIVEN, start=2):
        for name, value in zip(LABEL_STUDY.columns, given, strict=True):
            page.cell(number, columns.index(name) + 1).value = int(value) if value else None
        page.cell(number, len(columns)).value = "-note"
    book.save(path)


def said(rows: list[SheetRow]) -> list[tuple[object, ...]]:
    return [(row.item, row.rater, *row.cells.values(), row.note) for row in rows]


EXPECTED = [
    (each.item, "rater-1", *given, "-note") for each, given in zip(ITEMS, GIVEN, strict=True)
]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8"])
def test_csv_there_and_back(tmp_path: Path, separator: str, encoding: str) -> None:
    path = tmp_path / "rater-1.csv"
    write_sheet_csv(path, ITEMS, study="abc123", rater="rater-1")
    fill_csv(path, separator, encoding)
    rows = list(read_sheets([path]))
    assert said(rows) == EXPECTED
    assert rows[0].where == "rater-1.csv, line 2"


def test_xlsx_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "rater-1.xlsx"
    write_sheet_xlsx(path, ITEMS, study="abc123", rater="rater-1")
    fill_xlsx(path)
    assert said(list(read_sheets([path]))) == EXPECTED


def test_a_blank_row_above_the_header_of_a_workbook_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "rater-1.xlsx"
    write_sheet_xlsx(path, ITEMS, study="abc123", rater="rater-1")
    fill_xlsx(path)
    book = load_workbook(path)
    book["ratings"].insert_rows(1)
    book.save(path)
    rows = list(read_sheets([path]))
    assert said(rows) == EXPECTED
    assert rows[0].where == "rater-1.xlsx, line 3"


def test_a_workbook_offers_the_values_and_holds_the_guideline(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    write_sheet_xlsx(path, ITEMS, study="abc123", rater="rater-1")
    book = load_workbook(path)
    offers = {
        str(one.sqref): one.formula1 for one in book["ratings"].data_validations.dataValidation
    }
    assert offers == {
        "G2:G4": '"1,2,3"',
        "H2:H4": '"1,2,3"',
        "I2:I4": '"0,1"',
        "J2:J4": '"0,1"',
    }
    told = "\n".join(str(row[0].value) for row in book["guideline"].iter_rows())
    for words in ("abc123", "fluency: Is the language", "0: The label does not fit", "Table 13"):
        assert words in told


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    write_sheet_csv(tmp_path / "a.csv", ITEMS, study="abc123", rater="rater-1")
    with (tmp_path / "a.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
    write_sheet_xlsx(tmp_path / "a.xlsx", ITEMS, study="abc123", rater="rater-1")
    with ZipFile(tmp_path / "a.xlsx") as packed:
        sheet = packed.read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in sheet
    cell = load_workbook(tmp_path / "a.xlsx")["ratings"]["C2"]
    assert (cell.data_type, cell.quotePrefix) == ("s", True)
    assert str(cell.value).startswith("=HYPERLINK") and "\ufffd" in str(cell.value)


def test_only_the_columns_that_are_read_need_to_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Rater;Item;accuracy;factuality;coherence;fluency\nann;i1;1;1;3\n\n;;;;;\n")
    [row] = read_sheets([path])
    assert (row.item, row.rater, row.cells["accuracy"], row.cells["fluency"]) == (
        "i1",
        "ann",
        "1",
        "",
    )


# -- mistakes -----------------------------------------------------------------------------------


def _bomb(path: Path) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as packed:
        packed.writestr("xl/workbook.xml", b" " * 2_000)


def _lzma(path: Path) -> None:
    with ZipFile(path, "w", ZIP_LZMA) as packed:
        packed.writestr("xl/workbook.xml", b"<workbook/>")


def _chart(path: Path, *, alone: bool = False) -> None:
    """Write a workbook whose sheet of ratings is a chart."""
    book = Workbook()
    book.create_chartsheet("ratings").add_chart(BarChart())
    if alone:
        book.remove(book.worksheets[0])
    book.save(path)


def _chart_without_parts(path: Path) -> None:
    """Write one as openpyxl cannot read it: it expects a drawing."""
    book = Workbook()
    book.create_chartsheet("ratings")
    book.save(path)


def _other(path: Path) -> None:
    book = Workbook()
    book.worksheets[0].append(["a", "b"])
    book.save(path)


@pytest.mark.parametrize(
    ("name", "make", "told"),
    [
        (
            "a.ods",
            lambda path: path.write_text(""),
            "a file that ends in '.ods' is not a rating sheet",
        ),
        ("a", lambda path: path.write_text(""), "this is not a rating sheet"),
        ("a.csv", lambda path: path.write_text(""), "not have exactly one 'item' column"),
        ("a.csv", lambda path: path.write_text("item,rater,fluency\n"), "'coherence' column"),
        ("a.csv", lambda path: path.write_bytes("item,é".encode("cp1252")), "not UTF-8"),
        ("a.csv", lambda path: path.write_text('item,"rater\n'), "unexpected end of data"),
        ("a.csv", lambda path: None, "No such file"),
        ("a.xlsx", lambda path: path.write_text("item"), "not a zip file"),
        ("a.xlsx", lambda path: None, "No such file"),
        ("a.xlsx", _bomb, "unpacks to 2,000 bytes"),
        ("a.xlsx", _other, "not have exactly one 'item' column"),
        ("a.xlsx", _lzma, "compressed with method 14"),
        ("a.xlsx", _chart, "not have exactly one 'item' column"),
        ("a.xlsx", partial(_chart, alone=True), "no sheet of cells"),
        ("a.xlsx", _chart_without_parts, "no attribute 'find'"),
    ],
)
def test_what_is_no_sheet(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    make: Callable[[Path], object],
    told: str,
) -> None:
    if make is _bomb:
        monkeypatch.setattr(sheets, "MOST_BYTES", 1_000)
    make(tmp_path / name)
    with pytest.raises(UsageError) as error:
        list(read_sheets([tmp_path / name]))
    assert told in error.value.message
    assert error.value.where == str(tmp_path / name) and error.value.hint


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_a_sheet_without_end_is_left_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / name
    write = write_sheet_csv if name == "a.csv" else write_sheet_xlsx
    write(path, ITEMS, study="abc123", rater="rater-1")
    monkeypatch.setattr(sheets, "_MOST_ROWS", 4)
    assert len(list(read_sheets([path]))) == len(ITEMS)
    monkeypatch.setattr(sheets, "_MOST_ROWS", 3)
    with pytest.raises(UsageError, match="more than 3 rows"):
        list(read_sheets([path]))


def test_a_text_that_many_cells_share_counts_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.xlsx"
    book = Workbook()
    page = book.create_sheet("ratings", 0)
    page.append(("item", "rater", *(each.name for each in LABEL_STUDY.criteria), "note"))
    for _ in range(50):
        page.append(("abc123-001", "Ada", *("4" for _ in LABEL_STUDY.criteria), "x" * 3_000))
    book.save(path)
    monkeypatch.setattr(sheets, "MOST_BYTES", 100_000)
    # openpyxl writes a text into each cell; other programs write it once, below the limit
    monkeypatch.setattr(sheets, "_refuse_bomb", lambda *_: None)
    with pytest.raises(UsageError, match="its cells have more than 100,000 characters"):
        list(read_sheets([path]))


def test_a_text_that_no_cell_can_hold(tmp_path: Path) -> None:
    long = SheetItem(**{**vars(ITEMS[1]), "fields": {"text": "x" * 32_768}})
    with pytest.raises(UsageError, match=r"abc123-001 has 32,768 characters"):
        write_sheet_xlsx(tmp_path / "a.xlsx", [long], study="abc123", rater="rater-1")


# -- the page -----------------------------------------------------------------------------------


def test_the_page_fetches_nothing_and_no_text_can_end_its_script(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    write_sheet_page(path, ITEMS, study="abc123", rater="<b>")
    page = path.read_text()
    assert page.count("<script") == page.count("</script") == 2
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert not re.search(r"(?:\bsrc=|@import|\burl\(|\bfetch\b|XMLHttpRequest)", page)
    assert "default-src 'none'" in page
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data
    told = json.loads(data[1])
    assert [each["item"] for each in told["items"]] == [each.item for each in ITEMS]
    assert told["items"][0]["fields"] == {"text": HOSTILE}
