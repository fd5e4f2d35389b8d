"""A file of named arrays, mapped into memory: opening it reads next to nothing.

It begins with `MAGIC`, the size of a header and the header's CRC-32 (both `<u4`). The header is
JSON: each array's type, where it starts, how many items it has and its CRC-32. Numbers are
little-endian.
"""

import json
import mmap
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"coreeval arrays 1\n"
ALIGNED = 64
"""Bytes: each array starts at a multiple, so that the processor reads it as it stands."""
Arrays = dict[str, NDArray[Any]]


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one-dimensional arrays of numbers, each under its name."""
    little = {name: array.astype(array.dtype.newbyteorder("<"), copy=False)
              for name, array in arrays.items()}  # fmt: skip
    placed: dict[str, tuple[str, int, int, int]] = {}
    end = 0
    for name, array in little.items():
        placed[name] = array.dtype.str, end, array.size, zlib.crc32(array.data)
        end = _aligned(end + array.nbytes)
    header = json.dumps(placed).encode()
    with path.open("wb") as file:
        file.write(MAGIC + np.array([len(header), zlib.crc32(header)], "<u4").tobytes() + header)
        first = _aligned(file.tell())
        for name, (_, start, _, _) in placed.items():
            file.seek(first + start)
            little[name].tofile(file)
        file.truncate(first + end)


def open_arrays(path: Path, *, checked: bool = False) -> Arrays:
    """Return views of a file's arrays; they keep it mapped for as long as one of them lives.

    `checked` reads all of the file and compares its sums.

    Raises:
        OSError: there is no such file.
        ValueError: it is no such file, is cut short or is damaged where it was read.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = len(MAGIC) + 8
    if data[: len(MAGIC)] != MAGIC or len(data) < start:
        raise ValueError(f"{path.name} is not in the format of this version")
    size, check = np.frombuffer(data, "<u4", 2, len(MAGIC)).tolist()
    header = data[start : start + size]
    if zlib.crc32(header) != check:
        raise ValueError(f"{path.name} is damaged")
    placed, first = json.loads(header), _aligned(start + size)
    ends = [at + count * np.dtype(kind).itemsize for kind, at, count, _ in placed.values()]
    if len(data) != first + _aligned(max(ends, default=0)):
        raise ValueError(f"{path.name} is cut short")
    arrays = {
        name: np.frombuffer(data, kind, count, first + at)
        for name, (kind, at, count, _) in placed.items()
    }
    if checked and any(zlib.crc32(arrays[name].data) != told[-1] for name, told in placed.items()):
        raise ValueError(f"{path.name} is damaged")
    return arrays


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
