"""Embeddings by name: MiniLM in numpy, LangChain's providers, and the cache before them."""

import builtins
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from coreeval.errors import ConfigError, ModelUnusable
from coreeval.tools.embeddings import PACKAGE, EmbeddingCache, Vectors, open_embeddings
from coreeval.tools.json_cache import JsonCache

TEXTS = [
    "The cat sits outside",
    "A man is playing guitar",
    "The feline is outdoors",
    "Sales rose by 3 % to $ 2.5 million in the fourth quarter, the company said on Tuesday.",
    "",
]


class Counting:
    """Embeds a text as its length, and counts what it is asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return np.array([[len(text), 0.1] for text in texts], dtype=np.float32)


def test_minilm_tells_near_meanings_from_far_ones() -> None:
    pytest.importorskip(PACKAGE, reason="the weights of MiniLM are not installed")
    embeds = open_embeddings("minilm")
    assert embeds.name == "minilm@53aa51172d14"
    vectors = embeds(TEXTS)
    assert vectors.shape == (5, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    near, far = float(vectors[0] @ vectors[2]), float(vectors[0] @ vectors[1])
    assert near == pytest.approx(0.5552, abs=1e-4)
    assert far == pytest.approx(0.0363, abs=1e-4)
    assert embeds([]).shape == (0, 384)


def test_a_text_is_embedded_alike_alone_and_in_a_batch() -> None:
    pytest.importorskip(PACKAGE, reason="the weights of MiniLM are not installed")
    embeds = open_embeddings("minilm")
    together = embeds([*TEXTS, "word " * 400])
    for text, vector in zip(TEXTS, together, strict=False):
        assert embeds([text])[0] == pytest.approx(vector, abs=1e-5)
    assert embeds(["word " * 300])[0] == pytest.approx(together[-1], abs=1e-5)  # cut at 256 pieces


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({}, "tokenizer.json"),
        ({"tokenizer.json": "{"}, "are no weights"),
        (
            {"tokenizer.json": "TOKENIZER", "config.json": '{"model_type": "gpt2"}'},
            "BERT with gelu",
        ),
        ({"tokenizer.json": "TOKENIZER", "config.json": "CONFIG"}, "model.safetensors is missing"),
        (
            {"tokenizer.json": "TOKENIZER", "config.json": "CONFIG", "model.safetensors": "x" * 99},
            "are no weights",
        ),
    ],
)
def test_a_folder_that_is_no_minilm(tmp_path: Path, files: Mapping[str, str], missing: str) -> None:
    pytest.importorskip("safetensors")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    config = {"model_type": "bert", "hidden_act": "gelu", "num_hidden_layers": 1,
              "num_attention_heads": 1, "layer_norm_eps": 1e-12}  # fmt: skip
    made = {"TOKENIZER": Tokenizer(WordLevel({"a": 0}, unk_token="a")).to_str(),
            "CONFIG": json.dumps(config)}  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_text(made.get(content, content))
    with pytest.raises(ConfigError, match=missing) as caught:
        open_embeddings(f"minilm:{tmp_path}")
    assert caught.value.where == str(tmp_path)


@pytest.mark.parametrize(
    ("missing", "name", "hint"),
    [
        ("safetensors", "minilm:/weights", "coreeval[embeddings]"),
        ("langchain.embeddings", "openai:text-embedding-3-small", "coreeval[providers]"),
    ],
)
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, missing: str, name: str, hint: str
) -> None:
    real = builtins.__import__

    def without(module: str, *args: object, **kwargs: object) -> object:
        if module == missing or module.startswith(f"{missing}."):
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real(module, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.delitem(__import__("sys").modules, "coreeval.tools.minilm", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError) as caught:
        open_embeddings(name)
    assert hint in caught.value.hint


def test_missing_weights_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coreeval.tools.embeddings.PACKAGE", "no_such_package")
    with pytest.raises(ConfigError, match="not installed") as caught:
        open_embeddings("minilm")
    assert "minilm:PATH" in caught.value.hint


def _provider(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    base = pytest.importorskip("langchain.embeddings.base")
    monkeypatch.setitem(
        base._BUILTIN_PROVIDERS,
        "made_up",
        ("langchain_core.embeddings", kind, lambda cls, model: cls(size=int(model))),
    )


def test_a_provider_of_langchains(monkeypatch: pytest.MonkeyPatch) -> None:
    _provider(monkeypatch, "DeterministicFakeEmbedding")
    embeds = open_embeddings("made_up:8")
    assert embeds.name == "made_up:8"
    vectors = embeds(["one", "two"] * 200)
    assert vectors.shape == (400, 8)
    assert vectors[0] == pytest.approx(vectors[2])


def test_a_provider_that_fails_is_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    _provider(monkeypatch, "DeterministicFakeEmbedding")
    embeds = open_embeddings("made_up:-1")
    with pytest.raises(ModelUnusable, match="made_up:-1 gave no embeddings"):
        embeds(["one"])


@pytest.mark.parametrize("name", ["nobody:model", "minilm2", "openai:"])
def test_a_name_that_means_nothing(name: str) -> None:
    pytest.importorskip("langchain.embeddings")
    with pytest.raises(ConfigError):
        open_embeddings(name)


def test_a_text_is_embedded_once(tmp_path: Path) -> None:
    first, again = Counting(), Counting()
    with JsonCache(tmp_path) as cache:
        found = EmbeddingCache(first, cache)(["aa", "b", "aa"])
        assert found.tolist() == pytest.approx(np.array([[2, 0.1], [1, 0.1], [2, 0.1]]))
        assert first.asked == [["aa", "b"]]
        kept = EmbeddingCache(again, cache)(["b", "ccc", "aa"])
        assert kept.tolist() == pytest.approx(np.array([[1, 0.1], [3, 0.1], [2, 0.1]]))
    assert again.asked == [["ccc"]]


def test_another_model_does_not_get_its_vectors(tmp_path: Path) -> None:
    other = Counting()
    other.name = "other"
    with JsonCache(tmp_path) as cache:
        EmbeddingCache(Counting(), cache)(["aa"])
        EmbeddingCache(other, cache)(["aa"])
    assert other.asked == [["aa"]]
