"""Pairs of similar sets out of very many, without comparing each with each.

MinHash (Broder 1997): the least of a set's elements under a random hash is that of another set with
a probability equal to their Jaccard index. Banding (Leskovec, Rajaraman and Ullman, "Mining of
Massive Datasets", section 3.4): with b bands of r hashes each, two sets of index J are candidates
with probability 1 - (1 - J^r)^b.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.overlap.shingles import Places, Shingles


@dataclass(frozen=True)
class Banding:
    """How many hashes a set has, and how many of them must agree."""

    bands: int
    rows: int
    """Hashes of a band."""

    @property
    def hashes(self) -> int:
        """How many hashes a set has."""
        return self.bands * self.rows


FINE = Banding(64, 3)
"""For likeness from 0.4: 98.5 % of such pairs are candidates, 99.98 % at 0.5, 6 % at 0.1."""
COARSE = Banding(16, 4)
"""For likeness from 0.6: 89 % of such pairs are candidates, 98.8 % at 0.7, 99.98 % at 0.8."""
CROWD = 10_000
"""Pairs of one bucket beyond which its texts are compared only with the first of either side."""
_SEED = 20260101
_WORK = 1 << 16
"""Shingles that are hashed at once: they fit into a core's cache."""
_BATCH = 20_000
"""Pairs whose hashes are compared at once: bounds memory."""

Signatures = npt.NDArray[np.uint32]
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Candidates:
    """Pairs that are worth a comparison."""

    left: Places
    right: Places
    crowded: int
    """Buckets of which not every pair is among them."""


def signatures(shingles: Shingles, banding: Banding) -> Signatures:
    """Return the least hashes of each set, none of which may be empty: texts x hashes.

    The hashes are multiply-shift (Dietzfelbinger 1996), from a fixed seed: the same for all sets.
    """
    rng = np.random.default_rng(_SEED)
    factors = rng.integers(0, 1 << 63, banding.hashes, np.uint64) * np.uint64(2) + np.uint64(1)
    shifts = rng.integers(0, 1 << 63, banding.hashes, np.uint64)
    found = np.empty((len(shingles.sizes), banding.hashes), np.uint32)
    for first, end in _runs(shingles.starts):
        low, high = shingles.starts[first], shingles.starts[end]
        values = shingles.hashes[low:high].astype(np.uint64)
        cuts, hashed = shingles.starts[first:end] - low, np.empty_like(values)
        for column in range(banding.hashes):
            np.multiply(values, factors[column], out=hashed)
            np.add(hashed, shifts[column], out=hashed)
            np.right_shift(hashed, 32, out=hashed)
            found[first:end, column] = np.minimum.reduceat(hashed, cuts)
    return found


def _runs(starts: Places) -> Iterator[tuple[int, int]]:
    first, texts = 0, len(starts) - 1
    while first < texts:
        end = int(np.searchsorted(starts, starts[first] + _WORK, side="right")) - 1
        end = min(max(end, first + 1), texts)
        yield first, end
        first = end


def candidates(
    left: Signatures, right: Signatures | None, banding: Banding, floor: float
) -> Candidates:
    """Return the pairs that share a bucket and at least a share `floor` of all hashes.

    Args:
        left: Signatures.
        right: Others; None for pairs within the first.
        banding: The one that the signatures were made with.
        floor: What the estimate of the Jaccard index must reach.
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
    i, j = _places(known, width)
    return Candidates(i, j, crowded)


def _likely(codes: Keys, left: Signatures, right: Signatures, floor: float) -> Keys:
    """Return the pairs whose hashes agree often enough."""
    kept = [np.zeros(0, np.uint64)]
    for start in range(0, len(codes), _BATCH):
        some = codes[start : start + _BATCH]
        i, j = _places(some, np.uint64(len(right)))
        kept.append(some[(left[i] == right[j]).mean(axis=1) >= floor])
    return np.concatenate(kept)


def _places(codes: Keys, width: np.uint64) -> tuple[Places, Places]:
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
    """Return the texts by bucket, and where each bucket of two or more begins and ends."""
    order = np.argsort(keys, kind="stable")
    cuts = np.flatnonzero(np.diff(keys[order])) + 1
    starts, ends = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(keys)]])
    several = ends - starts > 1
    return order, starts[several], ends[several]


def _pairs(
    buckets: tuple[Places, Places, Places], first_right: int | None, width: np.uint64
) -> tuple[Keys, int]:
    """Return the pairs of all buckets as left x width + right, and how many were too full."""
    order, starts, ends = buckets
    if first_right is None:
        middles, begins = ends, starts
    else:  # the sort is stable: in each bucket the left ones come first
        lefts = np.concatenate([[0], np.cumsum(order < first_right)])
        middles = begins = starts + lefts[ends] - lefts[starts]
    wide, deep = middles - starts, ends - begins
    fits = wide * deep <= CROWD
    i, j = _expanded(starts[fits], wide[fits], begins[fits], deep[fits])
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


def _expanded(starts: Places, wide: Places, begins: Places, deep: Places) -> tuple[Places, Places]:
    """Return the places of every pair of every bucket."""
    sizes = wide * deep
    bucket = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(bucket)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return starts[bucket] + within // deep[bucket], begins[bucket] + within % deep[bucket]


def _star(start: int, middle: int, begin: int, end: int) -> tuple[Places, Places]:
    """Return the pairs of either side's first with all of the other."""
    left, right = np.arange(start, middle), np.arange(begin, end)
    i = np.concatenate([left, np.full(len(right), start)])
    return i, np.concatenate([np.full(len(left), begin), right])
