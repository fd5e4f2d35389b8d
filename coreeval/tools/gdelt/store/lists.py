"""The lists in GKG's columns, as bytes: where their items, names and offsets are, without a loop.

A column's lists are laid end to end; Arrow and numpy find the marks between their parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
END, HASH, COMMA = b";#,"
OFFSET_DIGITS = 9
"""More digits than any text has characters; what follows them is dropped."""


@dataclass(frozen=True, slots=True)
class Mentions:
    """Mentions of names in some rows, each with its row and its offset in the page."""

    row: Ints
    name: Any
    at: Ints


@dataclass(frozen=True, slots=True)
class Column:
    """The lists of some rows, one after the other."""

    text: bytes
    """Their items in UTF-8, each followed by a semicolon."""
    ends: Ints
    """Where the last semicolon of each row is."""

    def items(self) -> tuple[Ints, Any]:
        """Return the row of each item, and the items as Arrow's texts with their semicolons."""
        end = np.flatnonzero(self._bytes() == END)
        bounds = pa.py_buffer(np.concatenate([[0], end + 1]).astype(np.int32))
        buffers = [None, bounds, pa.py_buffer(self.text)]
        return self._rows(end), pa.Array.from_buffers(pa.string(), len(end), buffers)

    def named(self) -> Mentions:
        """Split `Name,offset;Name,offset`."""
        end, marks, last = self._marked(COMMA)
        start, mark = _after(end), marks[last - 1]  # of another item, if there is none in this one
        return self._mentions(start, mark, mark, end, (mark >= start) & (mark < end))

    def placed(self) -> Mentions:
        """Split `type#City, State, Country#…#offset;…` and keep the first part of each name."""
        end, marks, last = self._marked(HASH)
        first = _after(last)
        name = marks[first] + 1
        commas = np.append(np.flatnonzero(self._bytes() == COMMA), len(self.text))
        stop = np.minimum(marks[np.minimum(first + 1, last)], commas[commas.searchsorted(name)])
        return self._mentions(name, stop, marks[last - 1], end, last - first >= 2)

    def _bytes(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self.text, np.uint8)

    def _rows(self, end: Ints) -> Ints:
        counts = np.diff(end.searchsorted(self.ends), prepend=-1)
        return np.repeat(np.arange(len(counts)), counts)

    def _marked(self, mark: int) -> tuple[Ints, Ints, Ints]:
        """Return where items end, where all marks and ends are, and which of them are the ends."""
        text = self._bytes()
        marks = np.flatnonzero((text == mark) | (text == END))
        last = np.flatnonzero(text[marks] == END)
        return marks[last], marks, last

    def _mentions(self, name: Ints, stop: Ints, mark: Ints, end: Ints, whole: Flags) -> Mentions:
        """Take names, and the numbers that follow the marks, of the items that have both."""
        kept = np.flatnonzero(whole)
        offsets = self._texts(mark[kept] + 1, end[kept])
        numbers = pc.ascii_is_decimal(offsets)
        if not pc.all(numbers).as_py():
            kept, offsets = kept[numbers.to_numpy(zero_copy_only=False)], offsets.filter(numbers)
        if (end[kept] - mark[kept]).max(initial=0) > OFFSET_DIGITS + 1:
            offsets = pc.utf8_slice_codeunits(offsets, 0, OFFSET_DIGITS)
        at = pc.cast(offsets, pa.int64()).to_numpy()
        return Mentions(self._rows(end)[kept], self._texts(name[kept], stop[kept]), at)

    def _texts(self, start: Ints, end: Ints) -> Any:  # noqa: ANN401 - Arrow has no types
        """Return what is between places, which ascend: each second of the stretches they bound."""
        bounds = np.stack([start, end], axis=1).astype(np.int32)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.text)]
        texts = pa.Array.from_buffers(pa.string(), max(bounds.size - 1, 0), buffers)
        return texts.take(pa.array(np.arange(0, bounds.size, 2, dtype=np.int32)))


def _after(ends: Ints) -> Ints:
    """Return where each stretch begins: behind the end of the one before."""
    return np.concatenate([[0], ends[:-1] + 1])


def column(values: Sequence[bytes]) -> Column:
    """Lay the lists of some rows end to end; bad bytes become replacement characters.

    They are to have less than 2 GB then: Arrow counts the bytes of a column in 31 bits.
    """
    text = b";".join([*values, b""])
    try:
        text.decode()
    except UnicodeDecodeError:
        return column([value.decode("utf-8", "replace").encode() for value in values])
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    return Column(text, np.cumsum(lengths + 1) - 1)
