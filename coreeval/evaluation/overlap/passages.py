"""Texts that stand inside longer ones: where most of their seeds lie, compared in full.

A passage is about as long as the text, and is compared with it as two whole texts are: by the
Jaccard index of their shingles. Case, signs and blanks do not count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coreeval.evaluation.overlap.boilerplate import Boilerplate
from coreeval.evaluation.overlap.letters import Letters, letters_of
from coreeval.evaluation.overlap.runs import Codes, distinct, hash_runs
from coreeval.evaluation.overlap.seeds import Match, SeedIndex
from coreeval.evaluation.overlap.shingles import WIDTH, WIDTH_UNSPACED, chunks_of

LEAST_ALIKE = 0.5
"""Least resemblance of a text and a passage: of many passages the best is compared, and between
0.4 and 0.5 most of those found in FinEval and MRPC were of another item."""


@dataclass(frozen=True)
class Passage:
    """A text found inside a longer one."""

    item: int
    """Place of the text."""
    host: int
    """Place of the longer text."""
    similarity: float
    """Jaccard index of the shingles of the text and of the passage."""
    start: int
    """Where the passage begins in the longer text, in characters."""
    end: int
    """Where it ends."""


def find_passages(
    items: Sequence[str],
    hosts: Sequence[str] | None,
    threshold: float,
    boilerplate: Boilerplate,
) -> Iterator[Passage]:
    """Yield the best passage of each longer text that resembles an item.

    Args:
        items: Texts to find.
        hosts: Texts to search; None to search the items themselves.
        threshold: The least Jaccard index of an item and a passage; `LEAST_ALIKE` if it is less.
        boilerplate: Passages that many texts share, see `boilerplate_of`; they do not count.
    """
    index = SeedIndex(items, boilerplate)
    least, first = max(threshold, LEAST_ALIKE), 0
    for chunk in chunks_of(items if hosts is None else hosts):
        letters = letters_of(chunk).without(boilerplate)
        for match in index.search(letters, first if hosts is None else None):
            item = letters_of([items[match.item]]).without(boilerplate)
            similarity = _resemblance(item, letters, match)
            if similarity >= least:
                yield _passage(letters, match, first, similarity)
        first += len(chunk)


def _passage(letters: Letters, match: Match, first: int, similarity: float) -> Passage:
    base = letters.starts[match.host]
    start, last = letters.places[base + match.start], letters.places[base + match.end - 1]
    return Passage(match.item, first + match.host, similarity, int(start), int(last) + 1)


def _resemblance(item: Letters, letters: Letters, match: Match) -> float:
    whole = _shingles(item.of(0))
    part = _shingles(letters.of(match.host)[match.start : match.end])
    both = len(np.intersect1d(whole, part, assume_unique=True))
    return both / max(len(whole) + len(part) - both, 1)


def _shingles(codes: Codes) -> Codes:
    hashes, whole = hash_runs(codes, WIDTH, WIDTH_UNSPACED)
    return distinct(hashes[whole])[0]
