"""Files of text that name somebody: tables, JSON, sheets, pages; and what is only told of others.

A file is written anew as a whole or not at all.
"""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from coreeval.releases.forgetting.databases import MAGIC
from coreeval.releases.forgetting.found import Found
from coreeval.releases.forgetting.names import TAKEN_DOWN, Finder
from coreeval.tools.files import replacing, write_text

_GZIP, _ZIP, _PARQUET = b"\x1f\x8b", b"PK", b"PAR1"
_PIECE = 1 << 20
"""Characters of a line that are read at once."""
_TAIL = 256
"""Characters before a line that are looked at with it: a name may be broken over two."""
_TAG = re.compile(r"<[^>]{0,500}>")
_BOM = "\ufeff"
_TABLES = (".csv", ".tsv")
UNREADABLE = (ValueError, csv.Error, BadZipFile, zlib.error, EOFError, KeyError, SyntaxError)
"""What the readers of tables, JSON, workbooks, Parquet and packed files raise for damaged ones."""
REMADE = ("pcr", "numleak")
"""Folders of files that a command writes anew: there a line that names somebody goes."""
Blanker = Callable[[Path, Finder], int]


def count_in(path: Path, finder: Finder) -> int:
    """Return how many rows, lines or cells of a file name somebody."""
    with path.open("rb") as file:
        start = file.read(16)
    if start.startswith(_PARQUET):
        return _count_parquet(path, finder)
    if start.startswith(MAGIC):
        return _count_database(path, finder)
    if start.startswith(_ZIP) and path.suffix.casefold() == ".xlsx":
        return sum(1 for _ in _cells(_workbook(path), finder))
    if start.startswith(_ZIP):
        return _count_zip(path, finder)
    if path.suffix.casefold() in _TABLES:
        return sum(finder.finds(cell) for row in _Table(path) for cell in row)
    with _opened(path) as lines:
        return _count_lines(lines, finder)


def forget_in_document(path: Path, finder: Finder, *, dry: bool) -> Iterator[Found]:
    """Take somebody out of a file, if it has a form of which that can be said; else tell of it."""
    try:
        yield from _forget(path, finder, dry=dry)
    except UNREADABLE as error:
        yield unreadable(path, error)


def unreadable(path: Path, error: Exception) -> Found:
    """Return what is told of a file that may name somebody or not."""
    return Found(
        kind="file that cannot be read",
        path=path,
        count=1,
        action="reported",
        to_do=f"look into it yourself ({error}), and delete it if it names them",
    )


def _forget(path: Path, finder: Finder, *, dry: bool) -> Iterator[Found]:
    count = count_in(path, finder)
    if not count:
        return
    suffix, blank = path.suffix.casefold(), _blanker(path)
    if blank is None and not _is_ours_to_delete(path):
        yield Found(
            kind="file",
            path=path,
            count=count,
            action="reported",
            to_do="see to it yourself: it is not of a form that can be cleaned",
        )
        return
    if blank is None:
        if not dry:
            path.unlink()
        yield Found(kind=f"file {suffix}".strip(), path=path, count=1, action="deleted")
        return
    if not dry:
        count = blank(path, finder)
    dropped = blank is _drop_lines
    yield Found(
        kind="lines" if dropped or suffix == ".jsonl" else "texts",
        path=path,
        count=count,
        action="deleted" if dropped else "blanked",
    )


def _is_ours_to_delete(path: Path) -> bool:
    """Tell whether a file is a page that can be made again, or what a killed process left."""
    return path.suffix.casefold() == ".html" or (
        path.name.startswith(".") and path.suffix == ".tmp"
    )


def _blanker(path: Path) -> Blanker | None:
    suffixes = [each.casefold() for each in path.suffixes]
    if suffixes[-2:] == [".jsonl", ".gz"]:
        return _drop_lines
    match suffixes[-1:]:
        case [".jsonl"]:
            return _drop_lines if {*REMADE} & {*path.parts} else _blank_lines
        case [".json"]:
            return _blank_json
        case [".csv"] | [".tsv"]:
            return _blank_cells
        case [".xlsx"]:
            return _blank_workbook
    return None


# -- reading --------------------------------------------------------------------------------------


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    """Open a file of text, packed by gzip or not; bytes that are none cost a character."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    opener: Any = gzip.open if packed else open
    with opener(path, "rt", encoding="utf-8", errors="replace", newline="") as lines:
        yield lines


def _count_lines(lines: IO[str], finder: Finder) -> int:
    """Count the lines that name somebody, tags left out or not; a long one in parts."""
    count, before = 0, ""
    while part := lines.readline(_PIECE):
        whole = before + part
        named = finder.finds(whole) or ("<" in whole and finder.finds(_TAG.sub("", whole)))
        count += named
        before = "" if named else whole[-_TAIL:]
    return count


class _Table:
    """The rows of a table of text, and how they are written."""

    def __init__(self, path: Path) -> None:
        text = path.read_bytes().decode("utf-8", "replace")
        self.mark = _BOM if text.startswith(_BOM) else ""
        self._text = text.removeprefix(_BOM)
        first = self._text.partition("\n")[0]
        self.delimiter = max(",;\t", key=first.count)
        self.end = "\r\n" if "\r\n" in text else "\n"

    def __iter__(self) -> Iterator[list[str]]:
        return csv.reader(io.StringIO(self._text, newline=""), delimiter=self.delimiter)


def _count_parquet(path: Path, finder: Finder) -> int:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    with pq.ParquetFile(path) as file:
        batches = file.iter_batches(batch_size=1000)
        return sum(finder.finds_in(row) for batch in batches for row in batch.to_pylist())


def _count_database(path: Path, finder: Finder) -> int:
    from coreeval.releases.forgetting.databases import opened

    count = 0
    with opened(path, dry=True) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for row in database.execute(f'SELECT * FROM "{table}"'):
                texts = (each.decode(errors="replace") if isinstance(each, bytes) else str(each)
                         for each in row)  # fmt: skip
                count += any(map(finder.finds, texts))
    return count


def _count_zip(path: Path, finder: Finder) -> int:
    with ZipFile(path) as packed:
        count = 0
        for name in packed.namelist():
            with packed.open(name) as member:
                lines = io.TextIOWrapper(member, "utf-8", errors="replace", newline="")
                count += _count_lines(lines, finder)
        return count


# -- writing --------------------------------------------------------------------------------------


def _blank_json(path: Path, finder: Finder) -> int:
    value = json.loads(path.read_text(encoding="utf-8"))
    count = _count_texts(value, finder)
    write_text(path, json.dumps(finder.blanked(value), indent=2, ensure_ascii=False) + "\n")
    return count


def _count_texts(value: object, finder: Finder) -> int:
    if isinstance(value, str):
        return int(finder.finds(value))
    if isinstance(value, dict):
        return sum(_count_texts(part, finder) for pair in value.items() for part in pair)
    return sum(_count_texts(each, finder) for each in value) if isinstance(value, list) else 0


def _blank_lines(path: Path, finder: Finder) -> int:
    return _rewrite_lines(path, finder, _blank_line)


def _drop_lines(path: Path, finder: Finder) -> int:
    return _rewrite_lines(path, finder, lambda _line, _finder: "")


def _blank_line(line: str, finder: Finder) -> str:
    try:
        return json.dumps(finder.blanked(json.loads(line)), ensure_ascii=False) + "\n"
    except ValueError:
        return ""


def _rewrite_lines(path: Path, finder: Finder, change: Callable[[str, Finder], str]) -> int:
    count = 0
    packed = path.suffix.casefold() == ".gz"
    with _opened(path) as lines, replacing(path) as draft:
        opener: Any = gzip.open if packed else open
        with opener(draft, "wt", encoding="utf-8", newline="") as written:
            for line in lines:
                named = finder.finds(line)
                count += named
                written.write(change(line, finder) if named else line)
    return count


def _blank_cells(path: Path, finder: Finder) -> int:
    """Blank the cells of a table; the others stay what they were, their quotes may not."""
    table, count = _Table(path), 0
    made = io.StringIO(newline="")
    writer = csv.writer(made, delimiter=table.delimiter, lineterminator=table.end)
    for row in table:
        named = [finder.finds(cell) for cell in row]
        count += sum(named)
        cells = zip(row, named, strict=True)
        writer.writerow([TAKEN_DOWN if is_named else cell for cell, is_named in cells])
    with replacing(path) as draft:
        draft.write_text(table.mark + made.getvalue(), encoding="utf-8", newline="")
    return count


def _workbook(path: Path) -> Any:  # noqa: ANN401 - openpyxl's
    from openpyxl import load_workbook

    return load_workbook(path)


def _cells(book: Any, finder: Finder) -> Iterator[Any]:  # noqa: ANN401
    """Yield the cells that name somebody, or whose comments do."""
    for page in book.worksheets:
        for row in page.iter_rows():
            for cell in row:
                said = str(cell.comment.text) if cell.comment else ""
                if finder.finds(f"{cell.value or ''}\n\n{said}"):
                    yield cell


def _blank_workbook(path: Path, finder: Finder) -> int:
    book, count = _workbook(path), 0
    for cell in _cells(book, finder):
        cell.value, cell.comment = TAKEN_DOWN, None
        count += 1
    with replacing(path) as draft:
        book.save(draft)
    return count
