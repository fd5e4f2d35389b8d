"""Paraphrases are found by embeddings if there are some, and only among what else is no hit."""

from collections.abc import Sequence

import numpy as np
import pytest

from coreeval.evaluation.overlap import paraphrases
from coreeval.evaluation.overlap.document import overlap_document
from coreeval.evaluation.overlap.hits import Search
from coreeval.evaluation.overlap.page import page_of
from coreeval.evaluation.overlap.paraphrases import paraphrase_pairs
from coreeval.evaluation.overlap.search import find_overlap
from coreeval.tools.embeddings import Vectors
from tests.evaluation.overlap.kit import CHINESE, QUESTION, texts

SAYS = "What is the value of a perpetual bond that pays 10 dollars if interest is at 8 percent?"
OTHER = "What is the value of a perpetual bond that pays 99 dollars if interest is at 5 percent?"


class Topics:
    """Embeds by topic: texts that begin alike or are about bonds point the same way."""

    name = "minilm@test"

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, 2)."""
        return np.array([[3, 1] if "bond" in text else [-1, 3] for text in texts], np.float32)


def search(**more: float) -> Search:
    """Return a search with embeddings."""
    return Search(embeds=Topics(), **more)


def test_a_paraphrase_is_a_hit_of_its_own_unless_its_numbers_are_others() -> None:
    a, b = texts("a", QUESTION), texts("b", SAYS, OTHER, "unrelated words about the weather today")
    (hit,) = find_overlap(a, b, search=search()).hits
    assert (hit.kind, hit.b[0].id, round(hit.similarity, 6)) == ("paraphrase", "b1", 1.0)
    assert find_overlap(a, b).hits == ()


def test_what_is_a_hit_anyhow_is_no_paraphrase() -> None:
    a, b = texts("a", QUESTION), texts("b", QUESTION, f"{QUESTION} Why?")
    assert [hit.kind for hit in find_overlap(a, b, search=search()).hits] == ["exact", "near"]


def test_documents_name_the_embeddings_and_warn_of_other_scripts() -> None:
    found = find_overlap(texts("a", QUESTION), texts("b", CHINESE, SAYS), search=search())
    document = overlap_document(found)
    assert document["settings"]["paraphrase"] == {"embeddings": "minilm@test", "threshold": 0.75}
    assert document["counts"]["paraphrase"] == 1
    assert document["notes"][-1].startswith("MiniLM was trained on English: paraphrases of the 1 ")
    assert "by minilm@test" in page_of(found)
    silent = overlap_document(find_overlap(texts("a", QUESTION)))
    assert silent["settings"]["paraphrase"] is None and "paraphrase" not in silent["counts"]


def test_pairs_are_those_of_the_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paraphrases, "ROWS", 7)
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(60, 4)).astype(np.float32)

    class Given:
        name = "given"

        def __call__(self, texts: Sequence[str]) -> Vectors:
            return vectors[[int(text) for text in texts]]

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit[:25] @ unit[25:].T
    left, right = [str(i) for i in range(25)], [str(i) for i in range(25, 60)]
    found = {(i, j) for i, j, _ in paraphrase_pairs(left, right, Given(), 0.9)}
    whole = {tuple(pair) for pair in np.argwhere(cosines >= 0.9).tolist()}
    assert found == whole and whole
    within = [(i, j) for i, j, _ in paraphrase_pairs(left, None, Given(), 0.9)]
    assert all(i < j for i, j in within)
