"""all-MiniLM-L6-v2, or any BERT of its shape, in numpy without torch.

Each batch takes one forward pass of BERT (Devlin 2019). The pooling is that of
sentence-transformers' model: the mean over the word pieces of a text, at unit length. Results agree
with torch to about 1e-7.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file
from scipy.special import erf  # type: ignore[import-untyped]
from tokenizers import Encoding, Tokenizer

from coreeval.errors import ConfigError
from coreeval.tools.embeddings import Vectors
from coreeval.tools.tokenizer_file import find_swelling

WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
MOST_PIECES = 256
"""The most word pieces of a text; the rest is cut off, as in sentence-transformers."""
BATCH_PIECES = 1024
"""The most word pieces of one batch, including padding; larger batches are slower, since they do
not fit into the CPU caches."""


@dataclass(frozen=True)
class NetworkShape:
    """The shape of the network according to config.json."""

    layers: int
    heads: int
    epsilon: float


class MiniLM:
    """Sentence embeddings computed from a folder of weights.

    Args:
        folder: The folder with model.safetensors, tokenizer.json and config.json.

    Raises:
        ConfigError: a file is missing or broken, or the network is of another kind.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._tokenizer = _load_tokenizer((folder / TOKENIZER).read_text(encoding="utf-8"))
            self._shape = _read_shape(json.loads((folder / CONFIG).read_text(encoding="utf-8")))
            self._weights = _load_weights(folder / WEIGHTS)
            digest = hashlib.sha256()
            for name in (WEIGHTS, TOKENIZER, CONFIG):
                digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
            self._forward(np.zeros((1, 1), dtype=np.int64), np.ones((1, 1), dtype=np.float32))
        except (
            *(OSError, ValueError, TypeError, LookupError, RecursionError),
            SafetensorError,
        ) as error:
            raise ConfigError(
                f"these are not the weights of a BERT model like MiniLM: {error}",
                where=str(folder),
                hint=f"the folder needs {WEIGHTS}, {TOKENIZER} and {CONFIG}",
            ) from None
        if self._tokenizer.get_vocab_size() > len(
            self._weights["embeddings.word_embeddings.weight"]
        ):
            raise ConfigError(
                f"{TOKENIZER} has more word pieces than {WEIGHTS}",
                where=str(folder),
                hint="use the three files of the same model",
            )
        places = len(self._weights["embeddings.position_embeddings.weight"])
        self._tokenizer.enable_truncation(min(MOST_PIECES, places))
        self._tokenizer.no_padding()
        self.name = f"minilm@{digest.hexdigest()[:12]}"

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (texts, 384)."""
        pieces = self._tokenizer.encode_batch(list(texts))
        found = np.zeros((len(texts), self._width), dtype=np.float32)
        for places in _batches([len(one.ids) for one in pieces]):
            found[places] = self._forward(*_pad([pieces[place] for place in places]))
        return found

    @property
    def _width(self) -> int:
        return int(self._weights["embeddings.LayerNorm.weight"].shape[0])

    def _forward(self, ids: np.ndarray, mask: Vectors) -> Vectors:
        """Return the vectors of word pieces, shape (texts, pieces), for pieces with mask 1."""
        state = self._encode_ids(ids)
        away = (1 - mask[:, None, None, :]) * np.float32(-1e9)
        for layer in range(self._shape.layers):
            at = f"encoder.layer.{layer}."
            attended = self._linear(f"{at}attention.output.dense", self._attention(at, state, away))
            state = self._norm(f"{at}attention.output.LayerNorm", state + attended)
            inner = _gelu(self._linear(f"{at}intermediate.dense", state))
            state = self._norm(
                f"{at}output.LayerNorm", state + self._linear(f"{at}output.dense", inner)
            )
        pooled = (state * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return np.asarray(pooled / np.linalg.norm(pooled, axis=-1, keepdims=True))

    def _encode_ids(self, ids: np.ndarray) -> Vectors:
        read = self._weights
        state = read["embeddings.word_embeddings.weight"][ids]
        state = state + read["embeddings.position_embeddings.weight"][: ids.shape[1]]
        state += read["embeddings.token_type_embeddings.weight"][0]
        return self._norm("embeddings.LayerNorm", state)

    def _attention(self, at: str, state: Vectors, away: Vectors) -> Vectors:
        texts, pieces, width = state.shape
        query, key, value = (
            self._linear(f"{at}attention.self.{part}", state)
            .reshape(texts, pieces, self._shape.heads, -1)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(query.shape[-1] ** 0.5) + away
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        return np.asarray(mixed.transpose(0, 2, 1, 3).reshape(texts, pieces, width))

    def _linear(self, name: str, state: Vectors) -> Vectors:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        flat = state.reshape(-1, state.shape[-1])  # one product, five times as fast as one per text
        return np.asarray(flat @ weight.T + bias).reshape(*state.shape[:-1], -1)

    def _norm(self, name: str, state: Vectors) -> Vectors:
        centred = state - state.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self._shape.epsilon)
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return np.asarray(centred / spread * weight + bias, dtype=np.float32)


def _load_tokenizer(text: str) -> Tokenizer:
    told = json.loads(text)
    if isinstance(told, dict) and (problem := find_swelling(told)):
        raise ValueError(f"{TOKENIZER} {problem}")
    try:
        return Tokenizer.from_str(text)
    except Exception as error:  # noqa: BLE001 - the package raises nothing narrower
        raise ValueError(f"{TOKENIZER}: {error}") from None


def _read_shape(config: object) -> NetworkShape:
    if not isinstance(config, Mapping):
        raise ValueError(f"{CONFIG} is not an object")
    if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
        raise ValueError(f"{CONFIG} does not describe a BERT model with gelu")
    return NetworkShape(
        layers=int(str(config["num_hidden_layers"])),
        heads=int(str(config["num_attention_heads"])),
        epsilon=float(str(config["layer_norm_eps"])),
    )


def _load_weights(file: Path) -> dict[str, Vectors]:
    if not file.is_file():  # the library's own message does not name the file
        raise FileNotFoundError(f"{file.name} is missing")
    return {
        name.removeprefix("bert."): value.astype(np.float32, copy=False)
        for name, value in load_file(file).items()
        if value.dtype.kind == "f"
    }


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Return indices sorted by length, in batches that padding does not make large."""
    batches: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batches and (len(batches[-1]) + 1) * lengths[place] <= BATCH_PIECES:
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches


def _pad(pieces: Sequence[Encoding]) -> tuple[np.ndarray, Vectors]:
    longest = max(len(one.ids) for one in pieces)
    ids = np.zeros((len(pieces), longest), dtype=np.int64)
    mask = np.zeros((len(pieces), longest), dtype=np.float32)
    for row, one in enumerate(pieces):
        ids[row, : len(one.ids)] = one.ids
        mask[row, : len(one.ids)] = 1
    return ids, mask


def _gelu(state: Vectors) -> Vectors:
    return np.asarray(state * np.float32(0.5) * (1 + erf(state / np.float32(2**0.5))))
