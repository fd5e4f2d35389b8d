"""What differs between two texts, word by word."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from coreeval.schema import Value

UNSPACED = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Ranges of characters of scripts that need no blanks: Han, kana, Hangul; each is about a word."""
_LETTERS = rf"(?:(?![{UNSPACED}])\w)+"
_JOINED = rf"{_LETTERS}(?:['\u2019-]{_LETTERS})*"
_WORD = re.compile(rf"(?:[{UNSPACED}]|{_JOINED}|[^\w\s])\s*|\s+")
"""A word or a sign with the space after it, so that whole phrases differ in one piece."""


MOST_PAIRS = 1_000_000
"""Pairs of words that are compared, which takes about a second at the worst; the time grows with
their number, so that what differs of longer texts is one piece."""


class Piece(Value):
    """A part of one of two texts, or of both."""

    op: Literal["same", "removed", "added"]
    text: str


def word_diff(before: str, after: str) -> tuple[Piece, ...]:
    """Return the pieces: all but those added make `before`, all but those removed `after`."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    middle = _pieces(old[start : len(old) - end], new[start : len(new) - end])
    pieces = (*_same(old[:start]), *middle, *_same(old[len(old) - end :]))
    return tuple(pieces)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many words both begin with."""
    pairs = zip(old, new, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _pieces(old: Sequence[str], new: Sequence[str]) -> Iterator[Piece]:
    if len(old) * len(new) > MOST_PAIRS:
        yield from (Piece(op="removed", text="".join(old)), Piece(op="added", text="".join(new)))
        return
    for op, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if op == "equal":
            yield from _same(old[i:j])
            continue
        if i < j:
            yield Piece(op="removed", text="".join(old[i:j]))
        if k < m:
            yield Piece(op="added", text="".join(new[k:m]))


def _same(words: Sequence[str]) -> Iterator[Piece]:
    if words:
        yield Piece(op="same", text="".join(words))
