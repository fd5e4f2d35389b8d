"""Finds pairs of similar texts among very many, without comparing all pairs.

MinHash (Broder 1997): two sets have the same least element under a random hash with a probability
equal to their Jaccard index. Banding (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets",
section 3.4): with b bands of r hashes each, two sets with the index J are candidates with
probability 1 - (1 - J^r)^b. Each candidate is then compared in full.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.overlap.shingles import (
    FORM_FLOOR,
    FORM_SHARE,
    Boilerplate,
    Places,
    Shingles,
    cut_shingles,
    normalise_words,
)


@dataclass(frozen=True)
class Banding:
    """The number of hashes of a set, and the number that must agree."""

    bands: int
    rows: int
    """The number of hashes of a band."""

    @property
    def hashes(self) -> int:
        """Return the number of hashes of a set."""
        return self.bands * self.rows


FINE = Banding(64, 3)
"""The banding for similarity from 0.4: 98.5 % of such pairs are candidates, 99.98 % at 0.5, 6 % at
0.1."""
COARSE = Banding(16, 4)
"""The banding for similarity from 0.6: 89 % of such pairs are candidates, 98.8 % at 0.7, 99.98 % at
0.8."""
CROWD = 10_000
"""The most pairs in a bucket; beyond it, texts are only compared with the first text of each
side."""
_SEED = 20260101
_SIGNATURE_WORK = 1 << 16
"""The number of shingles hashed at once, which fit into a core's cache."""
_BATCH = 20_000
"""The number of pairs whose hashes are compared at once, to limit memory."""

Signatures = npt.NDArray[np.uint32]
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class CandidatePairs:
    """Pairs to compare."""

    left: Places
    right: Places
    crowded: int
    """The number of buckets from which not every pair is included."""


def sign_sets(shingles: Shingles, banding: Banding) -> Signatures:
    """Return the minimum hashes of non-empty sets, of shape (texts, hashes).

    The hashes are multiply-shift (Dietzfelbinger 1996) with a fixed seed: the same for all sets.
    """
    rng = np.random.default_rng(_SEED)
    factors = rng.integers(0, 1 << 63, banding.hashes, np.uint64) * np.uint64(2) + np.uint64(1)
    shifts = rng.integers(0, 1 << 63, banding.hashes, np.uint64)
    found = np.empty((len(shingles.sizes), banding.hashes), np.uint32)
    for first, end in _signature_runs(shingles.starts):
        low, high = shingles.starts[first], shingles.starts[end]
        values = shingles.hashes[low:high].astype(np.uint64)
        cuts, hashed = shingles.starts[first:end] - low, np.empty_like(values)
        for column in range(banding.hashes):
            np.multiply(values, factors[column], out=hashed)
            np.add(hashed, shifts[column], out=hashed)
            np.right_shift(hashed, 32, out=hashed)
            found[first:end, column] = np.minimum.reduceat(hashed, cuts)
    return found


def _signature_runs(starts: Places) -> Iterator[tuple[int, int]]:
    first, texts = 0, len(starts) - 1
    while first < texts:
        end = int(np.searchsorted(starts, starts[first] + _SIGNATURE_WORK, side="right")) - 1
        end = min(max(end, first + 1), texts)
        yield first, end
        first = end


def find_candidates(
    left: Signatures, right: Signatures | None, banding: Banding, floor: float
) -> CandidatePairs:
    """Return the pairs that share a bucket and at least a share `floor` of all hashes.

    Args:
        left: Signatures.
        right: Other signatures; None for pairs within the first.
        banding: The banding that the signatures were made with.
        floor: Minimum of the estimated Jaccard index.
    """
    other = left if right is None else right
    width = np.uint64(len(other))
    found, crowded = [np.zeros(0, np.uint64)], 0
    for band in range(banding.bands):
        columns = slice(band * banding.rows, (band + 1) * banding.rows)
        keys = [_keys(each[:, columns]) for each in (left, right) if each is not None]
        buckets = _buckets(np.concatenate(keys))
        codes, full = _pairs(buckets, None if right is None else len(left), width)
        found.append(_likely(codes, left, other, floor))
        crowded += full
    known = np.unique(np.concatenate(found))
    i, j = _decode_pairs(known, width)
    return CandidatePairs(i, j, crowded)


def _likely(codes: Keys, left: Signatures, right: Signatures, floor: float) -> Keys:
    """Return the pairs that share at least a share `floor` of their hashes."""
    kept = [np.zeros(0, np.uint64)]
    for start in range(0, len(codes), _BATCH):
        some = codes[start : start + _BATCH]
        i, j = _decode_pairs(some, np.uint64(len(right)))
        kept.append(some[(left[i] == right[j]).mean(axis=1) >= floor])
    return np.concatenate(kept)


def _decode_pairs(codes: Keys, width: np.uint64) -> tuple[Places, Places]:
    if not len(codes):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return (codes // width).astype(np.int64), (codes % width).astype(np.int64)


def _keys(rows: Signatures) -> Keys:
    key = np.zeros(len(rows), np.uint64)
    for column in range(rows.shape[1]):
        key = (key ^ rows[:, column]) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> 29
    return key


def _buckets(keys: Keys) -> tuple[Places, Places, Places]:
    """Return the texts sorted by bucket, and the start and end of each bucket of two or more."""
    order = np.argsort(keys, kind="stable")
    cuts = np.flatnonzero(np.diff(keys[order])) + 1
    starts, ends = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(keys)]])
    several = ends - starts > 1
    return order, starts[several], ends[several]


def _pairs(
    buckets: tuple[Places, Places, Places], first_right: int | None, width: np.uint64
) -> tuple[Keys, int]:
    """Return the pairs of all buckets as left x width + right, and the number of full buckets."""
    order, starts, ends = buckets
    if first_right is None:
        middles, begins = ends, starts
    else:  # the sort is stable: left ones come first in each bucket
        lefts = np.concatenate([[0], np.cumsum(order < first_right)])
        middles = begins = starts + lefts[ends] - lefts[starts]
    wide, deep = middles - starts, ends - begins
    fits = wide * deep <= CROWD
    i, j = _expand_buckets(starts[fits], wide[fits], begins[fits], deep[fits])
    stars = [
        _star(*bounds)
        for bounds in zip(*(each[~fits] for each in (starts, middles, begins, ends)), strict=True)
    ]
    i = np.concatenate([i, *(each[0] for each in stars)])
    j = np.concatenate([j, *(each[1] for each in stars)])
    left, right = order[i], order[j]
    if first_right is None:
        keep = left < right
        left, right = left[keep], right[keep]
    else:
        right = right - first_right
    return left.astype(np.uint64) * width + right.astype(np.uint64), len(stars)


def _expand_buckets(
    starts: Places, wide: Places, begins: Places, deep: Places
) -> tuple[Places, Places]:
    """Return the indices of all pairs of all buckets."""
    sizes = wide * deep
    bucket = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(bucket)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return starts[bucket] + within // deep[bucket], begins[bucket] + within % deep[bucket]


def _star(start: int, middle: int, begin: int, end: int) -> tuple[Places, Places]:
    """Pair the first text of each side with all texts of the other side."""
    left, right = np.arange(start, middle), np.arange(begin, end)
    i = np.concatenate([left, np.full(len(right), start)])
    return i, np.concatenate([np.full(len(left), begin), right])


LEAST = 8
"""The fewest shingles of a text: with fewer, chance alone makes two texts similar."""
ERRORS = 3
"""Pairs are dropped if their estimate is more than this many standard errors below the
threshold."""
_COMPARISON_WORK = 1 << 22
"""The number of shingles compared at once, to limit memory."""


@dataclass(frozen=True)
class NearPairs:
    """Pairs of indices of texts, with their similarity."""

    pairs: tuple[tuple[int, int, float], ...]
    short: tuple[int, int]
    """The number of texts too short to compare, by side; for a single benchmark, the same twice."""
    crowded: int
    """The number of buckets in which not all texts were compared with each other."""


@dataclass(frozen=True)
class _Side:
    places: Places
    shingles: Shingles
    signatures: Signatures


def find_near_pairs(
    left: Sequence[str], right: Sequence[str] | None, threshold: float
) -> NearPairs:
    """Return the pairs of similar texts between two lists, or within one.

    Passages that many texts of the lists share do not count.

    Args:
        left: Texts.
        right: Other texts; None for pairs within the first list.
        threshold: Minimum Jaccard index of their shingles.
    """
    sides = [[normalise_words(text) for text in each] for each in (left, right) if each is not None]
    boilerplate = Boilerplate(sides)
    cut = [cut_shingles(each, boilerplate) for each in sides]
    form = np.unique(np.concatenate([each.frequent(FORM_SHARE, FORM_FLOOR) for each in cut]))
    return find_similar_sets([each.without(form) for each in cut], threshold, FINE)


def find_similar_sets(cut: list[Shingles], threshold: float, banding: Banding) -> NearPairs:
    """Return the pairs of similar sets between two lists, or within one.

    Args:
        cut: The sets of each side, or of one; the list is emptied to free memory.
        threshold: Minimum Jaccard index.
        banding: The banding used to find candidates.
    """
    lengths = [len(each.sizes) for each in cut]
    sides = [_make_side(cut.pop(0), banding) for _ in lengths]
    one, other = sides[0], sides[-1]
    error = np.sqrt(threshold * (1 - threshold) / banding.hashes)
    found = find_candidates(
        one.signatures,
        None if len(sides) == 1 else other.signatures,
        banding,
        threshold - ERRORS * error,
    )
    pairs = [
        (int(one.places[i]), int(other.places[j]), float(resemblance))
        for i, j, resemblance in _compare_candidates(one, other, found.left, found.right, threshold)
    ]
    short = (lengths[0] - len(one.places), lengths[-1] - len(other.places))
    return NearPairs(tuple(pairs), short, found.crowded)


def _make_side(cut: Shingles, banding: Banding) -> _Side:
    enough = cut.sizes >= LEAST
    kept = cut.only(enough)
    return _Side(np.flatnonzero(enough), kept, sign_sets(kept, banding))


def _compare_candidates(
    one: _Side, other: _Side, left: Places, right: Places, threshold: float
) -> Iterator[tuple[int, int, float]]:
    """Yield the candidates with a Jaccard index at or above the threshold."""
    for low, high in _comparison_runs(one.shingles.sizes[left] + other.shingles.sizes[right]):
        yield from _above(one, other, left[low:high], right[low:high], threshold)


def _comparison_runs(sizes: Places) -> Iterator[tuple[int, int]]:
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = ends[first - 1] if first else 0
        end = max(int(np.searchsorted(ends, before + _COMPARISON_WORK, side="right")), first + 1)
        yield first, end
        first = end


def _above(
    one: _Side, other: _Side, i: Places, j: Places, threshold: float
) -> Iterator[tuple[int, int, float]]:
    index = jaccard_index(one.shingles, i, other.shingles, j)
    keep = np.flatnonzero(index >= threshold)
    yield from zip(i[keep].tolist(), j[keep].tolist(), index[keep].tolist(), strict=True)


def jaccard_index(left: Shingles, i: Places, right: Shingles, j: Places) -> npt.NDArray[np.float64]:
    """Return the Jaccard index of the shingles of each pair of texts."""
    keys = [
        owners.astype(np.uint64) << 32 | hashes for owners, hashes in (left.rows(i), right.rows(j))
    ]
    merged = np.sort(np.concatenate(keys))
    shared = merged[1:][merged[1:] == merged[:-1]] >> 32
    both = np.bincount(shared.astype(np.int64), minlength=len(i))
    index: npt.NDArray[np.float64] = both / np.maximum(left.sizes[i] + right.sizes[j] - both, 1)
    return index
