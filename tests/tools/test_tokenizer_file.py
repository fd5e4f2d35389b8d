"""A tokenizer of a stranger's: no part of it makes much of a short text."""

from base64 import b64encode

import pytest

from coreeval.tools.tokenizer_file import find_swelling

BYTES = {"type": "ByteLevel"}
SWELL = {"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 40}
BETWEEN = {"type": "Replace", "pattern": {"Regex": ""}, "content": "x"}

EMPTY = {"type": "Precompiled", "precompiled_charsmap": b64encode(bytes(4)).decode()}


def charsmap(longest: int, tree: bytes = b"") -> dict[str, object]:
    """Return a step with a compiled map."""
    content = len(tree).to_bytes(4, "little") + tree + b"ab\0" + b"x" * longest + b"\0c\0"
    return {"type": "Precompiled", "precompiled_charsmap": b64encode(content).decode()}


def template(tokens: int, *, processors: int = 1, pieces: int = 1) -> dict[str, object]:
    """Return post-processors that put a special token around a text, which stands for some."""
    special = {"X": {"id": "X", "ids": [0] * tokens, "tokens": ["<end>"] * tokens}}
    single = [{"SpecialToken": {"id": "X"}}, *[{"Sequence": {"id": "A"}}] * pieces]
    one = {"type": "TemplateProcessing", "single": single, "special_tokens": special}
    return {"type": "Sequence", "processors": [BYTES, *[one] * processors]}


@pytest.mark.parametrize(
    "tokenizer",
    [
        {"normalizer": {"type": "Sequence", "normalizers": [BYTES] * 10}},
        {"normalizer": [BYTES] * 5, "pre_tokenizer": {"pretokenizers": [BYTES] * 5}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [BYTES] * 10}},
        {"normalizer": [{"type": "BertNormalizer"}] * 7},
        {"normalizer": [BETWEEN] * 10},
        {"normalizer": [{**BETWEEN, "pattern": {"String": ""}}] * 10},
        {"normalizer": charsmap(1001)},
        {"normalizer": [charsmap(40), charsmap(40)]},
        {"normalizer": [BYTES, EMPTY, {**SWELL, "content": ""}] * 10},
        {"post_processor": [template(1, processors=10), {"single": []}]},
        {"decoder": {"type": "Sequence", "decoders": [SWELL, {"type": "Fuse"}, SWELL]}},
        {"post_processor": template(501)},
        {"post_processor": template(1, processors=10)},
        {"post_processor": template(1, pieces=1000)},
    ],
)
def test_steps_that_swell_texts_are_told(tokenizer: dict[str, object]) -> None:
    assert find_swelling(tokenizer) == "expands one character to more than 1,000 characters"


@pytest.mark.parametrize(
    "tokenizer",
    [
        {"added_tokens": [{"id": 0, "content": "x" * 10_001}]},
        {"model": {"type": "Unigram", "vocab": [["a", 0.0], ["x" * 10_001, 0.0]]}},
        {"model": {"type": "BPE", "vocab": {"x" * 10_001: 0}}},
    ],
)
def test_endless_tokens_are_told(tokenizer: dict[str, object]) -> None:
    assert find_swelling(tokenizer) == "has a token of more than 10,000 characters"


def test_what_usual_tokenizers_do_is_no_swelling() -> None:
    steps = [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "NFKD"},
        {"type": "Lowercase"},
        charsmap(33, tree=b"x" * 2000),
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
    ]
    blanks = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    told = {
        "added_tokens": [{"id": 0, "content": "<end>"}],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split"}, BYTES]},
        "post_processor": template(1, processors=2),
        "decoder": {"type": "Sequence", "decoders": [blanks, {"type": "ByteFallback"}]},
        "model": {"type": "Unigram", "vocab": [["a", 0.0], [" " * 500, 0.0]]},
    }
    assert find_swelling(told) == ""
    assert find_swelling({"model": None, "decoder": None, "post_processor": "odd"}) == ""


@pytest.mark.parametrize("packed", ["", "AA", "\u20ac", "AAAAAA=="])
def test_a_map_that_is_none_is_left_to_the_tokenizer(packed: str) -> None:
    assert find_swelling({"normalizer": {"precompiled_charsmap": packed}}) == ""
