"""Raw lines of text files, and files of records with a JSON object per line.

Lines end only at LF and are decoded one by one. In a file of records, each line is a record,
skipped, or bad.
"""

import errno
import gzip
import hashlib
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from coreeval.config import DatasetConfig
from coreeval.config.user_files import is_utf16, iter_raw_lines, open_file
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.rows import make_bad_row, refuse_mostly_bad
from coreeval.schema import BadRow
from coreeval.tools.files import LINK, special_kind, special_kind_on_way
from coreeval.tools.formatting import format_quantity

BOM = b"\xef\xbb\xbf"
CHUNK = 1 << 20


class TextLine(NamedTuple):
    """A line without its line ending."""

    number: int
    raw: str
    """The text; undecodable bytes are shown as replacement characters."""
    valid: bool
    """False if the bytes are not UTF-8."""


def read_lines(path: Path) -> Iterator[TextLine]:
    """Yield the lines of a file, plain or .gz; U+2028 and other separators do not split a line."""
    with open_records(path) as file:
        yield from decode_lines(_refuse_utf16(iter_raw_lines(file), path))


def _refuse_utf16(raw_lines: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Yield raw lines; raise an error for a file in UTF-16, in which every line would be bad."""
    for number, raw in enumerate(raw_lines):
        if number == 0 and is_utf16(raw):
            raise DatasetError(
                "the file is UTF-16, not UTF-8",
                where=str(path),
                hint="save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8 OLD > NEW",
            )
        yield raw


def decode_lines(raw_lines: Iterable[bytes]) -> Iterator[TextLine]:
    """Decode raw lines, including their line ends, and yield each one."""
    for number, raw in enumerate(raw_lines, start=1):
        cut = raw.removeprefix(BOM) if number == 1 else raw
        yield _decode_line(number, cut.removesuffix(b"\n").removesuffix(b"\r"))


def _open_text(path: Path) -> BinaryIO:
    try:
        return open_file(path)
    except OSError as error:
        raise _read_error(path, error) from None


def _read_error(path: Path, error: OSError) -> DatasetError:
    return DatasetError(
        f"cannot read the file: {error.strerror or error}",
        where=str(path),
        hint="check that the path is right and that the file is readable",
    )


def _decode_line(number: int, raw: bytes) -> TextLine:
    try:
        return TextLine(number, raw.decode("utf-8"), valid=True)
    except UnicodeDecodeError:
        return TextLine(number, raw.decode("utf-8", "replace"), valid=False)


def file_digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the names, sizes and bytes of files, read in chunks."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with _open_text(path) as file:
            while piece := file.read(CHUNK):
                digest.update(piece)
    return digest.hexdigest()


def refuse_special_files(root: Path, paths: Iterable[Path]) -> None:
    """Raise an error for a link that leaves a benchmark's folder, or a pipe or device in it.

    The folder is untrusted: a link in it may point to a private file of the user. The folder itself
    may be a link.

    Args:
        root: The folder, or the only file.
        paths: Files in the folder; they need not exist.

    Raises:
        DatasetError: there is one.
    """
    for path in paths:
        kind = special_kind_on_way(root, str(path.relative_to(root)))
        if kind == LINK and _resolve(path).is_relative_to(root.resolve()):
            kind = special_kind(_resolve(path))
        if kind:
            raise DatasetError(
                "a link in the dataset's folder points outside it"
                if kind == LINK
                else f"the dataset's folder contains {kind}",
                where=ascii(str(path)),
                hint="replace it with the file, or remove it; `hf download --repo-type dataset "
                "NAME --local-dir FOLDER` fetches files without links",
            )


def _resolve(link: Path) -> Path:
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # it points to itself
        return link.parent


def make_digest(
    files: Callable[[DatasetConfig, str], list[Path]],
) -> Callable[[DatasetConfig, str], str]:
    """Return a format's digest function, given the function that lists a split's files."""
    return lambda config, split: file_digest(files(config, split))


def display_path(path: Path, config: DatasetConfig) -> str:
    """Return the name of a file in messages: its path relative to the dataset's folder."""
    root = Path(config.path)
    return path.relative_to(root).as_posix() if path != root else path.name


R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)
Object = dict[str, Any]
_ENDING: Final = ".gz"
MOST_RATIO: Final = 100
"""The largest ratio of a .gz file's unpacked size to its size (own choice): texts reach ten, gzip
at most a thousand."""
ALLOWED_BYTES: Final = 16 << 20
"""The unpacked size in bytes that is always allowed."""


@dataclass(frozen=True)
class BadRecord:
    """The reason why an object is not a record."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Records(Generic[R]):
    """The records of a file in order, with the defects and other lines of the file."""

    good: tuple[R, ...]
    bad: tuple[BadRow, ...]
    passed_over: int = 0
    """The number of lines that are not meant to be records."""

    def require_records(
        self, path: Path | str, *, what: str, whats: str, prose: str
    ) -> "Records[R]":
        """Return the records if there is at least one.

        Args:
            path: The file, or the name of rows in memory, for messages.
            what: The name of a record, in the singular.
            whats: The name of records, in the plural.
            prose: Description of a valid line.

        Raises:
            DatasetError: the file is empty, or no line of it is a record.
        """
        if self.good:
            return self
        lines = len(self.bad) + self.passed_over
        if not lines:
            raise DatasetError(f"the file of {whats} is empty", where=str(path), hint=prose)
        first = f"; line {self.bad[0].line}: {self.bad[0].reason}" if self.bad else ""
        told = f"the file has {format_quantity(lines, 'line')}, but none is {what}{first}"
        raise DatasetError(told, where=str(path), hint=prose)


class ObjectRow(NamedTuple):
    """An object at its place in a file or a list."""

    number: int
    """The number of the line, or of the object in the list, from 1."""
    raw: str
    """The object as found, for the report if it is bad."""
    found: Object | BadRecord
    """The object, or the reason why there is none."""


def read_records(
    path: Path,
    make: Callable[[Object], R | BadRecord | None],
    *,
    key: Callable[[R], Hashable],
    twice: Callable[[R, int], str],
) -> Records[R]:
    """Read JSON lines, plain or .gz, skipping blank lines; the first record with a key counts.

    Args:
        path: The file.
        make: Makes a record from an object; None skips the object.
        key: Returns the key of a record, which must be unique.
        twice: Returns the message for a repeated record, given the line of the first one.

    Raises:
        DatasetError: the file cannot be read.
    """
    with open_records(path) as file:
        lines = decode_lines(iter_raw_lines(file))
        rows = (
            ObjectRow(line.number, line.raw, _parse_whole(line))
            for line in lines
            if line.raw.strip()
        )
        return collect_records(path.name, rows, make, key=key, twice=twice)


def collect_records(
    file: str,
    rows: Iterable[ObjectRow],
    make: Callable[[Object], R | BadRecord | None],
    *,
    key: Callable[[R], Hashable],
    twice: Callable[[R, int], str],
) -> Records[R]:
    """Return the records among rows, and the bad ones with their reasons.

    Args:
        file: The name of the file or list in reports of bad rows.
        rows: The rows.
        make: Makes a record from an object; None skips the object.
        key: Returns the key of a record, which must be unique.
        twice: Returns the message for a repeated record, given the number of the first one.

    Raises:
        DatasetError: most of very many rows are bad.
    """
    good, bad, passed, seen = list[R](), list[BadRow](), 0, dict[Hashable, int]()
    for row in rows:
        made = row.found if isinstance(row.found, BadRecord) else make(row.found)
        if made is None:
            passed += 1
            continue
        if not isinstance(made, BadRecord):
            first = seen.setdefault(key(made), row.number)
            if first == row.number:
                good.append(made)
                continue
            made = BadRecord(twice(made, first))
        bad.append(make_bad_row(file, row.number, made.reason, row.raw))
        refuse_mostly_bad(len(bad), len(good), bad[0], where=file)
    return Records(good=tuple(good), bad=tuple(bad), passed_over=passed)


def parse_object(line: TextLine) -> Object | BadRecord:
    """Return the JSON object in a line, or the reason why there is none.

    An object inside it may have a key twice; whoever reads it asks `find_repeated_key`.
    """
    if not line.valid:
        return BadRecord("the line is not UTF-8")
    try:
        return check_object(json.loads(line.raw, object_pairs_hook=mark_repeated_key))
    except (ValueError, RecursionError) as error:
        return BadRecord(f"not JSON: {error}")


def _parse_whole(line: TextLine) -> Object | BadRecord:
    found = parse_object(line)
    reason = "" if isinstance(found, BadRecord) else find_repeated_key(found)
    return BadRecord(reason) if reason else found


def check_object(value: object) -> Object | BadRecord:
    """Return a JSON value as an object, or the reason why it is none or has a key twice."""
    if twice := repeated_key_of(value):
        return BadRecord(twice)
    return value if isinstance(value, dict) else BadRecord("the value is not a JSON object")


def repeated_key_of(value: object) -> str:
    """Return a message if a JSON value is itself an object with a key twice."""
    return value.reason if isinstance(value, _RepeatedKey) else ""


class _RepeatedKey(dict[str, object]):
    """An object in which a key occurs twice, with its last value."""

    reason = ""


def mark_repeated_key(pairs: list[tuple[str, object]]) -> Object:
    """Return an object for a JSON decoder; one with a key twice is found by the functions above."""
    values = dict(pairs)
    if len(values) == len(pairs):
        return values
    marked, key = _RepeatedKey(values), Counter(key for key, _ in pairs).most_common(1)[0][0]
    marked.reason = f"the key {key[:40]!r} occurs twice in an object"
    return marked


def find_repeated_key(*values: object) -> str:
    """Return a message if some object in JSON values has a key twice, otherwise an empty text."""
    left = list(values)
    while left:
        value = left.pop()
        if twice := repeated_key_of(value):
            return twice
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
    return ""


def validate_record(model: type[M], values: Mapping[str, object]) -> M | BadRecord:
    """Return an object as a validated model, or its first defect."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        return BadRecord(f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}")


class _Unpacked(gzip.GzipFile):
    """The content of a .gz file, which may be only so many times as large as the file."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(fileobj=file)
        self._left = max(ALLOWED_BYTES, MOST_RATIO * os.fstat(file.fileno()).st_size)

    def read(self, size: int | None = -1) -> bytes:
        return self._count(super().read(size))

    def readline(self, size: int | None = -1) -> bytes:
        return self._count(super().readline(size))

    def _count(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        if self._left < 0:
            raise OSError(errno.EFBIG, f"the file unpacks to more than {MOST_RATIO} times its size")
        return piece


@contextmanager
def open_records(path: Path) -> Iterator[BinaryIO]:
    """Open a file, compressed or not; raise DatasetError also for errors while reading it."""
    try:
        with open_file(path) as file:
            packed = path.suffix.lower() == _ENDING
            yield _Unpacked(file) if packed else file  # type: ignore[misc]
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(
            f"cannot read the file: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            hint="check that the path is right and that the file is readable and complete",
        ) from None
