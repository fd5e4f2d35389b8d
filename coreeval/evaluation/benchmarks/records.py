"""A file of records, a JSON object a line: every line is a record, passed over, or a bad one."""

import gzip
import json
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from coreeval.config.user_files import iter_raw_lines, open_file
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.lines import Line, lines_of
from coreeval.evaluation.benchmarks.rows import bad_row
from coreeval.schema import BadRow

R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)
Object = dict[str, Any]
_ENDING: Final = ".gz"


@dataclass(frozen=True)
class Bad:
    """Why an object is no record."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Records(Generic[R]):
    """The records of a file in its order, and what else is in it."""

    good: tuple[R, ...]
    bad: tuple[BadRow, ...]
    passed_over: int = 0
    """Lines that are not meant to be records."""

    def required(self, path: Path, *, what: str, whats: str, prose: str) -> "Records[R]":
        """Return them if there is one.

        Args:
            path: The file, for messages.
            what: What a record is called.
            whats: Several.
            prose: What a line looks like.

        Raises:
            DatasetError: the file is empty, or no line of it is a record.
        """
        if self.good:
            return self
        lines = len(self.bad) + self.passed_over
        if not lines:
            raise DatasetError(f"the file of {whats} is empty", where=str(path), hint=prose)
        first = f"; line {self.bad[0].line}: {self.bad[0].reason}" if self.bad else ""
        raise DatasetError(
            f"none of its {lines} lines is {what}{first}", where=str(path), hint=prose
        )


def read_records(
    path: Path,
    make: Callable[[Object], R | Bad | None],
    *,
    key: Callable[[R], Hashable],
    twice: Callable[[R, int], str],
) -> Records[R]:
    """Read JSON lines, plain or .gz, without blank ones; of records with one key the first counts.

    Args:
        path: The file.
        make: Makes a record of an object; None passes it over.
        key: What a record is about.
        twice: Says that a record is there twice, and where it was first.

    Raises:
        DatasetError: the file cannot be read.
    """
    good, bad, passed, seen = list[R](), list[BadRow](), 0, dict[Hashable, int]()
    with _opened(path) as file:
        for line in lines_of(iter_raw_lines(file)):
            if not line.raw.strip():
                continue
            found = object_in(line)
            made = found if isinstance(found, Bad) else make(found)
            if made is None:
                passed += 1
                continue
            if not isinstance(made, Bad):
                first = seen.setdefault(key(made), line.number)
                if first == line.number:
                    good.append(made)
                    continue
                made = Bad(twice(made, first))
            bad.append(bad_row(path.name, line.number, made.reason, line.raw))
    return Records(good=tuple(good), bad=tuple(bad), passed_over=passed)


def object_in(line: Line) -> Object | Bad:
    """Return the JSON object in a line, or why there is none."""
    if not line.valid:
        return Bad("the line is not UTF-8")
    try:
        values = json.loads(line.raw)
    except (ValueError, RecursionError) as error:
        return Bad(f"not JSON: {error}")
    return values if isinstance(values, dict) else Bad("JSON, but no object")


def made_of(model: type[M], values: Mapping[str, object]) -> M | Bad:
    """Return an object as a checked value, or the first thing that is wrong with it."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        return Bad(f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, packed or not; what goes wrong while it is read is told as well."""
    try:
        with open_file(path) as file:
            packed = path.suffix.lower() == _ENDING
            yield gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[misc]
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(
            f"the file cannot be read: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            hint="check the path, and that the file may be read and is whole",
        ) from None
