"""Lists of numbers by key, the heart of an inverted index, and the texts that are their keys.

An item of a list is a number and a flag in one: `number << 1 | flag`. The items of a list ascend.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coreeval.tools.gdelt.parts.arrays import Arrays

Items = NDArray[np.uint32]
Numbers = NDArray[np.uint32]
Flags = NDArray[np.bool_]
KEY = np.uint64(32)
"""Bits below the key where a key and an item are one number, so that sorting sorts both."""
STRETCH = 128
"""Every so many texts one is kept at hand, so that few are unpacked to find another."""
_ONE = np.uint32(1)


class Strings(Sequence[str]):
    """Texts by number; where they are sorted, numbers by text."""

    def __init__(self, starts: NDArray[np.uint32], text: NDArray[np.uint8]) -> None:
        self._starts, self._text = starts.data, text.data

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> str:  # type: ignore[override]
        return str(self.encoded(number), "utf-8")

    def encoded(self, number: int) -> bytes:
        """Return a text in UTF-8, which sorts as texts do here."""
        return bytes(self._text[self._starts[number] : self._starts[number + 1]])

    @cached_property
    def _signposts(self) -> list[bytes]:
        return [self.encoded(number) for number in range(0, len(self), STRETCH)]

    def find(self, text: str) -> int | None:
        """Return the number of a text that is among sorted ones."""
        wanted = text.encode()
        stretch = max(bisect_right(self._signposts, wanted) - 1, 0) * STRETCH
        ahead = range(stretch, min(stretch + STRETCH, len(self)))
        at = stretch + bisect_left(ahead, wanted, key=self.encoded)
        return at if at < len(self) and self.encoded(at) == wanted else None


def string_arrays(name: str, texts: Iterable[str]) -> Arrays:
    """Return the arrays of `Strings`, to be written."""
    import pyarrow as pa  # type: ignore[import-untyped]  # slow to import, for making parts only

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
    """The lists of some keys, which are numbers from 0."""

    starts: NDArray[np.uint32]
    items: Items

    def of(self, key: int) -> Items:
        """Return the list of a key."""
        return self.items[self.starts[key] : self.starts[key + 1]]

    def counts(self, keys: Numbers) -> NDArray[np.int64]:
        """Return how long the lists of some keys are."""
        sizes: NDArray[np.int64] = self.starts[keys + _ONE].astype(np.int64) - self.starts[keys]
        return sizes


def posting_arrays(name: str, packed: NDArray[np.uint64], keys: int) -> Arrays:
    """Return the arrays of `Postings` of `keys` keys from numbers `key << 32 | item`, sorted."""
    borders = np.arange(keys + 1, dtype=np.uint64) << KEY
    return {
        f"{name}_starts": packed.searchsorted(borders).astype("<u4"),
        name: packed.astype("<u4"),  # drops the key
    }


def members(items: Items, numbers: Numbers) -> tuple[Flags, Flags]:
    """Tell of each number whether it is in a list that is not empty, and the flag that it has."""
    at = items.searchsorted(numbers << _ONE)
    found = items[np.minimum(at, len(items) - 1, out=at)]
    return found >> _ONE == numbers, (found & _ONE).astype(bool)
