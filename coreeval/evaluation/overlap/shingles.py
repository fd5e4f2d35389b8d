"""Texts as sets of short runs of characters (shingles), which two similar texts have in common.

The resemblance of two texts is the Jaccard index of their sets (Broder 1997, "On the resemblance
and containment of documents"). It survives another order of the parts, such as shuffled options.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

WIDTH, WIDTH_UNSPACED = 4, 2
"""Characters of a shingle; two where it begins with Han, kana or Hangul: docs/overlap.md."""
CHUNK = 1 << 20
"""Characters that are cut at once: bounds memory."""
_UNSPACED = ((0x2E80, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64
)
"""Odd numbers without a pattern: one for each place of a shingle."""

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
        hashes, counts = np.unique(self.hashes, return_counts=True)
        return hashes[counts > max(floor, share * len(self.sizes))]


def shingles_of(texts: Sequence[str]) -> Shingles:
    """Cut texts, as `plain_words` returns them, into shingles."""
    parts = [_cut(texts[start:end]) for start, end in pairwise(_chunks(texts))]
    offsets = np.cumsum([0, *(len(part.hashes) for part in parts)])
    starts = [part.starts[:-1] + offset for part, offset in zip(parts, offsets[:-1], strict=True)]
    empty = np.zeros(0, np.uint32)
    return Shingles(
        np.concatenate([empty, *(part.hashes for part in parts)]),
        np.concatenate([*starts, offsets[-1:]]).astype(np.int64),
    )


def _chunks(texts: Sequence[str]) -> Iterator[int]:
    """Yield the bounds of runs of texts with about `CHUNK` characters each."""
    room = 0
    for place, text in enumerate(texts):
        if room <= 0:
            yield place
            room = CHUNK
        room -= len(text) + WIDTH
    yield len(texts)


def _cut(texts: Sequence[str]) -> Shingles:
    gap = "\0" * WIDTH
    joined = gap.join([*texts, ""]).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, np.uint32).astype(np.uint64)
    owners = np.repeat(np.arange(len(texts)), [len(text) + WIDTH for text in texts])
    last = len(codes) - WIDTH
    place = np.arange(max(last, 0))
    unspaced = np.zeros(len(place), bool)
    for low, high in _UNSPACED:
        unspaced |= (codes[place] >= low) & (codes[place] <= high)
    mixed = sum(codes[place + at] * _FACTORS[at] for at in range(WIDTH_UNSPACED))
    longer = sum(codes[place + at] * _FACTORS[at] for at in range(WIDTH_UNSPACED, WIDTH))
    mixed = np.where(unspaced, mixed, mixed + longer)
    ends = place + np.where(unspaced, WIDTH_UNSPACED, WIDTH) - 1
    whole = (codes[place] != 0) & (codes[ends] != 0)
    found = np.unique((owners[place].astype(np.uint64) << 32 | _scrambled(mixed))[whole])
    return Shingles(
        (found & 0xFFFFFFFF).astype(np.uint32),
        _starts((found >> 32).astype(np.int64), len(texts)),
    )


def _scrambled(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return 32 bits of each, all of which depend on all of its own."""
    values = (values ^ (values >> 32)) * _FACTORS[0]
    mixed: npt.NDArray[np.uint64] = (values ^ (values >> 29)) * _FACTORS[1] >> 32
    return mixed


def _starts(owners: Places, texts: int) -> Places:
    return np.searchsorted(owners, np.arange(texts + 1)).astype(np.int64)
