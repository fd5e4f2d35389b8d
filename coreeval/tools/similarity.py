"""The similarity in meaning between texts: cosines of their embeddings."""

from collections.abc import Sequence

import numpy as np

from coreeval.tools.embeddings import Embedder, Vectors, normalise_vectors

MOST_KEPT = 20_000
"""The most vectors kept in memory (384 numbers each for MiniLM: 30 MB); beyond that, all are
dropped."""


class MeaningSimilarity:
    """Returns the cosine of each of some texts with another text.

    Vectors are kept in memory, since many samples find the same headlines.
    """

    def __init__(self, embeds: Embedder) -> None:
        self._embeds = embeds
        self._known = dict[str, Vectors]()

    def __call__(self, texts: Sequence[str], text: str) -> list[float]:
        """Return a number from -1 to 1 for each text.

        Raises:
            ModelUnusable: the provider did not answer with one vector per text.
        """
        if not texts:
            return []
        vectors = self._find([*texts, text])
        return [float(cosine) for cosine in vectors[:-1] @ vectors[-1]]

    def _find(self, texts: Sequence[str]) -> Vectors:
        if len(self._known) > MOST_KEPT:
            self._known.clear()
        missing = [one for one in dict.fromkeys(texts) if one not in self._known]
        if missing:
            found = normalise_vectors(self._embeds(missing))
            self._known |= dict(zip(missing, found, strict=True))
        return np.array([self._known[one] for one in texts])
