"""The texts of a part: a file from which a few of a million are read without reading the rest.

Parquet unpacks thousands of titles to return one. Here some records make a block, packed with zstd;
the file ends with where each block ends and how long it is unpacked, then with their number.
"""

import json
import mmap
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

IN_A_BLOCK = 16
"""Records: fewer pack worse, more cost longer to unpack for one of them."""
_CODEC = "zstd"


def write_texts(path: Path, records: Iterable[str]) -> None:
    """Write records, a line of JSON each, in order."""
    ends: list[int] = [0]
    sizes: list[int] = []
    lines = iter(records)
    codec = pa.Codec(_CODEC, 3)
    with path.open("wb") as file:
        while block := "\n".join(islice(lines, IN_A_BLOCK)).encode():
            ends.append(ends[-1] + file.write(codec.compress(block, asbytes=True)))
            sizes.append(len(block))
        file.write(np.array([*ends[1:], *sizes, len(sizes)], "<i8").tobytes())


class Texts:
    """The records of one file, by number; safe to read from several threads."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (blocks,) = np.frombuffer(self._bytes[-8:], "<i8")
        index = np.frombuffer(self._bytes[-8 - 16 * blocks : -8], "<i8")
        self._ends, self._sizes = index[:blocks], index[blocks:]
        self._codec = pa.Codec(_CODEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._bytes.close()

    def read(self, numbers: Iterable[int]) -> Iterator[list[Any]]:
        """Yield the records with these numbers, in the order asked for."""
        for number in numbers:
            block, line = divmod(number, IN_A_BLOCK)
            yield json.loads(self._unpacked(block).split(b"\n")[line])

    def _unpacked(self, block: int) -> bytes:
        start = self._ends[block - 1] if block else 0
        packed = self._bytes[start : self._ends[block]]
        return bytes(self._codec.decompress(packed, int(self._sizes[block]), asbytes=True))
