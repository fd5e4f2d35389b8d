"""Draws rows by hash, so that a draw is always the same, and a smaller one is part of it."""

import hashlib
import heapq
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def draw_lowest(rows: Iterable[T], most: int, *, id_of: Callable[[T], str], seed: int) -> list[T]:
    """Draw the rows with the lowest hashes of seed and id from a stream.

    A small draw is therefore the start of a larger one, and does not depend on the rows' order.
    """

    def place(row: T) -> bytes:
        return hashlib.sha256(f"{seed}\0{id_of(row)}".encode()).digest()

    return heapq.nsmallest(most, rows, key=place)
