"""Finds texts inside longer ones: passages with most of a text's seeds, compared in full.

Texts are reduced to letters and digits, each with its position: case, signs and blanks do not
count. Seeds are runs of letters that longer texts share with items, found in an inverted index. A
passage is about as long as the text, and both are compared like two whole texts: by the Jaccard
index of their shingles.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from coreeval.evaluation.metrics.text import is_vowel_sign
from coreeval.evaluation.overlap.shingles import (
    WIDTH,
    WIDTH_UNSPACED,
    Boilerplate,
    Codes,
    Owners,
    Places,
    count_distinct,
    encode,
    hash_runs,
    is_unspaced,
    split_chunks,
)

UNSPACED_WEIGHT = 3
"""The number of letters that a character of Han, kana or Hangul counts as, by its information."""
_DROPPED = "\x01"


@dataclass(frozen=True)
class Letters:
    """The letters of many texts, with a zero after each text."""

    codes: Codes
    owners: Owners
    """The text of each letter."""
    places: Owners
    """The position of each letter in its text, in characters."""
    starts: Owners
    """The start of each text in `codes`, and the end of the last text."""

    @property
    def sizes(self) -> Owners:
        """Return the number of letters in each text."""
        return np.diff(self.starts) - 1

    @property
    def weights(self) -> Owners:
        """Return the number of non-zero letters in each text; Han, kana and Hangul count as 3."""
        weight = (self.codes != 0) + (UNSPACED_WEIGHT - 1) * is_unspaced(self.codes)
        return np.add.reduceat(weight, self.starts[:-1], dtype=np.int64)

    def without(self, boilerplate: Boilerplate) -> "Letters":
        """Return the texts with every letter of boilerplate replaced by a zero."""
        return replace(self, codes=boilerplate.blank(self.codes))

    def of(self, text: int) -> Codes:
        """Return the letters of one text."""
        return self.codes[self.starts[text] : self.starts[text + 1] - 1]


def encode_letters(texts: Sequence[str]) -> Letters:
    """Return the letters and digits of texts, with case and compatible forms folded."""
    codes, owners = encode([text.translate(_FOLDED) for text in texts])
    begins = np.searchsorted(owners, np.arange(len(texts)))
    places = np.arange(len(codes)) - begins[owners]
    kept = codes != ord(_DROPPED)
    starts = np.searchsorted(owners[kept], np.arange(len(texts) + 1))
    return Letters(codes[kept], owners[kept], places[kept], starts)


def find_boilerplate(sides: Sequence[Sequence[str]]) -> Boilerplate:
    """Return the runs of letters that occur in many texts."""
    return Boilerplate(sides, _encode_codes)


def _encode_codes(texts: Sequence[str]) -> tuple[Codes, Owners]:
    letters = encode_letters(texts)
    return letters.codes, letters.owners


class _Folding(dict[int, str]):
    """The replacement of each character by exactly one, so that positions stay valid."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = unicodedata.normalize("NFKC", character).casefold()
        found = folded if len(folded) == 1 else character
        self[code] = found if found.isalnum() or is_vowel_sign(found) else _DROPPED
        return self[code]


_FOLDED = _Folding()


SEED, SEED_UNSPACED = 10, 5
"""The number of letters of a seed: about two words. If 30 % of a text's words are replaced, a third
of its seeds remain."""
LEAST = 40
"""The fewest letters of an item, see `UNSPACED_WEIGHT`. They are about eight words: shorter texts
occur in long ones by chance."""
LONGER = 1.25
"""A text is searched for passages of an item if it is longer by this factor."""
SEEDS = 0.15
"""The least share of an item's seeds in a passage to compare; at least two seeds are required."""
SHARED, SHARE = 5, 0.005
"""A seed of more than 5 items and more than 0.5 % of them is a set phrase, and is dropped."""
_CELLS = 1 << 26


@dataclass(frozen=True)
class SeedMatch:
    """Seeds of an item that are close together in a longer text, within about the item's length."""

    item: int
    host: int
    """The index of the longer text."""
    start: int
    """The letter of the longer text at which the item begins."""
    end: int
    """The letter after the item's last letter."""


class SeedIndex:
    """The seeds of items, sorted by hash."""

    def __init__(self, items: Sequence[str], boilerplate: Boilerplate) -> None:
        rows, sizes, first = [], [np.zeros(0, np.int64)], 0
        for chunk in split_chunks(items):
            letters = encode_letters(chunk).without(boilerplate)
            rows.append(_seeds(letters, first, letters.weights >= LEAST))
            sizes.append(letters.sizes)
            first += len(chunk)
        self.sizes = np.concatenate(sizes)
        self._hashes, self._owners, self._offsets = _drop_frequent(
            rows, max(SHARED, SHARE * len(items))
        )
        self._total = np.bincount(self._owners, minlength=len(items))
        self._known = np.zeros(_CELLS, bool)
        self._known[_cells(self._hashes)] = True

    def search(self, letters: Letters, first: int | None) -> Iterator[SeedMatch]:
        """Yield the best match of each item in each of the longer texts.

        Args:
            letters: The longer texts.
            first: The index of the first longer text among the items; None if they are not items.
        """
        hashes, whole = hash_runs(letters.codes, SEED, SEED_UNSPACED)
        at = np.flatnonzero(whole & self._known[_cells(hashes)])
        low, high = (np.searchsorted(self._hashes, hashes[at], side) for side in ("left", "right"))
        counts = high - low
        at = np.repeat(at, counts)
        within = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        seed = np.repeat(low, counts) + within
        item, host = self._owners[seed], letters.owners[at]
        keep = letters.sizes[host] >= LONGER * self.sizes[item]
        if first is not None:
            keep &= item != host + first
        yield from self._best(letters, item[keep], at[keep], self._offsets[seed[keep]])

    def _best(
        self, letters: Letters, item: Places, at: Places, offset: Places
    ) -> Iterator[SeedMatch]:
        """Yield the match with the most of an item's seeds, for each item and longer text."""
        order = np.lexsort((at, letters.owners[at], item))
        item, at, offset = item[order], at[order], offset[order]
        host = letters.owners[at]
        number = np.cumsum(_changes(item) | _changes(host)) if len(item) else item
        keys = number << 40 | at
        span = (LONGER * self.sizes[item]).astype(np.int64)
        ends = np.searchsorted(keys, keys + span)
        counts = ends - np.arange(len(keys))
        enough = counts >= np.maximum(2, SEEDS * self._total[item])
        places = np.flatnonzero(enough)
        places = places[np.lexsort((-counts[places], number[places]))]
        for place in places[_changes(number[places])].tolist():
            last, one, other = int(ends[place]) - 1, int(item[place]), int(host[place])
            base = int(letters.starts[other])
            start = int(at[place] - offset[place]) - base
            end = int(at[last] - offset[last]) - base + int(self.sizes[one])
            yield SeedMatch(one, other, max(start, 0), min(end, int(letters.sizes[other])))


def _seeds(
    letters: Letters, first: int, long: npt.NDArray[np.bool_]
) -> tuple[Codes, Places, Places]:
    """Return the hashes of the seeds of long texts, with the text and position of each."""
    hashes, whole = hash_runs(letters.codes, SEED, SEED_UNSPACED)
    at = np.flatnonzero(whole & long[letters.owners])
    owners = letters.owners[at]
    return hashes[at], owners + first, at - letters.starts[owners]


def _drop_frequent(
    rows: Sequence[tuple[Codes, Places, Places]], most: float
) -> tuple[Codes, Places, Places]:
    """Return the seeds sorted by hash, without those that occur more than `most` times."""
    empty = (np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    hashes, owners, offsets = map(np.concatenate, zip(empty, *rows, strict=True))
    order = np.argsort(hashes, kind="stable")
    hashes, owners, offsets = hashes[order], owners[order], offsets[order]
    number = np.cumsum(_changes(hashes)) - 1
    few = np.bincount(number, minlength=1)[number] <= most if len(number) else number > 0
    return hashes[few], owners[few], offsets[few]


def _changes(values: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    """Return a mask of values that differ from the previous one; the first counts as different."""
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]


def _cells(hashes: Codes) -> Places:
    return (hashes % np.uint64(_CELLS)).astype(np.int64)


LEAST_ALIKE = 0.5
"""The least similarity of a text and a passage. The best of many passages is compared, and most of
those between 0.4 and 0.5 in FinEval and MRPC belonged to another item."""


@dataclass(frozen=True)
class Passage:
    """A text found inside a longer one."""

    item: int
    """The index of the text."""
    host: int
    """The index of the longer text."""
    similarity: float
    """The Jaccard index of the shingles of the text and of the passage."""
    start: int
    """The start of the passage in the longer text, in characters."""
    end: int
    """The end of the passage."""


def find_passages(
    items: Sequence[str],
    hosts: Sequence[str] | None,
    threshold: float,
    boilerplate: Boilerplate,
) -> Iterator[Passage]:
    """Yield the passage of each longer text that best matches an item, for each matching item.

    Args:
        items: Texts to find.
        hosts: Texts to search; None to search the items themselves.
        threshold: Minimum Jaccard index of an item and a passage; at least `LEAST_ALIKE` is used.
        boilerplate: Passages shared by many texts, which do not count; see `find_boilerplate`.
    """
    index = SeedIndex(items, boilerplate)
    least, first = max(threshold, LEAST_ALIKE), 0
    for chunk in split_chunks(items if hosts is None else hosts):
        letters = encode_letters(chunk).without(boilerplate)
        for match in index.search(letters, first if hosts is None else None):
            item = encode_letters([items[match.item]]).without(boilerplate)
            similarity = _resemblance(item, letters, match)
            if similarity >= least:
                yield _passage(letters, match, first, similarity)
        first += len(chunk)


def _passage(letters: Letters, match: SeedMatch, first: int, similarity: float) -> Passage:
    base = letters.starts[match.host]
    start, last = letters.places[base + match.start], letters.places[base + match.end - 1]
    return Passage(match.item, first + match.host, similarity, int(start), int(last) + 1)


def _resemblance(item: Letters, letters: Letters, match: SeedMatch) -> float:
    whole = _shingle_codes(item.of(0))
    part = _shingle_codes(letters.of(match.host)[match.start : match.end])
    both = len(np.intersect1d(whole, part, assume_unique=True))
    return both / max(len(whole) + len(part) - both, 1)


def _shingle_codes(codes: Codes) -> Codes:
    hashes, whole = hash_runs(codes, WIDTH, WIDTH_UNSPACED)
    return count_distinct(hashes[whole])[0]
