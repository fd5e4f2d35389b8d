"""Reads cassettes from any source with limits and checks, and compares sets of Parquet files."""

import errno
import gzip
import hashlib
import json
import re
import stat
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from pydantic import ValidationError

from coreeval.errors import CassetteError
from coreeval.releases.cassettes.format import (
    FORMAT,
    KINDS,
    LINE,
    VERSION,
    CassetteFile,
    CassetteHead,
    CassetteLine,
    RowLine,
    SampleLine,
)
from coreeval.releases.release import hash_file
from coreeval.tools.files import read_parquet

L = TypeVar("L", bound=CassetteLine)
MOST_HEAD_BYTES = 16 << 20
"""The most bytes of a head; that of a run on 100,000 samples has about 10,000."""
MOST_LINE_BYTES = 64 << 20
"""The most bytes of a line; an answer has at most a million characters (models/client.py), and its
request not many more."""
MOST_RATIO = 400
"""The largest ratio of a cassette's unpacked size to its size (own choice): runs reach ten to
forty, gzip at most a thousand."""
ALLOWED_BYTES = 64 << 20
"""Unpacked size in bytes that is always allowed."""
_PART_BYTES = 1 << 20


@dataclass(frozen=True)
class Cassette:
    """A cassette whose bytes match its head."""

    path: Path
    head: CassetteHead
    digest: str
    """sha256 of the head line, which contains the digest of all other lines."""

    def lines(self, kind: type[L]) -> Iterator[L]:
        """Yield the lines of one kind in file order.

        Raises:
            CassetteError: a line is malformed.
        """
        return (line for _, line in self.numbered_lines(kind))

    def numbered_lines(self, kind: type[L]) -> Iterator[tuple[int, L]]:
        """Yield the lines of one kind with their line numbers; the head is line 1.

        Raises:
            CassetteError: a line is malformed.
        """
        name = kind.model_fields["kind"].default
        start = f'{{"kind": "{name}",'.encode()
        with gzip.open(self.path) as file:
            for number, line in enumerate(_lines(self.path, cast(BinaryIO, file)), start=1):
                if line.startswith(start):
                    yield number, cast(L, _parse_line(self.path, number, line))


def open_cassette(path: Path) -> Cassette:
    """Read a whole cassette and check it against its head.

    Raises:
        CassetteError: the file is not a cassette, has another version, is truncated or altered, or
            unpacks to more than the limit.
    """
    try:
        _refuse_pipe(path)
        with gzip.open(path) as file:
            packed = cast(BinaryIO, file)
            told = _head_line(path, packed)
            head = _head(path, told)
            _refuse_bomb(path, head)
            _check_body(path, packed, head)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise _altered(path, "it is cut off or damaged") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    return Cassette(path=path, head=head, digest=hashlib.sha256(told).hexdigest())


def _refuse_pipe(path: Path) -> None:
    """Refuse a file that is not regular, because a cassette is read several times.

    Raises:
        OSError: the file is not regular, or does not exist.
    """
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
        raise OSError(errno.ENOTSUP, "it is a pipe or device, not a file")


def _head_line(path: Path, packed: BinaryIO) -> bytes:
    try:
        line = packed.readline(MOST_HEAD_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise _not_a_cassette(path, "it is not a gzip file, or is damaged") from None
    if not line.endswith(b"\n") or len(line) > MOST_HEAD_BYTES:
        raise _not_a_cassette(path, "it has no header")
    return line


def _head(path: Path, line: bytes) -> CassetteHead:
    try:
        said = _parse_json(line)
    except _HalfCharacter as error:
        raise _altered(path, f"its header is malformed: {error}") from None
    except (ValueError, RecursionError):
        raise _not_a_cassette(path, "its header is not JSON") from None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise _not_a_cassette(path, "its first line is not a cassette header")
    if said.get("version") != VERSION:
        made = said.get("made_with")
        version = str(made.get("coreeval")) if isinstance(made, dict) else ""
        raise CassetteError(
            f"the cassette has format {said.get('version')!r}, but this CoreEval reads {VERSION}",
            where=str(path),
            hint=install_hint(version),
        )
    try:
        head = CassetteHead.model_validate(said)
        return head.model_copy(update={"lines": dict.fromkeys(KINDS, 0) | head.lines})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise _altered(path, f"its header is malformed: {place}: {first['msg']}") from None


class _HalfCharacter(ValueError):
    """A text contains half a surrogate pair, which JSON can express but no file can hold."""


def _parse_json(line: bytes) -> Any:  # noqa: ANN401 - plain data, checked by whoever asked for it
    """Parse the JSON of a line.

    Raises:
        _HalfCharacter: a string contains an incomplete character (a lone surrogate).
        ValueError: the line is not valid JSON.
    """
    said = json.loads(line)
    try:
        json.dumps(said, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _HalfCharacter("a text contains an incomplete character") from None
    return said


def install_hint(version: str) -> str:
    """Return how to install the version that made a cassette, according to the cassette."""
    known = version if re.fullmatch(r"[\w.+-]{1,40}", version) else "VERSION"
    return f"replay it with the version that made it: pip install coreeval=={known}"


def _refuse_bomb(path: Path, head: CassetteHead) -> None:
    most = max(ALLOWED_BYTES, MOST_RATIO * path.stat().st_size)
    if head.bytes > most:
        raise _altered(path, f"it would unpack to {head.bytes:,} bytes, but the limit is {most:,}")


def _check_body(path: Path, packed: BinaryIO, head: CassetteHead) -> None:
    """Refuse a body whose bytes or lines differ from the head; unpack no more than it states."""
    digest, counts, size = hashlib.sha256(), Counter[str](), 0
    while line := packed.readline(MOST_LINE_BYTES + 1):
        size += len(line)
        if len(line) > MOST_LINE_BYTES or size > head.bytes:
            raise _altered(path, "it contains more than its header says")
        digest.update(line)
        counts[_kind_of(line)] += 1
    if size != head.bytes or digest.hexdigest() != head.sha256:
        raise _altered(path, "its digest does not match its header")
    if dict(counts) != {kind: count for kind, count in head.lines.items() if count}:
        raise _altered(path, "its lines do not match its header")


def _kind_of(line: bytes) -> str:
    found = (kind for kind in KINDS if line.startswith(f'{{"kind": "{kind}",'.encode()))
    return next(found, "")


def _lines(path: Path, packed: BinaryIO) -> Iterator[bytes]:
    try:
        while line := packed.readline(MOST_LINE_BYTES + 1):
            yield line
    except (OSError, EOFError, zlib.error):
        raise _altered(path, "it changed while being read") from None


def _parse_line(path: Path, number: int, line: bytes) -> CassetteLine:
    try:
        return LINE.validate_python(_parse_json(line))
    except ValidationError as error:
        why = error.errors(include_url=False)[0]["msg"]
    except _HalfCharacter as error:
        why = str(error)
    except (ValueError, RecursionError):
        why = "it is not JSON"
    raise _altered(path, f"line {number} is malformed: {why}")


def _not_a_cassette(path: Path, why: str) -> CassetteError:
    return CassetteError(
        f"this is not a cassette: {why}",
        where=str(path),
        hint="use the file that `coreeval cassette export` wrote",
    )


def _unreadable(path: Path, error: OSError) -> CassetteError:
    return CassetteError(f"cannot read the cassette: {error.strerror}", where=str(path))


def _altered(path: Path, why: str) -> CassetteError:
    return CassetteError(
        f"the cassette has changed since it was made: {why}",
        where=str(path),
        hint="download it again, and compare its digest with the published one",
    )


def count_fixed_results(cassette: Cassette) -> Counter[str]:
    """Count the stated results by reason: kept from a release, or the outcome.

    Raises:
        CassetteError: a line is malformed.
    """
    return Counter(
        "kept" if one.result.kept_from else one.result.outcome
        for line in cassette.lines(SampleLine)
        for one in (line.stated, line.control)
        if one
    )


CELL = 8
"""Hexadecimal digits of a cell's digest: enough to find a difference, not to prove equality."""


@dataclass(frozen=True, kw_only=True)
class RowDifference:
    """The first row in which two files differ."""

    row: int
    """Row number, from 1."""
    id: str
    """The sample's recorded id, or that of the present row."""
    columns: tuple[str, ...]
    """Columns that differ; empty if one file has no such row."""
    why: str


@dataclass(frozen=True, kw_only=True)
class FileComparison:
    """The comparison of a file with its recording."""

    name: str
    sha256: str
    """The recorded sha256; empty if the file was not there."""
    found: str
    """The sha256 now; empty if the file is missing."""
    rows: int
    difference: RowDifference | None
    """The first difference; None also if the bytes differ and the rows do not."""

    @property
    def equal(self) -> bool:
        """Return whether the files have the same bytes."""
        return self.sha256 == self.found

    @property
    def same_rows(self) -> bool:
        """Return whether the files have the same rows."""
        return bool(self.sha256 and self.found) and self.difference is None


def hash_files(dataset: Path) -> tuple[CassetteFile, ...]:
    """Return the digests of a dataset's Parquet files, by name."""
    return tuple(_hash_file(dataset, path) for path in sorted(dataset.glob("*/*.parquet")))


def _hash_file(dataset: Path, path: Path) -> CassetteFile:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # slow to import

    with pq.ParquetFile(path) as file:
        columns, rows = tuple(file.schema_arrow.names), file.metadata.num_rows
    name = path.relative_to(dataset).as_posix()
    return CassetteFile(name=name, rows=rows, sha256=hash_file(path), columns=columns)


def hash_rows(dataset: Path, file: CassetteFile) -> Iterator[RowLine]:
    """Yield each row of a file as digests of its cells."""
    for row in read_parquet(dataset / file.name):
        cells = "".join(_hash_cell(row[column]) for column in file.columns)
        yield RowLine(file=file.name, id=row["id"], cells=cells)


def _hash_cell(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:CELL]


def compare_files(cassette: Cassette, dataset: Path) -> list[FileComparison]:
    """Compare a dataset's files byte for byte with those that a cassette recorded."""
    there = {file.name: file for file in hash_files(dataset)}
    recorded = {file.name: file for file in cassette.head.files}
    return [
        _compare_file(cassette, dataset, name, recorded.get(name), there.get(name))
        for name in sorted(recorded.keys() | there.keys())
    ]


def _compare_file(
    cassette: Cassette,
    dataset: Path,
    name: str,
    recorded: CassetteFile | None,
    there: CassetteFile | None,
) -> FileComparison:
    difference = None
    if recorded and there and recorded.sha256 != there.sha256:
        difference = _first_difference(cassette, dataset, recorded, there)
    return FileComparison(
        name=name,
        sha256=recorded.sha256 if recorded else "",
        found=there.sha256 if there else "",
        rows=recorded.rows if recorded else there.rows if there else 0,
        difference=difference,
    )


def _first_difference(
    cassette: Cassette, dataset: Path, recorded: CassetteFile, there: CassetteFile
) -> RowDifference | None:
    if recorded.columns != there.columns:
        other = tuple(sorted({*recorded.columns} ^ {*there.columns}))
        return RowDifference(row=0, id="", columns=other, why="the columns differ")
    before = (line for line in cassette.lines(RowLine) if line.file == recorded.name)
    pairs = zip_longest(before, hash_rows(dataset, there))
    for number, (old, new) in enumerate(pairs, start=1):
        if old != new:
            return _differing_cells(number, old, new, recorded.columns)
    return None


def _differing_cells(
    number: int, old: RowLine | None, new: RowLine | None, columns: tuple[str, ...]
) -> RowDifference:
    present = new or old
    assert present is not None
    if old is None or new is None:
        why = "the row is not recorded" if old is None else "the recorded row is missing"
        return RowDifference(row=number, id=present.id, columns=(), why=why)
    if old.id != new.id:
        why = f"the recorded row belongs to {old.id}"
        return RowDifference(row=number, id=new.id, columns=("id",), why=why)
    other = tuple(
        column for place, column in enumerate(columns) if _digits(old, place) != _digits(new, place)
    )
    return RowDifference(row=number, id=new.id, columns=other, why="another value")


def _digits(line: RowLine, place: int) -> str:
    return line.cells[CELL * place : CELL * (place + 1)]
