"""Embeddings kept on disk, so that a text is embedded once."""

import base64
import hashlib
from collections.abc import Sequence

import numpy as np

from coreeval.tools.embeddings.embeds import Embeds, Vectors
from coreeval.tools.json_cache import JsonCache

KEPT_S = 30 * 24 * 3600.0
"""How long a vector is kept: a provider may change a model under its name."""


class CachedEmbeddings:
    """Embeds what the cache does not have, each text once.

    Args:
        embeds: What embeds; its name is part of each key.
        cache: Where vectors are kept.
    """

    def __init__(self, embeds: Embeds, cache: JsonCache) -> None:
        self.name = embeds.name
        self._embeds = embeds
        self._cache = cache

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, dimensions)."""
        found = {text: self._kept(text) for text in dict.fromkeys(texts)}
        missing = [text for text, vector in found.items() if vector is None]
        if missing:
            for text, vector in zip(missing, self._embeds(missing), strict=True):
                found[text] = vector
                self._keep(text, vector)
        known = {text: vector for text, vector in found.items() if vector is not None}
        return np.array([known[text] for text in texts], dtype=np.float32)

    def _kept(self, text: str) -> Vectors | None:
        value = self._cache.get(self._key(text))
        if not isinstance(value, str):
            return None
        return np.frombuffer(base64.b64decode(value), dtype="<f4")

    def _keep(self, text: str, vector: Vectors) -> None:
        value = base64.b64encode(vector.astype("<f4").tobytes()).decode()
        self._cache.put(self._key(text), value, expire_s=KEPT_S)

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self.name}\0{text}".encode()).hexdigest()
