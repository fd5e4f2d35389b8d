"""Texts that say the same in other words, or in another language: near by their embeddings."""

from collections.abc import Iterator, Sequence

import numpy as np

from coreeval.tools.embeddings import Embedder, Vectors

PARAPHRASE = 0.75
"""Least cosine of two paraphrases, chosen for all-MiniLM-L6-v2: docs/overlap.md."""
MOST = 5
"""Paraphrases of a text that are kept, the likeliest."""
ROWS = 1024
"""Texts of either side that are compared at once: bounds memory."""


def paraphrase_pairs(
    left: Sequence[str], right: Sequence[str] | None, embeds: Embedder, threshold: float
) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs between two lists of texts, or within one, whose embeddings are alike.

    Args:
        left: Texts.
        right: Other texts; None for pairs within the first.
        embeds: What embeds.
        threshold: The least cosine.
    """
    one = _unit(embeds(left))
    other = one if right is None else _unit(embeds(right))
    for start in range(0, len(one), ROWS):
        found = list(_near(one[start : start + ROWS], other, threshold))
        for row, column, cosine in _most(found):
            if right is not None or start + row < column:
                yield start + row, column, cosine


def _unit(vectors: Vectors) -> Vectors:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-12), np.float32)


def _near(rows: Vectors, other: Vectors, threshold: float) -> Iterator[tuple[float, int, int]]:
    for start in range(0, len(other), ROWS):
        cosines = rows @ other[start : start + ROWS].T
        for row, column in zip(*np.nonzero(cosines >= threshold), strict=True):
            yield float(cosines[row, column]), int(row), start + int(column)


def _most(found: list[tuple[float, int, int]]) -> Iterator[tuple[int, int, float]]:
    """Yield the likeliest of each row; one more than asked, since a text may be its own."""
    kept: dict[int, int] = {}
    for cosine, row, column in sorted(found, reverse=True):
        kept[row] = kept.get(row, 0) + 1
        if kept[row] <= MOST + 1:
            yield row, column, min(cosine, 1.0)
