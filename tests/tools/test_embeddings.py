"""Embeddings by name: MiniLM in numpy, LangChain's providers, and the cache before them."""

import builtins
import http.server
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from coreeval.errors import ConfigError, ModelUnusable
from coreeval.tools import embedding_providers
from coreeval.tools.embeddings import (
    PACKAGE,
    CheckedEmbedder,
    EmbeddingCache,
    Vectors,
    open_cached_embeddings,
    open_embeddings,
)
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.workspace import Workspace

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
    assert embeds.name == "minilm@3f6926f3480b"
    vectors = embeds(TEXTS)
    assert vectors.shape == (5, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    near, far = float(vectors[0] @ vectors[2]), float(vectors[0] @ vectors[1])
    assert near == pytest.approx(0.5552, abs=1e-4)
    assert far == pytest.approx(0.0363, abs=1e-4)
    assert embeds([]).shape == (0, 0)


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
        ({"tokenizer.json": "{"}, "are not the weights"),
        (
            {"tokenizer.json": "TOKENIZER", "config.json": '{"model_type": "gpt2"}'},
            "BERT model with gelu",
        ),
        ({"tokenizer.json": "TOKENIZER", "config.json": "CONFIG"}, "model.safetensors is missing"),
        ({"tokenizer.json": "SWELLING"}, "tokenizer.json expands one character to more than"),
        ({"tokenizer.json": "TOKENIZER", "config.json": "[]"}, "config.json is not an object"),
        (
            {"tokenizer.json": "TOKENIZER", "config.json": "CONFIG", "model.safetensors": "x" * 99},
            "are not the weights",
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
            "SWELLING": json.dumps({"normalizer": [{"type": "ByteLevel"}] * 40}),
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


@pytest.mark.parametrize(
    ("modules", "told"),
    [
        ('[{"type": "sentence_transformers.models.Pooling"}, {"type": "evil.Thing"}]', "own code"),
        ("[1]", "modules.json: "),
        ("{", "modules.json: "),
    ],
)
def test_a_folder_with_code_of_its_own_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: str, told: str
) -> None:
    asked = list[str]()
    base = pytest.importorskip("langchain.embeddings")
    monkeypatch.setattr(base, "init_embeddings", lambda name, **_: asked.append(name))
    (tmp_path / "modules.json").write_text(modules)
    with pytest.raises(ConfigError, match=told):
        open_embeddings(f"huggingface:{tmp_path}")
    assert asked == []
    (tmp_path / "modules.json").write_text('[{"type": "sentence_transformers.models.Pooling"}]')
    open_embeddings(f"huggingface:{tmp_path}")
    assert asked == [f"huggingface:{tmp_path}"]


def test_a_provider_that_repeats_a_key_does_not_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "Qz7-secret-0123456789"

    class Echo:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise ValueError(f"Incorrect key provided: {key}\nand more")

    _provider(monkeypatch, "DeterministicFakeEmbedding")
    monkeypatch.setenv("MADE_UP_API_KEY", key)
    monkeypatch.setenv("SHORT_API_KEY", "key")
    embeds = embedding_providers.LangChainEmbeddings("made_up:1")
    monkeypatch.setattr(embeds, "_model", Echo())
    with pytest.raises(ModelUnusable) as caught:
        embeds(["one"])
    assert caught.value.message.endswith("no embeddings: Incorrect key provided: ***")


def test_a_provider_that_fails_is_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    _provider(monkeypatch, "DeterministicFakeEmbedding")
    embeds = open_embeddings("made_up:-1")
    with pytest.raises(ModelUnusable, match="made_up:-1 returned no embeddings"):
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


def test_vectors_of_another_endpoint_are_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langchain_ollama")
    workspace = Workspace(root=tmp_path)
    with _server("ok") as (first, asked_first), _server("ok") as (second, asked_second):
        for address in (first, second, f"{first}/"):
            monkeypatch.setenv("OLLAMA_HOST", address)
            with open_cached_embeddings("ollama:nomic", workspace) as embeds:
                assert embeds.name == "ollama:nomic"
                assert embeds(["a text"]).tolist() == [[1.0, 2.0]]
    assert (len(asked_first), len(asked_second)) == (1, 1)


def test_vectors_of_other_weights_in_a_folder_are_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, model = pytest.importorskip("langchain.embeddings"), Saying([1.0])
    model.embed_documents = model  # type: ignore[attr-defined]
    monkeypatch.setattr(base, "init_embeddings", lambda _name, **_: model)
    weights, workspace = tmp_path / "weights", Workspace(root=tmp_path / "workspace")
    weights.mkdir()
    (weights / "model.safetensors").write_text("weights")
    for times in (1, 1, 2):
        os.utime(weights / "model.safetensors", (times, times))
        with open_cached_embeddings(f"huggingface:{weights}", workspace) as embeds:
            embeds(["a text"])
    assert model.asked == ["a text", "a text"]


class Saying:
    """Gives the vector that it is told to give, once for each text."""

    name = "saying"

    def __init__(self, vector: object) -> None:
        self.vector = vector
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[object]:
        self.asked += texts
        return [self.vector] * len(texts)


@pytest.mark.parametrize(
    "vector",
    [
        [float("nan"), 1.0],
        [float("inf"), 1.0],
        [1e39, 1.0],
        [3e38, 3e38],
        [0.0, 0.0],
        [1e-40, 0.0],
        [],
        [None, 1.0],
        ["a", "b"],
        [[1.0]],
        1.0,
        [10**400, 1.0],
    ],
)
def test_what_cannot_be_compared_is_neither_believed_nor_kept(
    tmp_path: Path, vector: object
) -> None:
    model = Saying(vector)
    with JsonCache(tmp_path) as cache:
        embeds = EmbeddingCache(CheckedEmbedder(model), cache)
        with pytest.raises(ModelUnusable, match="saying returned"):
            embeds(["one", "two"])
        model.vector = [1.0, 2.0]
        assert embeds(["one"]).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("given", [[[1.0]], [[1.0], [1.0, 2.0]], [[1.0]] * 3])
def test_each_text_has_one_vector_of_one_size(given: list[list[float]]) -> None:
    class Uneven(Saying):
        def __call__(self, texts: Sequence[str]) -> list[object]:
            return [*given]

    with pytest.raises(ModelUnusable, match="saying returned"):
        CheckedEmbedder(Uneven(None))(["one", "two"])


def test_half_a_surrogate_pair_is_embedded_as_unknown(tmp_path: Path) -> None:
    model = Saying([1.0])
    with JsonCache(tmp_path) as cache:
        embeds = EmbeddingCache(CheckedEmbedder(model), cache)
        assert embeds(["a\ud800b", "\U0001f600"]).shape == (2, 1)
    assert model.asked == ["a\ufffdb", "\U0001f600"]


def test_vectors_of_another_size_are_embedded_anew(tmp_path: Path) -> None:
    model = Saying([1.0, 2.0])
    with JsonCache(tmp_path) as cache:
        EmbeddingCache(CheckedEmbedder(model), cache)(["a", "b"])
        model.vector = [1.0, 2.0, 3.0]
        embeds = EmbeddingCache(CheckedEmbedder(model), cache)
        assert embeds(["a", "c"]).shape == (2, 3)
        assert model.asked == ["a", "b", "c", "a"]
        assert embeds(["b"]).shape == (1, 3)


def test_a_size_that_changes_within_a_run_stops_it_once(tmp_path: Path) -> None:
    model = Saying([1.0, 2.0])
    with JsonCache(tmp_path) as cache:
        EmbeddingCache(CheckedEmbedder(model), cache)(["a", "b"])
        model.vector = [1.0, 2.0, 3.0]
        embeds = EmbeddingCache(CheckedEmbedder(model), cache)
        assert embeds(["a"]).shape == (1, 2)
        with pytest.raises(ModelUnusable, match="a different size than before") as caught:
            embeds(["c"])
        assert "resume" in caught.value.hint
        again = EmbeddingCache(CheckedEmbedder(model), cache)
        assert [again([text]).shape for text in "abc"] == [(1, 3)] * 3


def test_a_model_that_never_keeps_to_a_size_is_an_error(tmp_path: Path) -> None:
    class Growing(Saying):
        def __call__(self, texts: Sequence[str]) -> list[object]:
            self.vector = [*self.vector, 1.0]  # type: ignore[misc]
            return super().__call__(texts)

    model = Growing([1.0])
    with JsonCache(tmp_path) as cache:
        EmbeddingCache(CheckedEmbedder(model), cache)(["a"])
        with pytest.raises(ModelUnusable, match="a different size than before"):
            EmbeddingCache(CheckedEmbedder(model), cache)(["a", "b"])


@pytest.mark.parametrize(
    "kept", ["abc", "YWJj", "", "\u00e9", "AADAfw==", "AAAAAA==", 7, None, ["AACAPw=="]]
)
def test_a_damaged_vector_is_missing(tmp_path: Path, kept: object) -> None:
    model = Saying([1.0])
    with JsonCache(tmp_path) as cache:
        embeds = EmbeddingCache(CheckedEmbedder(model), cache)
        embeds(["a"])
        cache.put(embeds._key("a"), kept, expire_s=60)  # type: ignore[arg-type]
        assert embeds(["a"]).tolist() == [[1.0]]
    assert model.asked == ["a", "a"]


class _Answers(http.server.BaseHTTPRequestHandler):
    """Ollama, as far as its package asks: `/api/embed` of a server that may be hostile."""

    way = "ok"
    moved = ""
    seen: list[bytes]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer by the way that the class is told."""
        said = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append(said)
        body = json.dumps({"embeddings": [[1.0, 2.0]] * len(json.loads(said)["input"])}).encode()
        if self.way == "moved":
            self.send_response(307)
            self.send_header("location", self.moved + self.path)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.send_response(200)
        if self.way == "packed":
            self.send_header("content-encoding", "gzip")
        if self.way != "long":
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
            for _ in range(12 * (self.way == "long")):
                self.wfile.write(b" " * (1 << 20))
        except OSError:
            pass


@contextmanager
def _server(way: str, moved: str = "") -> Iterator[tuple[str, list[bytes]]]:
    seen: list[bytes] = []
    answers = type("Answers", (_Answers,), {"way": way, "moved": moved, "seen": seen})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()


def _ask_ollama(monkeypatch: pytest.MonkeyPatch, address: str) -> Vectors:
    pytest.importorskip("langchain_ollama")
    monkeypatch.setenv("OLLAMA_HOST", address)
    return open_embeddings("ollama:nomic")(["a private text", "another"])


def test_a_provider_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    with _server("ok") as (address, _):
        assert _ask_ollama(monkeypatch, address).tolist() == [[1.0, 2.0]] * 2


def test_texts_do_not_follow_a_redirect(monkeypatch: pytest.MonkeyPatch) -> None:
    with _server("ok") as (other, seen), _server("moved", other) as (address, _):
        with pytest.raises(ModelUnusable, match="307"):
            _ask_ollama(monkeypatch, address)
        assert seen == []


@pytest.mark.parametrize(
    ("way", "why"), [("long", "more than 8 MiB"), ("packed", "is compressed, but")]
)
def test_an_answer_without_an_end_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, way: str, why: str
) -> None:
    with _server(way) as (address, _), pytest.raises(ModelUnusable, match=why):
        _ask_ollama(monkeypatch, address)


def test_a_provider_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            time.sleep(1.0)
            return [[1.0]] * len(texts)

    _provider(monkeypatch, "DeterministicFakeEmbedding")
    embeds = embedding_providers.LangChainEmbeddings("made_up:1")
    monkeypatch.setattr(embeds, "_model", Hanging())
    monkeypatch.setattr(embedding_providers, "MOST_BATCH_S", 0.05)
    began = time.monotonic()
    with pytest.raises(
        ModelUnusable, match=r"made_up:1 returned no embeddings: no answer within 0\.05"
    ):
        embeds(["one"])
    assert time.monotonic() - began < 0.9


def test_packages_upon_openai_follow_no_redirect(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    embeds = embedding_providers.LangChainEmbeddings("openai:text-embedding-3-small")
    client = embeds._model.http_client  # type: ignore[attr-defined]
    assert not client.follow_redirects
    assert client is embeds._model.client._client._client  # type: ignore[attr-defined]
    client.close()


def test_the_name_of_weights_is_of_all_three_files(tmp_path: Path) -> None:
    pytest.importorskip(PACKAGE, reason="the weights of MiniLM are not installed")
    found = find_spec(PACKAGE)
    assert found is not None
    assert found.origin is not None
    source = Path(found.origin).parent / "model"
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        shutil.copy(source / name, tmp_path / name)
    same = open_embeddings(f"minilm:{tmp_path}").name
    assert same == open_embeddings("minilm").name
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-5}))
    assert open_embeddings(f"minilm:{tmp_path}").name != same
