"""Files of any form lose what names somebody, or are told of; none of them ends the command."""

import bz2
import gzip
import json
import lzma
import os
import sqlite3
import sys
import tracemalloc
from contextlib import closing
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.comments import Comment
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation

from coreeval.agents.name_finder import TAKEN_DOWN, NameFinder
from coreeval.releases.takedown import documents
from coreeval.releases.takedown.calls import UNREADABLE_FILE, TextMatches
from coreeval.releases.takedown.documents import erase_in_document
from coreeval.releases.takedown.run_rows import erase_rows, find_matches
from coreeval.tools.clock import utc_now
from coreeval.tools.files import write_parquet
from coreeval.tools.stores.run_store import RunStore

NAME = "Jane Q. Example"
FINDER = NameFinder([NAME])
DEEP = "[" * 100_000


def forget(path: Path, *, dry: bool = False) -> list[TextMatches]:
    return [*erase_in_document(path, FINDER, dry=dry)]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_texts_are_blanked_as_they_were_written(tmp_path: Path, name: str, encoding: str) -> None:
    path = tmp_path / name
    text = '{"a": "by Jane\\tQ.\\r\\nExample", "b": "é"}\n' if "json" in name else f"é,{NAME}\n"
    path.write_text(text, encoding)
    (looked,) = forget(path, dry=True)
    assert path.read_text(encoding) == text
    (done,) = forget(path)
    assert (looked, done.count, done.action) == (done, 1, "blanked")
    now = path.read_text(encoding)
    assert "Jane" not in now
    assert "é" in now
    assert TAKEN_DOWN in now


ROWS = [f"{n}\trow {n}\tanger" for n in range(3, 9)]


@pytest.mark.parametrize("delimiter", ["\t", ","])
@pytest.mark.parametrize("cell", ['"What a day she said', '"What a day" she said', '"', '"""'])
def test_a_quotation_mark_that_is_not_closed_costs_no_other_row(
    tmp_path: Path, delimiter: str, cell: str
) -> None:
    path = tmp_path / ("a.tsv" if delimiter == "\t" else "a.csv")
    lines = ["id\ttext\tlabel", f"2\t{cell}\tjoy", *ROWS, f"9\tby {NAME}\tjoy", *ROWS]
    text = "\n".join(lines).replace("\t", delimiter)
    path.write_text(text)
    (found,) = forget(path)
    assert (found.action, found.count) == ("blanked", 1)
    assert path.read_text() == text.replace(f"by {NAME}", TAKEN_DOWN)


def test_lines_between_two_quotation_marks_of_a_file_with_tabs_stay_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    ends = ('1\t"What a day\tjoy', f'9\the: "{NAME}"\tjoy', '10\tsaid "\tjoy')
    text = "\n".join(["id\ttext\tlabel", ends[0], *ROWS, *ends[1:], *ROWS]) + "\n"
    path.write_text(text)
    assert [found.action for found in forget(path)] == ["blanked"]
    assert path.read_text() == text.replace(f'he: "{NAME}"', TAKEN_DOWN)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
def test_quoted_cells_with_several_lines_are_blanked_as_one(
    tmp_path: Path, delimiter: str, end: str
) -> None:
    path = tmp_path / ("a.tsv" if delimiter == "\t" else "a.csv")
    cell = f'"he said, ""by{end}{NAME}""{end}and left"'
    kept = f'"two{end}lines, ""here"""'
    rows = [["id", "text", '"note"'], ["1", cell, "ok"], ["2", kept, '"x"'], [], ["3", "", "y"]]
    text = end.join(map(delimiter.join, rows))
    path.write_text(text, newline="")
    (found,) = forget(path)
    assert (found.action, found.count) == ("blanked", 1)
    assert path.read_bytes().decode() == text.replace(cell, f'"{TAKEN_DOWN}"')


@pytest.mark.parametrize("before", ["", "\n", " \r\n", ";;;;\n", "sep=;\n"])
def test_a_sheet_has_the_separator_that_its_readers_find(tmp_path: Path, before: str) -> None:
    path, row = tmp_path / "sheet.csv", "s1;reject;{};{};abc\n"
    said = row.format(f'"{NAME} complained, loudly"', f"He met {NAME}, the mayor, today")
    path.write_text(f"{before}id;decision;note;text;sha\n{said}", newline="")
    assert [each.count for each in forget(path)] == [2]
    kept = row.format(f'"{TAKEN_DOWN}"', TAKEN_DOWN)
    assert path.read_bytes().decode() == f"{before}id;decision;note;text;sha\n{kept}"


def test_a_table_whose_cells_are_uncertain_is_only_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    text = f'id,text\n1,"two\nlines, by {NAME}"\n2,"open,x\n3,"y"\n'
    path.write_text(text)
    (found,) = forget(path)
    assert (found.action, path.read_text()) == ("reported", text)
    assert "line 2" in found.to_do


def test_values_of_json_that_do_not_name_them_stay_as_they_are(tmp_path: Path) -> None:
    path, packed = tmp_path / "a.json", tmp_path / "a.jsonl.gz"
    keys = '"Jane Q. Example" : 1, "Jane Q Example": 2, "(taken down)": 3'
    text = '{%s, "x": 1, "x": 2, "f": 0.10, "n": 1e400, "t": "\\u004aane Q. Example"}\r\n'
    path.write_text(text % keys, newline="")
    packed.write_bytes(gzip.compress(f'{text % keys}{{"id": 2}}\n'.encode()))
    new = '"(taken down 2)" : 1, "(taken down 3)": 2, "(taken down)": 3'
    expected = text.replace("\\u004aane Q. Example", TAKEN_DOWN) % new
    assert [(found.kind, found.count) for found in forget(path)] == [("texts", 3)]
    assert path.read_bytes().decode() == expected
    (found,) = forget(packed)
    assert (found.kind, found.action, found.count) == ("lines", "blanked", 1)
    assert gzip.decompress(packed.read_bytes()).decode() == f'{expected}{{"id": 2}}\n'


def test_only_answers_that_are_asked_again_are_deleted(tmp_path: Path) -> None:
    """A project may be in a folder that has the name of one with answers."""
    home, run = tmp_path / "numleak" / "pcr" / ".coreeval", tmp_path / "run"
    kept = (home / "reviews" / "x.jsonl", home.parent / "a.jsonl", tmp_path / "pcr" / "x.jsonl.gz")
    gone = (home / "pcr" / "x" / "m.jsonl", home / "numleak" / "x" / "m.jsonl",
            run / "numleak" / "m.jsonl")  # fmt: skip
    for path in (*kept, *gone, run / "run.db"):
        path.parent.mkdir(parents=True, exist_ok=True)
        line = f'{{"verdict": "rejected", "note": "{NAME} complained"}}\n'.encode()
        path.write_bytes(gzip.compress(line) if path.suffix == ".gz" else line)
    for path, action in (
        *((path, "blanked") for path in kept),
        *((path, "deleted") for path in gone),
    ):
        assert [found.action for found in forget(path)] == [action]
    assert b"rejected" in kept[0].read_bytes()
    assert not gone[0].read_bytes()


def test_bytes_that_are_not_utf_8_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"caf\xe9,Jane Q. Example\n")
    (done,) = forget(path)
    assert done.count == 1
    assert path.read_bytes() == b"caf\xe9,(taken down)\n"


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.txt"])
def test_tags_within_a_name_do_not_hide_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = "<b>Jane</b> Q. Example"
    path.write_text(json.dumps({"a": text}) + "\n" if "json" in name else f"x,{text}\n")
    (found,) = forget(path)
    assert found.action == ("reported" if name == "a.txt" else "blanked")


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.csv", "Jane Q.,Example\n"), ("a.json", '["Jane Q.","Example"]'),
     ("a.jsonl", '["Jane Q.","Example"]\n')],
)  # fmt: skip
def test_a_name_across_values_is_told(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    (found,) = forget(path)
    assert (found.action, path.read_text()) == ("reported", text)
    assert "across values" in found.to_do


def test_names_of_files_and_members_are_told(tmp_path: Path) -> None:
    path, packed = tmp_path / "jane-q-example.csv", tmp_path / "a.zip"
    path.write_text(f"{NAME}\n")
    with ZipFile(packed, "w") as file:
        file.writestr("notes/jane_q_example.txt", "x")
    assert [found.kind for found in forget(path)] == ["texts", "name of a file"]
    (found,) = forget(packed)
    assert (found.action, found.count) == ("reported", 1)


@pytest.mark.parametrize("name", ["a.zip", "a.jsonl.gz"])
def test_a_packed_file_in_a_packed_file_is_told(tmp_path: Path, name: str) -> None:
    path, inside = tmp_path / name, gzip.compress(f"{NAME}\n".encode())
    if name == "a.zip":
        with ZipFile(path, "w", ZIP_DEFLATED) as file:
            file.writestr("x.txt.gz", inside)
    else:
        path.write_bytes(gzip.compress(inside))
    (found,) = forget(path)
    assert (found.kind, "unpack it" in found.to_do) == (UNREADABLE_FILE, True)


def test_texts_in_a_binary_column_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": pa.array([f"by {NAME}".encode(), b"x"], pa.binary())}), path)
    (found,) = forget(path)
    assert (found.action, found.count) == ("reported", 1)


def test_deep_json_is_told_and_a_deep_line_goes(tmp_path: Path) -> None:
    path, lines = tmp_path / "a.json", tmp_path / "a.jsonl"
    path.write_text(f'{DEEP}"{NAME}"')
    lines.write_text(f'{DEEP}"{NAME}"\n{{"a": 1}}\n')
    (found,) = forget(path)
    assert (found.kind, found.action) == ("file that cannot be read", "reported")
    (found,) = forget(lines)
    assert (found.count, lines.read_text()) == (1, '{"a": 1}\n')


def test_a_verdict_with_deep_json_as_its_reason_is_blanked(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    RunStore.open(path, now=utc_now).close()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("PRAGMA foreign_keys=OFF")
        file.execute("INSERT INTO bad_rows (file, line, reason, text) VALUES ('f', 1, 'r', ?)",
                     (f'{DEEP}"{NAME}"',))  # fmt: skip
    erase_rows(path, find_matches(path, FINDER))
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT text FROM bad_rows").fetchall() == [(TAKEN_DOWN,)]


def _odd_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("CREATE TABLE t (a)")
        file.execute("INSERT INTO t VALUES (?)", ("x" * 20_000,))
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    path.write_bytes(content)


def test_odd_files_are_told_and_do_not_end_the_command(tmp_path: Path) -> None:
    damaged, pipe, packed = tmp_path / "a.db", tmp_path / "pipe", tmp_path / "a.gz"
    _odd_database(damaged)
    os.mkfifo(pipe)
    packed.write_bytes(b"\x1f\x8b\x07\0" + b"\0" * 20)
    others = {"a.csv.bz2": bz2.compress(NAME.encode()), "a.tar.xz": lzma.compress(NAME.encode())}
    others |= {"a.feather": b"ARROW1\0\0" + NAME.encode(), "a.json": f'["{NAME}",'.encode()}
    for name, content in others.items():
        (tmp_path / name).write_bytes(content)
    odd = (damaged, pipe, packed, tmp_path / "not-there", *(tmp_path / name for name in others))
    for path in odd:
        (found,) = forget(path)
        assert (found.kind, found.action) == ("file that cannot be read", "reported")


def test_a_table_with_a_quote_in_its_name_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as file, file:
        file.execute('CREATE TABLE "t""t" (a)')
        file.execute('INSERT INTO "t""t" VALUES (?)', (NAME,))
    (found,) = forget(path)
    assert (found.kind, found.action, found.count) == ("file", "reported", 1)


def test_a_long_line_of_a_packed_file_is_told_within_bounds(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(f'"{NAME} '.encode())
        for _ in range(300):
            file.write(b"a" * (1 << 20))
    tracemalloc.start()
    (found,) = forget(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.action == "reported"
    assert "characters" in found.to_do
    assert most < 200 << 20


def test_a_file_that_unpacks_to_too_much_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MOST_UNPACKED", 1000)
    lines, packed = tmp_path / "a.jsonl.gz", tmp_path / "a.zip"
    lines.write_bytes(gzip.compress(b"{}\n" * 1000))
    with ZipFile(packed, "w", ZIP_DEFLATED) as file:
        file.writestr("a", "{}\n" * 1000)
    write_parquet(table := tmp_path / "a.parquet", {"text": "string"}, [{"text": "{}"}] * 1000)
    for path in (lines, packed, table):
        (found,) = forget(path)
        assert (found.kind, "1,000" in found.to_do) == ("file that cannot be read", True)


# -- workbooks ------------------------------------------------------------------------------------


def members(path: Path) -> bytes:
    with ZipFile(path) as packed:
        return b"\n".join(packed.read(name) for name in packed.namelist())


def test_a_workbook_keeps_the_name_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    book = Workbook()
    page = book.active
    assert page is not None
    page.append(["item", NAME, "fine"])
    page["B1"].hyperlink = "https://example.org/jane-q-example"
    page["C1"].hyperlink = "https://example.org/jane-q-example"
    page["A2"] = "x"
    page["A2"].comment = Comment("well", NAME)
    page.title = NAME
    assert page.oddHeader is not None
    page.oddHeader.center.text = f"of {NAME}"
    choice = DataValidation(type="list", formula1=f'"{NAME},x"')
    choice.add("D1")
    page.add_data_validation(choice)
    other = DataValidation(type="list", formula1='"1,2"')
    other.add("E1")
    page.add_data_validation(other)
    book.defined_names["own"] = DefinedName("own", attr_text=f"'{NAME}'!$A$1")
    book.properties.creator = book.properties.lastModifiedBy = NAME
    book.save(path)
    assert members(path).count(b"Jane") == 8
    (looked,) = forget(path, dry=True)
    (done,) = forget(path)
    assert (looked.count, looked.action) == (done.count, "blanked")
    assert done.count == 9
    now = members(path)
    assert b"Jane" not in now
    assert b"jane" not in now
    left = load_workbook(path).worksheets[0]
    assert [cell.value for cell in left[1]][:3] == ["item", TAKEN_DOWN, "fine"]
    assert [each.formula1 for each in left.data_validations.dataValidation] == ['"1,2"']
    assert not forget(path)


def test_what_a_workbook_still_has_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    book = Workbook()
    page = book.active
    assert page is not None
    page["A1"] = NAME
    page.auto_filter.ref = "A1:A2"
    page.auto_filter.add_filter_column(0, [NAME])
    book.save(path)
    assert [found.action for found in forget(path)] == ["blanked", "reported"]


@pytest.mark.parametrize(
    "inside",
    [
        "<sheetData>"
        + "".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 30_000))
        + "</sheetData>",
        '<sheetData/><mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>',
        '<sheetData/><hyperlinks><hyperlink ref="A:XFD" location="x"/></hyperlinks>',
    ],
    ids=["rows to the last column", "merged", "linked"],
)
def test_a_workbook_that_claims_billions_of_cells_is_told(tmp_path: Path, inside: str) -> None:
    path, plain = tmp_path / "a.xlsx", tmp_path / "plain.xlsx"
    book = Workbook()
    assert book.active is not None
    book.active["A1"] = "sheet"
    book.properties.creator = NAME
    book.save(plain)
    kind = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with ZipFile(plain) as old, ZipFile(path, "w", ZIP_DEFLATED) as new:
        for name in old.namelist():
            page = f'<worksheet xmlns="{kind}">{inside}</worksheet>'.encode()
            new.writestr(name, page if name.endswith("sheet1.xml") else old.read(name))
    (found,) = forget(path)
    if "row" in inside:  # few cells: only what is between them would be billions
        assert (found.action, found.count) == ("blanked", 1)
    else:
        assert (found.action, "cells" in found.to_do) == ("reported", True)


def test_a_workbook_without_the_package_for_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Workbook()
    book.properties.creator = NAME
    book.save(tmp_path / "a.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (found,) = forget(tmp_path / "a.xlsx")
    assert (found.action, "coreeval[sheets]" in found.to_do) == ("reported", True)
