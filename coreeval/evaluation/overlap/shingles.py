"""Texts as sets of short runs of characters (shingles), many of which similar texts share.

The resemblance of two texts is the Jaccard index of their sets (Broder 1997, "On the resemblance
and containment of documents"). It hardly depends on the order of the parts, such as shuffled
options.

Runs that many items of a benchmark share are boilerplate: instructions, templates, set phrases.
They show how a benchmark asks, not what it asks; texts that share nothing else are not copies.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.metrics.text import drop_light_marks, list_vowel_signs
from coreeval.tools.text import UNSPACED

if TYPE_CHECKING:
    pass


_UNSPACED = ((0x2E80, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
LONGEST_RUN = 32
"""The most characters of a run."""
_FACTORS = np.random.default_rng(20260101).integers(0, 1 << 63, LONGEST_RUN, np.uint64) * np.uint64(
    2
)
_FACTORS += np.uint64(1)
"""Odd pseudo-random numbers, one for each position of a run."""
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))

Codes = npt.NDArray[np.uint64]
Owners = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)


def encode(texts: Sequence[str]) -> tuple[Codes, Owners]:
    """Return the characters of all texts with a zero after each text, and the text of each one."""
    joined = "\0".join([*texts, ""]).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, np.uint32).astype(np.uint64)
    return codes, np.repeat(np.arange(len(texts)), [len(text) + 1 for text in texts])


def hash_runs(codes: Codes, spaced: int, unspaced: int) -> tuple[Codes, Marks]:
    """Return a hash of the run that starts at each character, and whether the run is whole.

    Args:
        codes: Characters; zeros end a text or a part of one.
        spaced: Number of characters of a run.
        unspaced: Number of characters of a run that starts with Han, kana or Hangul; at most
            `spaced`.

    A run is whole if it contains no zero.
    """
    padded = np.concatenate([codes, np.zeros(spaced, np.uint64)])
    ends = np.concatenate([[0], np.cumsum(padded == 0)])
    apart, size = is_unspaced(codes), len(codes)
    short = _weigh_runs(padded, range(unspaced), size)
    long = short + _weigh_runs(padded, range(unspaced, spaced), size)
    stop = np.arange(size) + np.where(apart, unspaced, spaced)
    return _scramble(np.where(apart, short, long)), ends[stop] == ends[:size]


def count_distinct(values: npt.NDArray[Scalar]) -> tuple[npt.NDArray[Scalar], Owners]:
    """Return the distinct values in order, and the number of occurrences of each.

    Like `np.unique`, whose hash table is ten times slower than sorting here.
    """
    ordered = np.sort(values)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    return ordered[first], np.diff(np.append(first, len(ordered)))


def _weigh_runs(codes: Codes, places: range, size: int) -> Codes:
    """Return, for each of `size` characters, the weighted sum of the characters at some offsets."""
    found = np.zeros(size, np.uint64)
    for place in places:
        found += codes[place : place + size] * _FACTORS[place]
    return found


def is_unspaced(codes: Codes) -> Marks:
    """Return a mask of the characters that are Han, kana or Hangul."""
    found = np.zeros(len(codes), bool)
    for low, high in _UNSPACED:
        found |= (codes >= low) & (codes <= high)
    return found


def _scramble(values: Codes) -> Codes:
    """Mix each number so that every bit of the result depends on all bits of the input."""
    mixed: Codes = (values ^ (values >> np.uint64(32))) * _MIX[0]
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX[1]
    return mixed ^ (mixed >> np.uint64(32))


WIDTH, WIDTH_UNSPACED = 4, 2
"""The characters of a shingle; two if it begins with Han, kana or Hangul: docs/overlap.md."""
CHUNK = 1 << 20
"""The number of characters cut at once, to limit memory."""

Hashes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shingles:
    """The shingles of many texts, one text after the other."""

    hashes: Hashes
    """The hash of each shingle, once per text that contains it, sorted within the text."""
    starts: Places
    """The start of each text in `hashes`, and the end of the last text."""

    @property
    def sizes(self) -> Places:
        """Return the number of shingles of each text."""
        return np.diff(self.starts)

    def without(self, dropped: Hashes) -> "Shingles":
        """Return the sets without the given shingles, which must be sorted."""
        if not len(dropped):
            return self
        at = np.searchsorted(dropped, self.hashes).clip(max=len(dropped) - 1)
        return self._keep(dropped[at] != self.hashes)

    def only(self, texts: npt.NDArray[np.bool_]) -> "Shingles":
        """Return the sets of the marked texts."""
        kept = self._keep(np.repeat(texts, self.sizes))
        return Shingles(kept.hashes, np.append(kept.starts[:-1][texts], kept.starts[-1]))

    def _keep(self, keep: npt.NDArray[np.bool_]) -> "Shingles":
        before = np.concatenate([[0], np.cumsum(keep)])
        return Shingles(self.hashes[keep], before[self.starts])

    def rows(self, places: Places) -> tuple[Places, Hashes]:
        """Return the shingles of the given texts, each with the index of its text in `places`."""
        sizes = self.sizes[places]
        owners = np.repeat(np.arange(len(places)), sizes)
        before = np.repeat(np.cumsum(sizes) - sizes, sizes)
        return owners, self.hashes[self.starts[places][owners] + np.arange(len(owners)) - before]

    def frequent(self, share: float, floor: int) -> Hashes:
        """Return the shingles of more than a share of the texts and more than `floor`, in order."""
        hashes, counts = count_distinct(self.hashes)
        return hashes[counts > max(floor, share * len(self.sizes))]


def cut_shingles(texts: Sequence[str], boilerplate: "Boilerplate | None" = None) -> Shingles:
    """Cut texts from `normalise_words` into shingles."""
    parts = [_cut_chunk(chunk, boilerplate) for chunk in split_chunks(texts)]
    offsets = np.cumsum([0, *(len(part.hashes) for part in parts)])
    starts = [part.starts[:-1] + offset for part, offset in zip(parts, offsets[:-1], strict=True)]
    empty = np.zeros(0, np.uint32)
    return Shingles(
        np.concatenate([empty, *(part.hashes for part in parts)]),
        np.concatenate([*starts, offsets[-1:]]).astype(np.int64),
    )


def split_chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the texts in order, in chunks of about `CHUNK` characters."""
    bounds, room = [], 0
    for place, text in enumerate(texts):
        if room <= 0:
            bounds.append(place)
            room = CHUNK
        room -= len(text) + 1
    for start, end in pairwise([*bounds, len(texts)]):
        yield texts[start:end]


def _cut_chunk(texts: Sequence[str], boilerplate: "Boilerplate | None") -> Shingles:
    codes, owners = encode(texts)
    if boilerplate is not None:
        codes = boilerplate.blank(codes)
    hashes, whole = hash_runs(codes, WIDTH, WIDTH_UNSPACED)
    return collect_sets(hashes[whole], owners[whole], len(texts))


def collect_sets(hashes: Codes, owners: Places, texts: int) -> Shingles:
    """Return the upper half of each hash, once for each text that contains it."""
    found, _ = count_distinct(owners.astype(np.uint64) << 32 | hashes >> 32)
    starts = np.searchsorted((found >> 32).astype(np.int64), np.arange(texts + 1))
    return Shingles((found & 0xFFFFFFFF).astype(np.uint32), starts.astype(np.int64))


RUN, RUN_UNSPACED = 16, 6
"""The fewest characters of a passage: about three words."""
SHARE, FLOOR = 0.005, 5
"""A run is boilerplate if more than 5 texts and more than 0.5 % of each side have it; an item that
is frequent on one side only is not."""
FORM_SHARE, FORM_FLOOR = 0.2, 10
"""A run is also boilerplate if more than 10 texts and a fifth of one side have it, e.g. an
instruction."""
_CELLS = 1 << 27
"""The most counters of a side, to limit memory; with more runs, some share a counter."""

Counts = npt.NDArray[np.uint32]
Encode = Callable[[Sequence[str]], tuple[Codes, Owners]]


class Boilerplate:
    """The runs of characters that many texts share.

    Args:
        sides: The texts of each side, or of one.
        encode: A function that returns the characters of texts, with a zero after each text, and
            the text of each character.

    Runs are counted by hash (a count-min sketch of one row, Cormode and Muthukrishnan 2005), with
    four counters per character, so memory does not grow with the number of different runs.
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
        """Return the number of texts that contain a run, by cell."""
        counts = np.zeros(self._cells, np.uint32)
        for chunk in split_chunks(texts):
            codes, owners = self._encode(chunk)
            cells, whole = self._runs(codes)
            once, _ = count_distinct(owners[whole] * self._cells + cells[whole])
            found, texts_with = count_distinct(once % self._cells)
            counts[found] += texts_with.astype(np.uint32)
        return counts

    def _runs(self, codes: Codes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        hashes, whole = hash_runs(codes, RUN, RUN_UNSPACED)
        return (hashes % np.uint64(self._cells)).astype(np.int64), whole

    def blank(self, codes: Codes) -> Codes:
        """Return the characters with those of boilerplate replaced by zeros."""
        cells, whole = self._runs(codes)
        begin = np.flatnonzero(whole & self._marked[cells])
        if not len(begin):
            return codes
        width = np.where(is_unspaced(codes[begin]), RUN_UNSPACED, RUN)
        steps = np.bincount(begin, minlength=len(codes) + RUN + 1).astype(np.int64)
        steps -= np.bincount(begin + width, minlength=len(codes) + RUN + 1)
        return np.where(np.cumsum(steps)[: len(codes)] > 0, np.uint64(0), codes)


_SIGN = r"_|(?<!\d)[^\w\s{vowels}]|[^\w\s{vowels}](?!\d)"
"""A punctuation mark or symbol, but not between two digits: 1.5 is not 15, 2-1 not 2+1."""
_BLANK_BESIDE = re.compile(f"(?<=[{UNSPACED}]) | (?=[{UNSPACED}])")


@cache
def _sign() -> re.Pattern[str]:
    return re.compile(_SIGN.format(vowels=list_vowel_signs()))


def normalise_words(text: str) -> str:
    """Return the words of a text, separated by single spaces but not next to Han, kana or Hangul.

    NFKC (Unicode Standard Annex 15) makes full-width and other compatible forms equal.
    """
    folded = drop_light_marks(unicodedata.normalize("NFKC", text).casefold())
    words = " ".join(_sign().sub(" ", folded).split())
    return _BLANK_BESIDE.sub("", words)


def normal_key(text: str) -> str:
    """Return a key that texts share if they only differ in form, case, punctuation and blanks.

    A text that only has punctuation or symbols, such as emoji, is its own key.
    """
    return normalise_words(text).replace(" ", "") or unicodedata.normalize("NFKC", text).strip()
