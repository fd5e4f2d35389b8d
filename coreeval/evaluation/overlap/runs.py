"""Runs of characters as numbers: what shingles, boilerplate and passages are made of."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

_UNSPACED = ((0x2E80, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
LONGEST = 32
"""Most characters of a run."""
_FACTORS = np.random.default_rng(20260101).integers(0, 1 << 63, LONGEST, np.uint64) * np.uint64(2)
_FACTORS += np.uint64(1)
"""Odd numbers without a pattern: one for each place of a run."""
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))

Codes = npt.NDArray[np.uint64]
Owners = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)


def encode(texts: Sequence[str]) -> tuple[Codes, Owners]:
    """Return the characters of all texts, a zero after each text, and the text of each."""
    joined = "\0".join([*texts, ""]).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, np.uint32).astype(np.uint64)
    return codes, np.repeat(np.arange(len(texts)), [len(text) + 1 for text in texts])


def hash_runs(codes: Codes, spaced: int, unspaced: int) -> tuple[Codes, Marks]:
    """Return a hash of the run that begins at each character, and whether the run is whole.

    Args:
        codes: Characters; zeros end a text or a part of one.
        spaced: Characters of a run.
        unspaced: Characters of a run that begins with Han, kana or Hangul; not more than `spaced`.

    A run is whole if no zero is in it.
    """
    padded = np.concatenate([codes, np.zeros(spaced, np.uint64)])
    ends = np.concatenate([[0], np.cumsum(padded == 0)])
    apart, size = is_unspaced(codes), len(codes)
    short = _sum_of(padded, range(unspaced), size)
    long = short + _sum_of(padded, range(unspaced, spaced), size)
    stop = np.arange(size) + np.where(apart, unspaced, spaced)
    return _scrambled(np.where(apart, short, long)), ends[stop] == ends[:size]


def distinct(values: npt.NDArray[Scalar]) -> tuple[npt.NDArray[Scalar], Owners]:
    """Return the different values in order, and how often each occurs.

    As `np.unique`, whose hash table is ten times as slow as sorting here.
    """
    ordered = np.sort(values)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    return ordered[first], np.diff(np.append(first, len(ordered)))


def _sum_of(codes: Codes, places: range, size: int) -> Codes:
    """Return for each of `size` characters the sum of those at some places after it, weighted."""
    found = np.zeros(size, np.uint64)
    for place in places:
        found += codes[place : place + size] * _FACTORS[place]
    return found


def is_unspaced(codes: Codes) -> Marks:
    """Return which characters are Han, kana or Hangul."""
    found = np.zeros(len(codes), bool)
    for low, high in _UNSPACED:
        found |= (codes >= low) & (codes <= high)
    return found


def _scrambled(values: Codes) -> Codes:
    """Return numbers all of whose bits depend on all bits of theirs."""
    mixed: Codes = (values ^ (values >> np.uint64(32))) * _MIX[0]
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX[1]
    return mixed ^ (mixed >> np.uint64(32))
