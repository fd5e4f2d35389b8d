"""Lines of a text file as they are: cut at LF only, decoded one by one."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from coreeval.config import DatasetConfig
from coreeval.config.user_files import iter_raw_lines, open_file
from coreeval.errors import DatasetError

BOM = b"\xef\xbb\xbf"
CHUNK = 1 << 20


class Line(NamedTuple):
    """One line without its end."""

    number: int
    raw: str
    """The text; undecodable bytes are shown as replacement characters."""
    valid: bool
    """False where the bytes are not UTF-8."""


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file; U+2028 and other separators inside a line do not split it."""
    with _opened(path) as file:
        try:
            yield from lines_of(iter_raw_lines(file))
        except OSError as error:
            raise _unreadable(path, error) from None


def lines_of(raw_lines: Iterable[bytes]) -> Iterator[Line]:
    """Yield lines that were cut already, each with its end, decoded one by one."""
    for number, raw in enumerate(raw_lines, start=1):
        cut = raw.removeprefix(BOM) if number == 1 else raw
        yield _line(number, cut.removesuffix(b"\n").removesuffix(b"\r"))


def _opened(path: Path) -> BinaryIO:
    try:
        return open_file(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> DatasetError:
    return DatasetError(
        f"the file cannot be read: {error.strerror or error}",
        where=str(path),
        hint="check the path, and that the file may be read",
    )


def _line(number: int, raw: bytes) -> Line:
    try:
        return Line(number, raw.decode("utf-8"), valid=True)
    except UnicodeDecodeError:
        return Line(number, raw.decode("utf-8", "replace"), valid=False)


def file_digest(paths: Iterable[Path]) -> str:
    """Return the sha256 over the names, sizes and bytes of files, read in pieces."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with _opened(path) as file:
            while piece := file.read(CHUNK):
                digest.update(piece)
    return digest.hexdigest()


def digest_of(
    files: Callable[[DatasetConfig, str], list[Path]],
) -> Callable[[DatasetConfig, str], str]:
    """Return the digest function of a format from the one that lists a split's files."""
    return lambda config, split: file_digest(files(config, split))


def shown(path: Path, config: DatasetConfig) -> str:
    """Return how messages call a file: relative to the dataset's folder."""
    root = Path(config.path)
    return path.relative_to(root).as_posix() if path != root else path.name
