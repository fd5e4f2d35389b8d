"""Texts as sets of short runs of characters (shingles), which two similar texts have in common.

The resemblance of two texts is the Jaccard index of their sets (Broder 1997, "On the resemblance
and containment of documents"). It survives another order of the parts, such as shuffled options.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.overlap.runs import Codes, distinct, encode, hash_runs

if TYPE_CHECKING:
    from coreeval.evaluation.overlap.boilerplate import Boilerplate

WIDTH, WIDTH_UNSPACED = 4, 2
"""Characters of a shingle; two if it begins with Han, kana or Hangul: docs/overlap.md."""
CHUNK = 1 << 20
"""Characters that are cut at once: bounds memory."""

Hashes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shingles:
    """The shingles of many texts, one text after the other."""

    hashes: Hashes
    """Hash of each shingle, once for each text that has it, in order within the text."""
    starts: Places
    """Where each text begins in `hashes`, and the end of the last."""

    @property
    def sizes(self) -> Places:
        """How many shingles each text has."""
        return np.diff(self.starts)

    def without(self, dropped: Hashes) -> "Shingles":
        """Return the sets without some shingles, given in order."""
        if not len(dropped):
            return self
        at = np.searchsorted(dropped, self.hashes).clip(max=len(dropped) - 1)
        return self._kept(dropped[at] != self.hashes)

    def only(self, texts: npt.NDArray[np.bool_]) -> "Shingles":
        """Return the sets of the texts that are marked."""
        kept = self._kept(np.repeat(texts, self.sizes))
        return Shingles(kept.hashes, np.append(kept.starts[:-1][texts], kept.starts[-1]))

    def _kept(self, keep: npt.NDArray[np.bool_]) -> "Shingles":
        before = np.concatenate([[0], np.cumsum(keep)])
        return Shingles(self.hashes[keep], before[self.starts])

    def rows(self, places: Places) -> tuple[Places, Hashes]:
        """Return the shingles of some texts, each with the number of its text among them."""
        sizes = self.sizes[places]
        owners = np.repeat(np.arange(len(places)), sizes)
        before = np.repeat(np.cumsum(sizes) - sizes, sizes)
        return owners, self.hashes[self.starts[places][owners] + np.arange(len(owners)) - before]

    def frequent(self, share: float, floor: int) -> Hashes:
        """Return those that more than a share of the texts and more than `floor` have, in order."""
        hashes, counts = distinct(self.hashes)
        return hashes[counts > max(floor, share * len(self.sizes))]


def shingles_of(texts: Sequence[str], boilerplate: "Boilerplate | None" = None) -> Shingles:
    """Cut texts, as `plain_words` returns them, into shingles.

    Args:
        texts: Texts.
        boilerplate: Passages that are left out.
    """
    parts = [_cut(chunk, boilerplate) for chunk in chunks_of(texts)]
    offsets = np.cumsum([0, *(len(part.hashes) for part in parts)])
    starts = [part.starts[:-1] + offset for part, offset in zip(parts, offsets[:-1], strict=True)]
    empty = np.zeros(0, np.uint32)
    return Shingles(
        np.concatenate([empty, *(part.hashes for part in parts)]),
        np.concatenate([*starts, offsets[-1:]]).astype(np.int64),
    )


def chunks_of(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the texts in order, about `CHUNK` characters at a time."""
    bounds, room = [], 0
    for place, text in enumerate(texts):
        if room <= 0:
            bounds.append(place)
            room = CHUNK
        room -= len(text) + 1
    for start, end in pairwise([*bounds, len(texts)]):
        yield texts[start:end]


def _cut(texts: Sequence[str], boilerplate: "Boilerplate | None") -> Shingles:
    codes, owners = encode(texts)
    if boilerplate is not None:
        codes = boilerplate.blank(codes)
    hashes, whole = hash_runs(codes, WIDTH, WIDTH_UNSPACED)
    return sets_of(hashes[whole], owners[whole], len(texts))


def sets_of(hashes: Codes, owners: Places, texts: int) -> Shingles:
    """Return the upper half of each hash, once for each text that has it."""
    found, _ = distinct(owners.astype(np.uint64) << 32 | hashes >> 32)
    starts = np.searchsorted((found >> 32).astype(np.int64), np.arange(texts + 1))
    return Shingles((found & 0xFFFFFFFF).astype(np.uint32), starts.astype(np.int64))
