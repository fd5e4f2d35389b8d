"""Streams in pieces of a bounded size."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield items in lists of `size`, the last of which may be shorter."""
    left = iter(items)
    while chunk := list(islice(left, size)):
        yield chunk
