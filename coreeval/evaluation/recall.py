"""A memory of texts, word for word: what makes some of the embedded targets know what they saw.

It stands for contamination where no model can be contaminated. It is more brittle than a model's:
other words for the same facts, and it remembers nothing.
"""

import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from coreeval.evaluation.features import Fields, words
from coreeval.schema import Sample

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

RUN = 5
"""Words in a row that are remembered together."""
RECALLED = 0.8
"""Share of a text's runs that must stand in one remembered text for that to be recalled: on
TweetEval emotion 1 of 178 texts reworded by rules still has it (docs/targets.md)."""


class Memory:
    """Texts with their labels, kept as hashed runs of words.

    Args:
        samples: What was seen; of equal texts the first label stays.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._labels = [sample.label_text for sample in samples]
        self._known = _hashed([sample.fields for sample in samples])

    def recall(self, fields: Sequence[Fields]) -> list[str | None]:
        """Return the label of the remembered text that each of some texts is, or None."""
        runs = _hashed(fields)
        shared = (runs @ self._known.T).tocsr()
        whole = runs.getnnz(axis=1)
        return [self._best(shared[row], float(whole[row])) for row in range(len(fields))]

    def _best(self, shared: "csr_matrix", whole: float) -> str | None:
        if not shared.nnz or shared.data.max() < RECALLED * whole:
            return None
        return self._labels[int(shared.indices[shared.data == shared.data.max()].min())]


def split_train(train: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Return the half of a train split that classifiers are fitted on, and the half to compare.

    `offline:clean` has seen nothing of the second. A text decides by its words, so that copies of
    it are in one half.
    """
    halves: tuple[list[Sample], list[Sample]] = ([], [])
    for sample in train:
        halves[held_out(sample)].append(sample)
    return halves


def held_out(sample: Sample) -> bool:
    """Tell whether a sample of the train split is in the half to compare."""
    said = " ".join(word for text in sample.fields.values() for word in words(text))
    return zlib.crc32(said.encode()) % 2 == 1


def _hashed(fields: Sequence[Fields]) -> "csr_matrix":
    """Return which runs of words each text has, a row a text."""
    from sklearn.feature_extraction.text import HashingVectorizer  # type: ignore[import-untyped]

    hashing = HashingVectorizer(
        analyzer=lambda one: list(_runs(one)), norm=None, alternate_sign=False, binary=True
    )
    return hashing.transform(fields)


def _runs(fields: Fields) -> Iterator[str]:
    """Yield each field's runs of words; a text that is shorter is one run."""
    for name, text in fields.items():
        said = words(text)
        for start in range(max(1, len(said) - RUN + 1)):
            yield " ".join((name, *said[start : start + RUN]))
