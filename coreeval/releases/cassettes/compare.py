"""The Parquet files of a dataset: their digests, and where two sets of them differ first."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from coreeval.releases.cassettes.format import CassetteFile, RowLine
from coreeval.releases.cassettes.read import Cassette
from coreeval.releases.release import hash_file
from coreeval.tools.files import read_parquet

CELL = 8
"""Hexadecimal digits of a cell's digest: they find a difference, and vouch for nothing."""


@dataclass(frozen=True, kw_only=True)
class RowDifference:
    """The first row in which two files differ."""

    row: int
    """From 1."""
    id: str
    """Of the sample: as recorded, or of the row that is there now."""
    columns: tuple[str, ...]
    """Empty where one file has no such row."""
    why: str


@dataclass(frozen=True, kw_only=True)
class FileComparison:
    """One file beside the one that was recorded."""

    name: str
    sha256: str
    """As recorded; empty for a file that was not there."""
    found: str
    """Empty for a file that is not there now."""
    rows: int
    difference: RowDifference | None
    """None also where the bytes differ and the rows do not."""

    @property
    def equal(self) -> bool:
        """Whether the bytes are the same."""
        return self.sha256 == self.found

    @property
    def same_rows(self) -> bool:
        """Whether the rows are."""
        return bool(self.sha256 and self.found) and self.difference is None


def hash_files(dataset: Path) -> tuple[CassetteFile, ...]:
    """Return the Parquet files of a dataset with their digests, by name."""
    return tuple(_hash_file(dataset, path) for path in sorted(dataset.glob("*/*.parquet")))


def _hash_file(dataset: Path, path: Path) -> CassetteFile:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # slow to import

    with pq.ParquetFile(path) as file:
        columns, rows = tuple(file.schema_arrow.names), file.metadata.num_rows
    name = path.relative_to(dataset).as_posix()
    return CassetteFile(name=name, rows=rows, sha256=hash_file(path), columns=columns)


def hash_rows(dataset: Path, file: CassetteFile) -> Iterator[RowLine]:
    """Yield the rows of a file as digests of their cells."""
    for row in read_parquet(dataset / file.name):
        cells = "".join(_hash_cell(row[column]) for column in file.columns)
        yield RowLine(file=file.name, id=row["id"], cells=cells)


def _hash_cell(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:CELL]


def compare_files(cassette: Cassette, dataset: Path) -> list[FileComparison]:
    """Compare a dataset's files with those that a cassette recorded, byte for byte."""
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
        return RowDifference(row=0, id="", columns=other, why="the columns are others")
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
        why = f"the recorded row is of {old.id}"
        return RowDifference(row=number, id=new.id, columns=("id",), why=why)
    other = tuple(
        column for place, column in enumerate(columns) if _digits(old, place) != _digits(new, place)
    )
    return RowDifference(row=number, id=new.id, columns=other, why="another value")


def _digits(line: RowLine, place: int) -> str:
    return line.cells[CELL * place : CELL * (place + 1)]
