"""Erases names from text files: tables, JSON, sheets, pages; other files are only reported.

A file is rewritten as a whole, or not at all.
"""

import codecs
import csv
import gzip
import io
import json
import lzma
import re
import sqlite3
import stat
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol
from zipfile import BadZipFile, ZipFile

from coreeval.agents.name_finder import TAKEN_DOWN, NameFinder
from coreeval.errors import CoreEvalError, RunCorrupt, RunError, UsageError
from coreeval.releases.takedown.calls import (
    SQLITE_MAGIC,
    UNREADABLE_FILE,
    TextMatches,
    open_database,
)
from coreeval.releases.takedown.workbooks import blank_workbook
from coreeval.tools.files import read_parquet_parts, replacing
from coreeval.tools.text import find_separator
from coreeval.tools.workspace import has_asked_answers

_GZIP, _ZIP, _PARQUET = b"\x1f\x8b", b"PK", b"PAR1"
_NOT_UNPACKED = (
    b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"7z\xbc\xaf", b"Rar!",
    b"ARROW1", b"FEA1",
)  # fmt: skip
"""Signatures of bzip2, xz, zstd, LZ4, 7-Zip, RAR, Arrow and Feather files, which are only
reported."""
_NOT_LINES = (_GZIP, _ZIP + b"\x03\x04", _PARQUET, *_NOT_UNPACKED)
"""Signatures of files in which texts are not lines, if they are themselves in a packed file."""
_PACKED_TWICE = "a packed file in it cannot be searched: unpack it"
_PIECE = 1 << 20
"""Characters of a line read at a time."""
_TAIL = 256
"""Characters before a piece that are searched with it, because a name may span two pieces."""
MOST_UNPACKED = 4 << 30
"""The most characters or bytes of a packed file that are searched (own choice)."""
_MOST_LINE = 16 << 20
"""The most characters of a line that is changed (own choice)."""
_MOST_WHOLE = 128 << 20
"""The most bytes of a table or JSON file, which is read as a whole to be changed (own choice)."""
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}
"""Byte order marks with their encodings, longest first."""
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
"""A virtual table has no pages of its own; its texts are in other tables."""
_STORED = "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0"
"""The columns of a table without those that SQLite computes."""
_MOST_S, _FEWEST_PER_S = 60, 1 << 20
"""The most seconds in which a database is searched, and the bytes of it that take another second
(own choice): a file may be made to have endless rows."""
_STEPS = 100_000
"""The steps of SQLite between two looks at the clock, and at Ctrl-C."""
MALFORMED = (
    ValueError, LookupError, TypeError, AttributeError, RuntimeError, EOFError, SyntaxError,
    csv.Error, BadZipFile, zlib.error, lzma.LZMAError, struct.error,
)  # fmt: skip
"""Errors that readers of tables, JSON, workbooks, Parquet and packed files raise for malformed
files, such as JSON nested too deeply or an unknown compression."""
DAMAGED = (*MALFORMED, RunCorrupt, UsageError)
"""Errors caused by a damaged place. A full disk or another process raises other errors; the command
can then be repeated later."""
UNREADABLE = (*MALFORMED, OSError, sqlite3.Error, RunError)
"""Errors that reading any file may raise, including databases and disks."""


class Changer(Protocol):
    """A function that changes a file and returns the number of changes; a dry run only counts."""

    def __call__(self, path: Path, finder: NameFinder, *, dry: bool) -> int:
        """Remove the names from the file, and return the number of changes."""
        ...


def count_matches(path: Path, finder: NameFinder) -> int:
    """Count the rows or lines of a file that name a person, or the members with such a name.

    Raises:
        UNREADABLE: the file cannot be read, or unpacks to more than the search limit.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        start = file.read(16)
    if start.startswith(_PARQUET):
        return _count_parquet(path, finder)
    if start.startswith(SQLITE_MAGIC):
        return _count_database(path, finder)
    if start.startswith(_ZIP):
        return _count_zip(path, finder)
    if start.startswith(_NOT_UNPACKED):
        raise ValueError("it is packed in an unsupported format")
    with _open_text(path) as lines:
        count = _count_lines(lines, finder)
    if start.startswith(_GZIP) and not count:
        with gzip.open(path) as packed:
            if packed.read(16).startswith(_NOT_LINES):
                raise ValueError(_PACKED_TWICE)
    return count


def erase_in_document(path: Path, finder: NameFinder, *, dry: bool) -> Iterator[TextMatches]:
    """Erase the names from a file if its format allows it; otherwise report the file."""
    try:
        yield from _erase(path, finder, dry=dry)
    except UNREADABLE as error:
        yield report_unreadable(path, error)
    if finder.finds(path.name) and path.exists():
        to_do = "rename it, or delete it"
        yield TextMatches(kind="name of a file", path=path, count=1, action="reported", to_do=to_do)


def report_unreadable(path: Path, error: Exception) -> TextMatches:
    """Return the report about a file or store that could not be searched."""
    reason = error.message if isinstance(error, CoreEvalError) else error
    return TextMatches(
        kind=UNREADABLE_FILE,
        path=path,
        count=1,
        action="reported",
        to_do=f"check it yourself ({reason}), and delete it if it contains the name",
    )


def _erase(path: Path, finder: NameFinder, *, dry: bool) -> Iterator[TextMatches]:
    count = count_matches(path, finder)
    if not count:
        return
    suffix, change = path.suffix.casefold(), _find_changer(path)
    if change is None and _is_ours_to_delete(path):
        if not dry:
            path.unlink()
        yield TextMatches(kind=f"file {suffix}".strip(), path=path, count=1, action="deleted")
        return
    changed = change(path, finder, dry=dry) if change else 0
    if changed:
        dropped = change is _drop_lines
        yield TextMatches(
            kind="lines" if dropped or change is _blank_lines else "texts",
            path=path,
            count=changed,
            action="deleted" if dropped else "blanked",
        )
        count = 0 if dry else count_matches(path, finder)
    if count:
        where = "the name is split across values, or is in a place that cannot be blanked"
        problem = where if change else "it is not in a format that can be cleaned"
        to_do = f"edit it yourself: {problem}"
        yield TextMatches(kind="file", path=path, count=count, action="reported", to_do=to_do)


def _is_ours_to_delete(path: Path) -> bool:
    """Return whether a file is a page that can be rebuilt, or a killed process's leftover."""
    return path.suffix.casefold() == ".html" or (
        path.name.startswith(".") and path.suffix == ".tmp"
    )


def _find_changer(path: Path) -> Changer | None:
    match [each.casefold() for each in path.suffixes]:
        case [*_, ".jsonl"] | [*_, ".jsonl", ".gz"]:
            # a command can write these again, so lines that name a person are deleted
            return _drop_lines if has_asked_answers(path) else _blank_lines
        case [*_, ".json"]:
            return _blank_json
        case [*_, ".csv" | ".tsv"]:
            return _blank_cells
        case [*_, ".xlsx"]:
            return blank_workbook
    return None


# -- reading --------------------------------------------------------------------------------------


def _encoding(start: bytes) -> str:
    """Return the encoding of a text that starts with these bytes."""
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding
    even, odd = start[::2].count(0), start[1::2].count(0)
    if not even and odd > len(start) // 4:
        return "utf-16-le"
    return "utf-16-be" if not odd and even > len(start) // 4 else "utf-8"


def _errors(encoding: str) -> str:
    """Return the handler for undecodable bytes; with UTF-8, they are written back unchanged."""
    return "surrogateescape" if encoding.startswith("utf-8") else "strict"


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == _GZIP


def _encoding_of(path: Path) -> str:
    opener: Any = gzip.open if _is_packed(path) else open
    with opener(path, "rb") as file:
        return _encoding(file.read(64))


@contextmanager
def _open_text(path: Path, encoding: str = "") -> Iterator[IO[str]]:
    """Open a text file, gzipped or not; without an encoding, only for searching."""
    opener: Any = gzip.open if _is_packed(path) else open
    known = encoding or _encoding_of(path)
    errors = _errors(known) if encoding or known.startswith("utf-8") else "replace"
    with opener(path, "rt", encoding=known, errors=errors, newline="") as lines:
        yield lines


def _count_lines(lines: IO[str], finder: NameFinder) -> int:
    """Count the lines that name a person; a long line is read in parts."""
    count, before, length = 0, "", 0
    while part := lines.readline(_PIECE):
        length += len(part)
        if length > MOST_UNPACKED:
            raise ValueError(f"it has more than {MOST_UNPACKED:,} characters")
        whole = before + part
        named = finder.finds(whole)
        count += named
        before = "" if named else whole[-_TAIL:]
    return count


_Part = tuple[int, int, str]
"""Where a part of a text begins and ends, and its replacement."""


def _replace(text: str, parts: Iterator[_Part]) -> tuple[str, int]:
    """Return a text with some parts replaced, and their number; the rest stays as it is."""
    pieces, at, number = list[str](), 0, 0
    for start, end, new in parts:
        pieces += [text[at:start], new]
        at, number = end, number + 1
    return "".join([*pieces, text[at:]]), number


class _Table:
    """The cells of a text table, as parts of its text.

    A quoted cell has doubled quotation marks in it, and may have line breaks. In a file without
    quoting, a cell may begin with a quotation mark, too: read as quoted, it could join many rows.
    So such a cell ends with its line, unless only a longer one leaves all rows equally long.

    Raises:
        ValueError: neither reading leaves all rows equally long.
    """

    def __init__(self, text: str, delimiter: str) -> None:
        self._text, self._delimiter = text, delimiter
        quoted, lines = self._pattern(r'[^"]'), self._pattern(r'[^"\r\n]')
        opened = next(filter(_is_open, lines.finditer(text)), None)
        if opened and self._fits(quoted, quoted=True):
            self._cells = quoted
        elif not opened or self._fits(lines, quoted=False):
            self._cells = lines
        else:
            line = text.count("\n", 0, opened.start()) + 1
            raise ValueError(f"the end of a cell with a quotation mark, line {line}, is uncertain")

    def _pattern(self, inside: str) -> re.Pattern[str]:
        """Return a pattern of a cell, quoted (1) or not (2), and what follows it (3)."""
        mark = re.escape(self._delimiter)
        quoted = rf'"{inside}*+(?:""{inside}*+)*+"(?=[{mark}\r\n]|\Z)'
        return re.compile(rf"(?:({quoted})|([^{mark}\r\n]*+))({mark}|\r\n?|\n|\Z)")

    def _fits(self, pattern: re.Pattern[str], *, quoted: bool) -> bool:
        """Return whether a pattern splits the text into rows of the same number of cells."""
        widths, width = set[int](), 0
        for cell in pattern.finditer(self._text):
            if quoted and (_is_open(cell) or self._has_rows(cell[1] or "")):
                return False
            width += 1
            if cell[3] != self._delimiter:
                if width > 1 or cell[1] or cell[2]:  # not an empty line
                    widths.add(width)
                width = 0
        return len(widths) <= 1

    def _has_rows(self, quoted: str) -> bool:
        """Return whether a quoted cell looks like several rows: it has both tabs and lines."""
        return self._delimiter == "\t" and "\t" in quoted and len(quoted.splitlines()) > 1

    def blanked(self, finder: NameFinder) -> tuple[str, int]:
        """Return the text with the matching cells blanked, and their number."""
        return _replace(self._text, self._find(finder))

    def _find(self, finder: NameFinder) -> Iterator[_Part]:
        for cell in self._cells.finditer(self._text):
            if cell[1] and finder.finds(cell[1][1:-1].replace('""', '"')):
                yield cell.start(1), cell.end(1), f'"{TAKEN_DOWN}"'
            elif cell[2] and finder.finds(cell[2]):
                yield cell.start(2), cell.end(2), TAKEN_DOWN


def _is_open(cell: re.Match[str]) -> bool:
    """Return whether a cell begins with a quotation mark but was not read as quoted."""
    return bool(cell[2]) and cell[2].startswith('"')


def _count_parquet(path: Path, finder: NameFinder) -> int:
    parts = read_parquet_parts(path, MOST_UNPACKED)
    return sum(finder.finds_in(row) for part in parts for row in part.to_pylist())


def _count_database(path: Path, finder: NameFinder) -> int:
    count = 0
    with open_database(path, dry=True, known=None) as database:
        assert isinstance(database, sqlite3.Connection)  # a store in PostgreSQL has no such file
        for row in _read_tables(database, path.stat().st_size):
            texts = (each.decode(errors="replace") if isinstance(each, bytes) else str(each)
                     for each in row)  # fmt: skip
            count += any(map(finder.finds, texts))
    return count


def _read_tables(database: sqlite3.Connection, size: int) -> Iterator[tuple[object, ...]]:
    """Yield the stored values of all rows, for as long as a database of this size may take.

    Raises:
        ValueError: it takes longer.
    """
    until = time.monotonic() + _MOST_S + size / _FEWEST_PER_S

    def is_late() -> bool:
        return time.monotonic() > until

    too_long = ValueError(f"searching it takes more than {until - time.monotonic():.0f} seconds")
    database.set_progress_handler(is_late, _STEPS)
    try:
        for (table,) in database.execute(_TABLES).fetchall():
            stored = [_quote_name(name) for (name,) in database.execute(_STORED, (table,))]
            for row in database.execute(f"SELECT {', '.join(stored)} FROM {_quote_name(table)}"):
                yield tuple(row)
                if is_late():
                    raise too_long
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        raise too_long if is_late() else KeyboardInterrupt from None


def _quote_name(table: str) -> str:
    return '"' + table.replace('"', '""') + '"'


def _count_zip(path: Path, finder: NameFinder) -> int:
    with ZipFile(path) as packed:
        if sum(member.file_size for member in packed.infolist()) > MOST_UNPACKED:
            raise ValueError(f"it unpacks to more than {MOST_UNPACKED:,} bytes")
        count, is_packed_twice = sum(map(finder.finds, packed.namelist())), False
        for name in packed.namelist():
            with packed.open(name) as member:
                start = member.read(64)
            encoding, is_packed = _encoding(start), start.startswith(_NOT_LINES)
            is_packed_twice = is_packed_twice or is_packed
            errors = "surrogateescape" if encoding.startswith("utf-8") else "replace"
            with packed.open(name) as member:
                lines = io.TextIOWrapper(member, encoding, errors=errors, newline="")
                count += _count_lines(lines, finder)
        if is_packed_twice and not count:
            raise ValueError(_PACKED_TWICE)
        return count


# -- writing --------------------------------------------------------------------------------------


def _read_whole(path: Path, encoding: str) -> str:
    if path.stat().st_size > _MOST_WHOLE:
        raise ValueError(f"it has more than {_MOST_WHOLE:,} bytes")
    return path.read_bytes().decode(encoding, _errors(encoding))


def _write_whole(path: Path, text: str, encoding: str) -> None:
    with replacing(path) as draft:
        draft.write_bytes(text.encode(encoding, _errors(encoding)))


def _blank_json(path: Path, finder: NameFinder, *, dry: bool) -> int:
    encoding = _encoding_of(path)
    text, count = _blank_strings(_read_whole(path, encoding), finder)
    if count and not dry:
        _write_whole(path, text, encoding)
    return count


_STRING = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?', re.DOTALL)
"""A string of a JSON text, and the sign of a key."""


def _blank_strings(text: str, finder: NameFinder) -> tuple[str, int]:
    """Return a JSON text with the matching strings blanked, and their number.

    Numbers, keys that occur twice and the layout stay as they are.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    json.loads(text)
    keys = dict.fromkeys(_decode(each[1]) for each in _STRING.finditer(text) if each[2])
    return _replace(text, _find_strings(text, finder, finder.blanked_keys(keys)))


def _find_strings(text: str, finder: NameFinder, names: Mapping[str, str]) -> Iterator[_Part]:
    for found in _STRING.finditer(text):
        said = _decode(found[1])
        if found[2] and said in names:
            yield found.start(1), found.end(1), json.dumps(names[said])
        elif not found[2] and finder.finds(said):
            yield found.start(1), found.end(1), json.dumps(TAKEN_DOWN)


def _decode(written: str) -> str:
    return str(json.loads(written)) if "\\" in written else written[1:-1]


def _blank_lines(path: Path, finder: NameFinder, *, dry: bool) -> int:
    """Blank the texts in JSON lines; drop matching lines that are invalid or nested too deeply."""
    return _rewrite_lines(path, (_blank_line(line, finder) for line in _lines(path)), dry=dry)


def _drop_lines(path: Path, finder: NameFinder, *, dry: bool) -> int:
    lines = ((line, "" if finder.finds(line) else line) for line in _lines(path))
    return _rewrite_lines(path, lines, dry=dry)


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file.

    Raises:
        ValueError: a line is too long.
    """
    with _open_text(path, _encoding_of(path)) as lines:
        length = 0
        while line := lines.readline(_MOST_LINE):
            length += len(line)
            if len(line) == _MOST_LINE:
                raise ValueError(f"a line has {_MOST_LINE:,} characters or more")
            if length > MOST_UNPACKED:
                raise ValueError(f"it has more than {MOST_UNPACKED:,} characters")
            yield line


def _blank_line(line: str, finder: NameFinder) -> tuple[str, str]:
    """Return a line and its replacement."""
    if not finder.finds(line):
        return line, line
    try:
        return line, _blank_strings(line, finder)[0]
    except (ValueError, RecursionError):
        return line, ""


def _rewrite_lines(path: Path, changes: Iterator[tuple[str, str]], *, dry: bool) -> int:
    """Write each line's replacement and return the number of changed lines."""
    if dry:
        return sum(old != new for old, new in changes)
    count, encoding = 0, _encoding_of(path)
    opener: Any = gzip.open if _is_packed(path) else open
    with (
        replacing(path) as draft,
        opener(draft, "wt", encoding=encoding, errors=_errors(encoding), newline="") as written,
    ):
        for old, new in changes:
            count += old != new
            written.write(new)
    return count


def _blank_cells(path: Path, finder: NameFinder, *, dry: bool) -> int:
    """Blank the matching cells of a table; the rest stays as it is."""
    encoding = _encoding_of(path)
    text = _read_whole(path, encoding)
    likely = "\t" if path.suffix.casefold() == ".tsv" else ""
    made, count = _Table(text, find_separator(text, likely)).blanked(finder)
    if count and not dry:
        _write_whole(path, made, encoding)
    return count
