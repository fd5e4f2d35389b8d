"""What differs between two texts, word by word."""

import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal

from coreeval.schema import Value

_WORD = re.compile(r"(?:\w+(?:['\N{RIGHT SINGLE QUOTATION MARK}-]\w+)*|[^\w\s])\s*|\s+")
"""A word or a sign with the space after it, so that whole phrases differ in one piece."""
MOST_PAIRS = 1_000_000
"""Pairs of equal words in two texts from which the middle of both counts as one piece: to compare
them takes time for each pair, a sixth of a second for so many."""


class Piece(Value):
    """A part of one of two texts, or of both."""

    op: Literal["same", "removed", "added"]
    text: str


def word_diff(before: str, after: str) -> tuple[Piece, ...]:
    """Return the pieces: all but those added make `before`, all but those removed `after`."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    counts = Counter(new)
    if sum(number * counts[word] for word, number in Counter(old).items()) > MOST_PAIRS:
        return tuple(_ends(old, new))
    return tuple(_pieces(old, new))


def _pieces(old: list[str], new: list[str]) -> Iterator[Piece]:
    for op, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if op == "equal":
            yield Piece(op="same", text="".join(old[i:j]))
        else:
            yield from _differing(old[i:j], new[k:m])


def _ends(old: list[str], new: list[str]) -> Iterator[Piece]:
    """Yield what both texts begin with, their middles, and what both end with."""
    shorter = min(len(old), len(new))
    start = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    left = shorter - start
    end = next((n for n in range(left) if old[-1 - n] != new[-1 - n]), left)
    if start:
        yield Piece(op="same", text="".join(old[:start]))
    yield from _differing(old[start : len(old) - end], new[start : len(new) - end])
    if end:
        yield Piece(op="same", text="".join(old[len(old) - end :]))


def _differing(old: list[str], new: list[str]) -> Iterator[Piece]:
    if old:
        yield Piece(op="removed", text="".join(old))
    if new:
        yield Piece(op="added", text="".join(new))
