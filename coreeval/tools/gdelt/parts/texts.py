"""The texts of a part: a file from which a few of a million are read without reading the rest.

Parquet unpacks thousands of titles to return one. Here some records make a block, packed with zstd;
the file ends with where each block ends and how long it is unpacked, then with their number.
"""

import json
import mmap
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import zstandard

IN_A_BLOCK = 16
"""Records: fewer pack worse, more cost longer to unpack for one of them."""
_LEVEL = 3
"""Of zstd."""


def write_texts(path: Path, records: Iterable[str]) -> None:
    """Write records, a line of JSON each, in order."""
    ends: list[int] = [0]
    sizes: list[int] = []
    lines = iter(records)
    packer = zstandard.ZstdCompressor(_LEVEL)
    with path.open("wb") as file:
        while block := "\n".join(islice(lines, IN_A_BLOCK)).encode():
            ends.append(ends[-1] + file.write(packer.compress(block)))
            sizes.append(len(block))
        file.write(np.array([*ends[1:], *sizes, len(sizes)], "<i8").tobytes())


class Texts:
    """The records of one file, by number; safe to read from several threads.

    Raises:
        OSError: there is no such file.
        ValueError: it is cut short.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if hasattr(mmap, "MADV_RANDOM"):
            self._bytes.madvise(mmap.MADV_RANDOM)  # or the system reads far ahead of each record
        index = len(self._bytes) - 8
        blocks = int.from_bytes(self._bytes[index:], "little", signed=True) if index >= 0 else -1
        start = index - 16 * blocks
        if not 0 <= start <= index:
            raise ValueError(f"{path.name} is cut short")
        both = np.frombuffer(self._bytes[start:index], "<i8")
        self._ends, self._sizes = both[:blocks], both[blocks:]
        if start != (self._ends[-1] if blocks else 0):
            raise ValueError(f"{path.name} is cut short")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._bytes.close()

    def read(self, number: int) -> Any:  # noqa: ANN401 - a line of JSON
        """Return the record with a number.

        Raises:
            ValueError: the file is damaged there.
            LookupError: there is no such record.
        """
        block, line = divmod(number, IN_A_BLOCK)
        return json.loads(self._unpacked(block).split(b"\n")[line])

    def _unpacked(self, block: int) -> bytes:
        start = self._ends[block - 1] if block else 0
        packed = self._bytes[start : self._ends[block]]
        try:
            return zstandard.decompress(packed, max_output_size=int(self._sizes[block]))
        except zstandard.ZstdError as error:
            raise ValueError(f"a block of texts is damaged: {error}") from None
