"""GDELT's files: finding them in a folder, telling their kinds by content, their notation.

GKG 2.1 has 27 tab-separated columns without header or quoting (research: gdelt §2). GDELT's JSON
has stray backslashes and control characters inside strings.
"""

import gzip
import io
import itertools
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from coreeval.tools.gdelt.rows import Kind

GKG_COLUMNS = 27
LONGEST_LINE = 1 << 24
"""A line beyond this is no GDELT row; the real ones stay below 100 kB (research: gdelt §2)."""
MOST_HEAD_LINES = 1000
"""Lines after which a file with nothing in them is taken for empty."""
MOST_LOOKED_AT = 8 * LONGEST_LINE
"""Bytes after which the same holds: what is packed well has few lines, and no end."""
_GKG_ID = re.compile(rb"\d{14}-T?\d+$")
_TROUBLE = (
    EOFError, OSError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError,
    UnicodeDecodeError,
)  # fmt: skip
"""What unpacking a file raises that is damaged, encrypted (RuntimeError) or named in no UTF-8."""
UNDERSTOOD = "GKG 2.1 rows, GAL article lists, DOC 2.0 article lists (JSON, JSONL, CSV)"
"""The kinds of files that are read, as messages name them."""


class FileDamage(Exception):
    """A file ends early or cannot be unpacked; what was read before it is good."""


def find_files(path: Path) -> list[Path]:
    """Return the files under a folder in stable order, hidden ones left out; a file is itself."""
    if path.is_file():
        return [path]
    found = (file for file in path.rglob("*") if file.is_file())
    return sorted(file for file in found if not _hidden(file.relative_to(path)))


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain, gzipped or zipped file, ended by LF only, without line ends.

    Raises:
        DamagedFile: the file cannot be unpacked to its end.
    """
    try:
        for stream in _streams(path):
            while line := stream.readline(LONGEST_LINE):
                yield line.rstrip(b"\r\n")
    except _TROUBLE as error:
        raise FileDamage(str(error) or type(error).__name__) from error


def decode_line(line: bytes) -> str:
    """Decode one line; a stray Latin-1 byte harms one character, not the file."""
    return line.decode("utf-8", errors="replace").removeprefix("\ufeff")


def _streams(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=raw) as stream:
                yield io.BufferedReader(stream)
        elif magic == b"PK\x03\x04":
            yield from _members(raw)
        else:
            yield raw


def _members(raw: IO[bytes]) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(raw) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                with archive.open(member) as stream:
                    yield stream


def detect_kind(path: Path) -> Kind | None:
    """Tell what a file holds by its first lines; None for everything that holds no articles.

    Raises:
        DamagedFile: not even its first line can be unpacked.
    """
    return classify_lines(first_lines(path))


def classify_lines(first: list[bytes]) -> Kind | None:
    """Tell what a file with these first lines holds; None where it holds no articles."""
    if any(_is_gkg(line) for line in first):
        return "gkg"
    kinds = [kind for line in first if (kind := _json_line_kind(decode_line(line)))]
    if kinds:
        return kinds[0]
    return "artlist" if _is_article_list(first) else None


def first_lines(path: Path) -> list[bytes]:
    """Return up to eight lines with something in them, fewer if the file is damaged after them.

    Raises:
        DamagedFile: not even its first line can be unpacked.
    """
    found: list[bytes] = []
    try:
        first = itertools.islice(_beginning(read_lines(path)), MOST_HEAD_LINES)
        found.extend(itertools.islice((line for line in first if line.strip()), 8))
    except FileDamage:
        if not found:
            raise
    return found


def _beginning(every: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for line in every:
        yield line
        size += len(line)
        if size > MOST_LOOKED_AT:
            return


def _is_gkg(line: bytes) -> bool:
    columns = line.split(b"\t", GKG_COLUMNS)
    return len(columns) == GKG_COLUMNS and _GKG_ID.match(columns[0]) is not None


def _json_line_kind(line: str) -> Kind | None:
    try:
        value = json.loads(line, strict=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "url" not in value:
        return None
    if not value.keys().isdisjoint(("desc", "outletName", "lang")):
        return "gal"
    return "artlist" if value.keys() & {"date", "seendate"} and "title" in value else None


def _is_article_list(first: list[bytes]) -> bool:
    if not first:
        return False
    start = decode_line(b"\n".join(first)[:4096])
    if re.match(r'\s*\{\s*"articles"\s*:\s*\[', start):
        return True
    header = {name.strip().strip('"') for name in decode_line(first[0]).split(",")}
    return {"url", "title"} <= header and bool(header & {"date", "seendate"})


DATE, COLLECTION, URL = 1, 2, 4
LOCATIONS, PERSONS, ORGANISATIONS, ALL_NAMES = 10, 12, 14, 23
TRANSLATION, EXTRAS = 25, 26
WEB = "1"
"""The source collection whose documents are web pages; the others are citations."""
PROMINENT_OFFSET = 1500
PROMINENT_MENTIONS = 2
"""A name counts if it stands this early in the page or is repeated (research: gdelt §5)."""


_STRAY = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')


def parse_lenient_json(text: str) -> dict[str, object] | None:
    """Parse a JSON object, stray backslashes kept as characters (research: gdelt §1).

    Returns None for what is no object even then.
    """
    try:
        value = json.loads(_escape_stray(text), strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _escape_stray(text: str) -> str:
    """Double the backslashes that begin no escape of JSON, pairs of them left alone."""
    return "\\\\".join(_STRAY.sub(r"\\\\", part) for part in text.split("\\\\"))
