from collections.abc import Sequence

import numpy as np
import pytest

from coreeval.tools import similarity
from coreeval.tools.embeddings import Vectors
from coreeval.tools.similarity import MeaningSimilarity

VECTORS = {"a": (2.0, 0.0), "b": (0.0, 3.0), "ab": (1.0, 1.0), "": (0.0, 0.0)}


class Embeds:
    name = "test"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return np.array([VECTORS[text] for text in texts], np.float32)


def test_it_is_the_cosine_whatever_the_length_of_vectors() -> None:
    near = MeaningSimilarity(Embeds())
    assert near(["a", "b", "ab", ""], "a") == pytest.approx([1.0, 0.0, 0.7071, 0.0], abs=1e-4)
    assert near([], "a") == []


def test_a_text_is_embedded_once_while_it_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    embeds = Embeds()
    near = MeaningSimilarity(embeds)
    near(["a", "a", "b"], "ab")
    near(["b"], "a")
    assert embeds.texts == ["a", "b", "ab"]
    monkeypatch.setattr(similarity, "MOST_KEPT", 2)
    near(["a"], "b")
    assert embeds.texts == ["a", "b", "ab", "a", "b"]
