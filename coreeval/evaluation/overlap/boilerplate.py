"""Passages that many items of a benchmark share: instructions, templates, set phrases.

They say how a benchmark asks, not what it asks; texts that are alike in nothing else are no copies.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.overlap.runs import (
    Codes,
    Owners,
    distinct,
    encode,
    hash_runs,
    is_unspaced,
)
from coreeval.evaluation.overlap.shingles import chunks_of

RUN, RUN_UNSPACED = 16, 6
"""Characters of a passage at least: about three words."""
SHARE, FLOOR = 0.005, 5
"""A run is boilerplate if more than 5 texts and more than 0.5 % of each side have it: an item that
one side has many times is not."""
FORM_SHARE, FORM_FLOOR = 0.2, 10
"""It is also if more than 10 texts and a fifth of either side have it: an instruction."""
_CELLS = 1 << 27
"""Most counters of a side: bounds memory; more runs than that share some."""

Counts = npt.NDArray[np.uint32]
Encode = Callable[[Sequence[str]], tuple[Codes, Owners]]


class Boilerplate:
    """The runs that many texts have.

    Args:
        sides: The texts of either side, or of one.
        encode: What gives the characters of some texts, a zero after each, and the text of each.

    Runs are counted by hash (a count-min sketch of one row, Cormode and Muthukrishnan 2005), four
    counters a character, so that memory does not grow with the number of different runs.
    """

    def __init__(self, sides: Sequence[Sequence[str]], encode: Encode = encode) -> None:
        self._encode = encode
        characters = sum(len(text) for texts in sides for text in texts)
        self._cells = min(_CELLS, 1 << int(4 * characters + 1024).bit_length())
        self._marked = np.ones(self._cells, bool)
        form = np.zeros(self._cells, bool)
        for texts in sides:
            counts = self._counts(texts)
            self._marked &= counts > max(FLOOR, SHARE * len(texts))
            form |= counts > max(FORM_FLOOR, FORM_SHARE * len(texts))
        self._marked |= form

    def _counts(self, texts: Sequence[str]) -> Counts:
        """Return how many texts have a run, by cell."""
        counts = np.zeros(self._cells, np.uint32)
        for chunk in chunks_of(texts):
            codes, owners = self._encode(chunk)
            cells, whole = self._runs(codes)
            once, _ = distinct(owners[whole] * self._cells + cells[whole])
            found, texts_with = distinct(once % self._cells)
            counts[found] += texts_with.astype(np.uint32)
        return counts

    def _runs(self, codes: Codes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        hashes, whole = hash_runs(codes, RUN, RUN_UNSPACED)
        return (hashes % np.uint64(self._cells)).astype(np.int64), whole

    def blank(self, codes: Codes) -> Codes:
        """Return characters with a zero in place of each that is part of boilerplate."""
        cells, whole = self._runs(codes)
        begin = np.flatnonzero(whole & self._marked[cells])
        if not len(begin):
            return codes
        width = np.where(is_unspaced(codes[begin]), RUN_UNSPACED, RUN)
        steps = np.bincount(begin, minlength=len(codes) + RUN + 1).astype(np.int64)
        steps -= np.bincount(begin + width, minlength=len(codes) + RUN + 1)
        return np.where(np.cumsum(steps)[: len(codes)] > 0, np.uint64(0), codes)
