"""The files of a part: arrays mapped into memory, lists of numbers by key, texts in blocks.

Opening an array file reads almost nothing, and a few of a million texts can be read without the
rest. The inverted index consists of lists of numbers by key; their keys are texts.
"""

import json
import mmap
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pyarrow import Codec  # type: ignore[import-untyped]

MAGIC = b"coreeval arrays 2\n"
EARLIER = b"coreeval arrays 1\n"
"""The earlier form, with GDELT as the only source of news, which is still read."""
ALIGNED = 64
"""The alignment in bytes: each array starts at a multiple, so that it can be used in place."""
Arrays = dict[str, NDArray[Any]]


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one-dimensional arrays of numbers under their names.

    Raises:
        OSError: the file cannot be written; its `errno` says whether the disk is full.
    """
    little = {name: array.astype(array.dtype.newbyteorder("<"), copy=False)
              for name, array in arrays.items()}  # fmt: skip
    placed: dict[str, tuple[str, int, int, int]] = {}
    end = 0
    for name, array in little.items():
        placed[name] = array.dtype.str, end, array.size, zlib.crc32(array.data)
        end = _align(end + array.nbytes)
    header = json.dumps(placed).encode()
    with path.open("wb") as file:
        file.write(MAGIC + np.array([len(header), zlib.crc32(header)], "<u4").tobytes() + header)
        first = _align(file.tell())
        for name, (_, start, _, _) in placed.items():
            file.seek(first + start)
            file.write(little[name].data)  # `tofile` does not report a full disk
        file.truncate(first + end)


def open_arrays(path: Path, *, checked: bool = False) -> Arrays:
    """Return views of a file's arrays; the file stays mapped while one of them is alive.

    If `checked`, the whole file is read and its checksums are compared.

    Raises:
        OSError: there is no such file.
        ValueError: it is not such a file, is truncated, or is damaged in a part that was read.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = len(MAGIC) + 8
    if data[: len(MAGIC)] not in (MAGIC, EARLIER) or len(data) < start:
        raise ValueError(f"{path.name} is not in the format of this version")
    size, check = np.frombuffer(data, "<u4", 2, len(MAGIC)).tolist()
    header = data[start : start + size]
    if zlib.crc32(header) != check:
        raise ValueError(f"{path.name} is damaged")
    placed, first = json.loads(header), _align(start + size)
    ends = [at + count * np.dtype(kind).itemsize for kind, at, count, _ in placed.values()]
    if len(data) != first + _align(max(ends, default=0)):
        raise ValueError(f"{path.name} is truncated")
    arrays = {
        name: np.frombuffer(data, kind, count, first + at)
        for name, (kind, at, count, _) in placed.items()
    }
    if checked and any(zlib.crc32(arrays[name].data) != told[-1] for name, told in placed.items()):
        raise ValueError(f"{path.name} is damaged")
    return arrays


def _align(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


IN_A_BLOCK = 16
"""The number of records in a block: fewer compress worse, more make reading one record slower."""
MOST_BLOCK_BYTES = IN_A_BLOCK << 20
"""The most bytes of a block that is unpacked: 1 MiB for each record (own choice). The longest that
CoreEval writes have some hundred KiB."""
_LEVEL = 3
"""The zstd compression level."""


def write_records(path: Path, records: Iterable[str]) -> None:
    """Write records in order, one line of JSON each."""
    ends: list[int] = [0]
    sizes: list[int] = []
    lines = iter(records)
    codec = _open_codec()
    with path.open("wb") as file:
        while block := "\n".join(islice(lines, IN_A_BLOCK)).encode():
            ends.append(ends[-1] + file.write(codec.compress(block, asbytes=True)))
            sizes.append(len(block))
        file.write(np.array([*ends[1:], *sizes, len(sizes)], "<i8").tobytes())


@cache
def _open_codec() -> "Codec":
    from pyarrow import Codec  # takes 50 ms, only needed for stored texts

    return Codec("zstd", compression_level=_LEVEL)


class RecordFile:
    """The records of one file, by number; safe to read from several threads.

    Raises:
        OSError: there is no such file.
        ValueError: the file is truncated.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if hasattr(mmap, "MADV_RANDOM"):
            self._bytes.madvise(mmap.MADV_RANDOM)  # prevents reading far ahead
        index = len(self._bytes) - 8
        blocks = int.from_bytes(self._bytes[index:], "little", signed=True) if index >= 0 else -1
        start = index - 16 * blocks
        if not 0 <= start <= index:
            raise ValueError(f"{path.name} is truncated")
        both = np.frombuffer(self._bytes[start:index], "<i8")
        self._ends, self._sizes = both[:blocks], both[blocks:]
        if start != (self._ends[-1] if blocks else 0):
            raise ValueError(f"{path.name} is truncated")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._bytes.close()

    def read(self, number: int) -> Any:  # noqa: ANN401 - a line of JSON
        """Return the record with a number.

        Raises:
            ValueError: the file is damaged there.
            LookupError: there is no such record.
        """
        block, line = divmod(number, IN_A_BLOCK)
        return json.loads(self._unpack_block(block).split(b"\n")[line])

    def _unpack_block(self, block: int) -> bytes:
        start = self._ends[block - 1] if block else 0
        packed = self._bytes[start : self._ends[block]]
        try:
            if (size := int(self._sizes[block])) > MOST_BLOCK_BYTES:
                raise OSError(f"it has more than {MOST_BLOCK_BYTES >> 20} MiB")
            unpacked: bytes = _open_codec().decompress(packed, size, asbytes=True)
        except (OSError, MemoryError, SystemError) as error:  # the last record: a negative size
            raise ValueError(f"a block of texts is damaged: {error}") from None
        return unpacked


Items = NDArray[np.uint32]
Numbers = NDArray[np.uint32]
Flags = NDArray[np.bool_]
KEY = np.uint64(32)
"""The number of bits below the key in numbers that combine key and item, so that sorting sorts
both."""
STRETCH = 128
"""The interval of the texts kept in memory, so that finding a text decodes only a few."""
_ONE = np.uint32(1)


class Strings(Sequence[str]):
    """Texts by number and, if they are sorted, numbers by text."""

    def __init__(self, starts: NDArray[np.uint32], text: NDArray[np.uint8]) -> None:
        self._starts, self._text = starts.data, text.data

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> str:  # type: ignore[override]
        return str(self.encode(number), "utf-8")

    def encode(self, number: int) -> bytes:
        """Return a text in UTF-8, which sorts in the order of the texts here."""
        return bytes(self._text[self._starts[number] : self._starts[number + 1]])

    @cached_property
    def _signposts(self) -> list[bytes]:
        return [self.encode(number) for number in range(0, len(self), STRETCH)]

    def find(self, text: str) -> int | None:
        """Return the number of a text among sorted texts; None if it is not there."""
        wanted = text.encode()
        stretch = max(bisect_right(self._signposts, wanted) - 1, 0) * STRETCH
        ahead = range(stretch, min(stretch + STRETCH, len(self)))
        at = stretch + bisect_left(ahead, wanted, key=self.encode)
        return at if at < len(self) and self.encode(at) == wanted else None


def to_string_arrays(name: str, texts: Iterable[str]) -> Arrays:
    """Return the arrays that store a `Strings`."""
    import pyarrow as pa  # slow to import, only needed to build parts

    column = pa.array(texts, pa.string())
    if not len(column):
        return {f"{name}_starts": np.zeros(1, "<u4"), f"{name}_text": np.zeros(0, "u1")}
    _, starts, text = column.buffers()
    ends = np.frombuffer(starts, "<i4", len(column) + 1)
    return {
        f"{name}_starts": ends.astype("<u4"),
        f"{name}_text": np.frombuffer(text, "u1", ends[-1]),
    }


@dataclass(frozen=True, slots=True)
class Postings:
    """The lists of some keys, which are numbers starting at 0."""

    starts: NDArray[np.uint32]
    items: Items

    def of(self, key: int) -> Items:
        """Return the list of a key."""
        return self.items[self.starts[key] : self.starts[key + 1]]

    def counts(self, keys: Numbers) -> NDArray[np.int64]:
        """Return the lengths of the lists of some keys."""
        sizes: NDArray[np.int64] = self.starts[keys + _ONE].astype(np.int64) - self.starts[keys]
        return sizes


def to_posting_arrays(name: str, packed: NDArray[np.uint64], keys: int) -> Arrays:
    """Return the arrays of `Postings` for `keys` keys from sorted numbers `key << 32 | item`."""
    borders = np.arange(keys + 1, dtype=np.uint64) << KEY
    return {
        f"{name}_starts": packed.searchsorted(borders).astype("<u4"),
        name: packed.astype("<u4"),  # drops the key
    }


def find_members(items: Items, numbers: Numbers) -> tuple[Flags, Flags]:
    """Return whether each number is in a nonempty list, and the flag that it has there."""
    at = items.searchsorted(numbers << _ONE)
    found = items[np.minimum(at, len(items) - 1, out=at)]
    return found >> _ONE == numbers, (found & _ONE).astype(bool)
