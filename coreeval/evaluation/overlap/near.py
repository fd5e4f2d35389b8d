"""Texts that resemble each other: candidates by MinHash, each then compared in full."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.overlap.boilerplate import FORM_FLOOR, FORM_SHARE, Boilerplate
from coreeval.evaluation.overlap.minhash import FINE, Banding, Signatures, candidates, signatures
from coreeval.evaluation.overlap.normal import plain_words
from coreeval.evaluation.overlap.shingles import Places, Shingles, shingles_of

LEAST = 8
"""Shingles that a text needs: with fewer, chance alone makes two texts alike."""
ERRORS = 3
"""Standard errors below the threshold from which an estimate is not followed up."""
_WORK = 1 << 22
"""Shingles that are compared at once: bounds memory."""


@dataclass(frozen=True)
class NearPairs:
    """Pairs of places of texts and their resemblance."""

    pairs: tuple[tuple[int, int, float], ...]
    short: tuple[int, int]
    """Texts of either side that are too short for it; of one benchmark, the same ones twice."""
    crowded: int
    """Buckets in which not each text was compared with each."""


@dataclass(frozen=True)
class _Side:
    places: Places
    shingles: Shingles
    signatures: Signatures


def near_pairs(left: Sequence[str], right: Sequence[str] | None, threshold: float) -> NearPairs:
    """Return the pairs between two lists of texts, or within one, that resemble each other.

    What many texts of the lists share does not count.

    Args:
        left: Texts.
        right: Other texts; None for pairs within the first.
        threshold: The least Jaccard index of their shingles.
    """
    sides = [[plain_words(text) for text in each] for each in (left, right) if each is not None]
    boilerplate = Boilerplate(sides)
    cut = [shingles_of(each, boilerplate) for each in sides]
    form = np.unique(np.concatenate([each.frequent(FORM_SHARE, FORM_FLOOR) for each in cut]))
    return resembling([each.without(form) for each in cut], threshold, FINE)


def resembling(cut: list[Shingles], threshold: float, banding: Banding) -> NearPairs:
    """Return the pairs between two lists of sets, or within one, that are alike.

    Args:
        cut: The sets of either side, or of one; the list is emptied, so that memory is free again.
        threshold: The least Jaccard index.
        banding: How candidates are found.
    """
    lengths = [len(each.sizes) for each in cut]
    sides = [_side(cut.pop(0), banding) for _ in lengths]
    one, other = sides[0], sides[-1]
    error = np.sqrt(threshold * (1 - threshold) / banding.hashes)
    found = candidates(
        one.signatures,
        None if len(sides) == 1 else other.signatures,
        banding,
        threshold - ERRORS * error,
    )
    pairs = [
        (int(one.places[i]), int(other.places[j]), float(resemblance))
        for i, j, resemblance in _compared(one, other, found.left, found.right, threshold)
    ]
    short = (lengths[0] - len(one.places), lengths[-1] - len(other.places))
    return NearPairs(tuple(pairs), short, found.crowded)


def _side(cut: Shingles, banding: Banding) -> _Side:
    enough = cut.sizes >= LEAST
    kept = cut.only(enough)
    return _Side(np.flatnonzero(enough), kept, signatures(kept, banding))


def _compared(
    one: _Side, other: _Side, left: Places, right: Places, threshold: float
) -> Iterator[tuple[int, int, float]]:
    """Yield the candidates at or above the threshold."""
    for low, high in _runs(one.shingles.sizes[left] + other.shingles.sizes[right]):
        yield from _above(one, other, left[low:high], right[low:high], threshold)


def _runs(sizes: Places) -> Iterator[tuple[int, int]]:
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = ends[first - 1] if first else 0
        end = max(int(np.searchsorted(ends, before + _WORK, side="right")), first + 1)
        yield first, end
        first = end


def _above(
    one: _Side, other: _Side, i: Places, j: Places, threshold: float
) -> Iterator[tuple[int, int, float]]:
    index = jaccard(one.shingles, i, other.shingles, j)
    keep = np.flatnonzero(index >= threshold)
    yield from zip(i[keep].tolist(), j[keep].tolist(), index[keep].tolist(), strict=True)


def jaccard(left: Shingles, i: Places, right: Shingles, j: Places) -> npt.NDArray[np.float64]:
    """Return the share of the shingles of each pair of texts that both have."""
    keys = [
        owners.astype(np.uint64) << 32 | hashes for owners, hashes in (left.rows(i), right.rows(j))
    ]
    merged = np.sort(np.concatenate(keys))
    shared = merged[1:][merged[1:] == merged[:-1]] >> 32
    both = np.bincount(shared.astype(np.int64), minlength=len(i))
    index: npt.NDArray[np.float64] = both / np.maximum(left.sizes[i] + right.sizes[j] - both, 1)
    return index
