"""What differs between two texts, word by word."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal

from coreeval.schema import Value

_WORD = re.compile(r"(?:\w+(?:['\N{RIGHT SINGLE QUOTATION MARK}-]\w+)*|[^\w\s])\s*|\s+")
"""A word or a sign with the space after it, so that whole phrases differ in one piece."""


class Piece(Value):
    """A part of one of two texts, or of both."""

    op: Literal["same", "removed", "added"]
    text: str


def word_diff(before: str, after: str) -> tuple[Piece, ...]:
    """Return the pieces: all but those added make `before`, all but those removed `after`."""
    return tuple(_pieces(_WORD.findall(before), _WORD.findall(after)))


def _pieces(old: list[str], new: list[str]) -> Iterator[Piece]:
    for op, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if op == "equal":
            yield Piece(op="same", text="".join(old[i:j]))
            continue
        if i < j:
            yield Piece(op="removed", text="".join(old[i:j]))
        if k < m:
            yield Piece(op="added", text="".join(new[k:m]))
