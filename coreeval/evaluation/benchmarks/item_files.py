"""The files that items are read from: JSON lists and JSON lines, one file for each split."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from coreeval.config.user_files import MOST_DATA_BYTES, open_file
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.lines import read_lines

PLACE = "{split}"
"""Where a file's name has the name of its split."""
SUFFIXES = ("", ".gz")


class Record(NamedTuple):
    """One entry of a file: what it holds, or why it holds nothing."""

    line: int
    """Line of the file, or place in its list, from 1."""
    values: dict[str, object]
    defect: str = ""


def found_file(path: Path, split: str, names: Sequence[str]) -> Path:
    """Return the file of a split: the path itself if it is one, else the first name that is there.

    Raises:
        DatasetError: there is none.
    """
    if path.is_file():
        return path
    wanted = [name.replace(PLACE, split) for name in names]
    for place in (path / f"{name}{suffix}" for name in wanted for suffix in SUFFIXES):
        if place.is_file():
            return place
    raise DatasetError(
        f"there is no file of the split {split!r}",
        where=str(path),
        hint=f"looked for {', '.join(wanted)} (.gz too); the splits there: "
        f"{', '.join(splits_in(path, names)) or 'none'}",
    )


def splits_in(path: Path, names: Sequence[str]) -> list[str]:
    """Return the names of the splits that a folder has files of, by the first name that fits."""
    files = [file.name.removesuffix(".gz") for file in path.glob("*")]
    for before, after in (name.split(PLACE) for name in names):
        if found := {
            file.removeprefix(before).removesuffix(after)
            for file in files
            if file.startswith(before) and file.endswith(after)
        }:
            return sorted(found)
    return []


def json_list(path: Path) -> Iterator[Record]:
    """Yield the objects of a file that is one JSON list.

    Raises:
        DatasetError: the file cannot be read, or is no such list.
    """
    try:
        with open_file(path) as file:
            unpacked = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
            content = unpacked.read(MOST_DATA_BYTES + 1)
        if len(content) > MOST_DATA_BYTES:
            raise ValueError(f"it is larger than {MOST_DATA_BYTES >> 20} MiB")
        values = json.loads(content.decode("utf-8-sig"))
    except (OSError, ValueError, EOFError, RecursionError) as error:
        raise DatasetError(f"the file is no JSON: {error}", where=str(path)) from None
    if not isinstance(values, list):
        hint = "one list of objects is wanted, as in [{...}, {...}]"
        raise DatasetError("the file holds no JSON list", where=str(path), hint=hint)
    for place, value in enumerate(values, start=1):
        yield _record(place, value)


def json_lines(path: Path) -> Iterator[Record]:
    """Yield the objects of a file with one on each line; blank lines are passed over.

    Raises:
        DatasetError: the file cannot be read.
    """
    for line in read_lines(path):
        if not line.valid:
            yield Record(line.number, {}, "the line is not UTF-8")
        elif line.raw.strip():
            try:
                yield _record(line.number, json.loads(line.raw))
            except (ValueError, RecursionError) as error:
                yield Record(line.number, {}, f"not JSON: {error}")


def _record(place: int, value: object) -> Record:
    if isinstance(value, dict):
        return Record(place, value)
    return Record(place, {}, "JSON, but no object")
