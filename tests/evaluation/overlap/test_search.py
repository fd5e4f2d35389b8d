"""Hits are told by kind, with all items that have the text, and shown side by side and safely."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from coreeval.evaluation.overlap import search
from coreeval.evaluation.overlap.overlap_report import (
    overlap_document,
    render_overlap_page,
    side_by_side,
    write_overlap_csv,
)
from coreeval.evaluation.overlap.search import OverlapSearch, find_overlap, find_paraphrases
from coreeval.tools.embeddings import Vectors
from tests.evaluation.overlap.kit import CHINESE, QUESTION, texts, unrelated

OTHER, LAST = unrelated(2)


def test_kinds_items_and_answers_between_two() -> None:
    a = texts("a", QUESTION, QUESTION.upper(), OTHER, CHINESE, LAST, answers=["1", "1", "2", "3"])
    b = texts("b", f"{OTHER}!", QUESTION, f"{CHINESE}?甲公司", answers=["5", "1"])
    found = find_overlap(a, b)
    assert [(hit.kind, [e.id for e in hit.a], [e.id for e in hit.b]) for hit in found.hits] == [
        ("exact", ["a1", "a2"], ["b2"]),
        ("normalised", ["a3"], ["b1"]),
        ("near", ["a4"], ["b3"]),
    ]
    assert [hit.same_answer for hit in found.hits] == [True, False, None]
    assert found.items() == (4, 3) and found.items(("exact",)) == (2, 1)
    document = overlap_document(found)
    expected = {"exact": 1, "normalised": 1, "near": 1, "contained": 0, "template": 0}
    assert document["counts"] == expected
    assert document["a"]["in_hits_by_kind"] == expected | {"exact": 2}


def test_within_one_each_pair_is_told_once() -> None:
    a = texts("a", QUESTION, OTHER, f"{QUESTION} Why?", f"{QUESTION} ", QUESTION, LAST, f"{LAST}.")
    found = find_overlap(a)
    assert [(hit.kind, [e.id for e in hit.a], [e.id for e in hit.b]) for hit in found.hits] == [
        ("exact", ["a1"], ["a4", "a5"]),
        ("normalised", ["a6"], ["a7"]),
        ("near", ["a1", "a4", "a5"], ["a3"]),
    ]
    assert found.items() == (6,) and overlap_document(found)["b"] is None


def test_the_threshold_decides_what_is_near() -> None:
    words = OTHER.split()
    a, b = texts("a", OTHER), texts("b", " ".join(words[:7]))
    (hit,) = find_overlap(a, b, search=OverlapSearch(threshold=0.3)).hits
    assert 0.3 < hit.similarity < 0.7
    assert find_overlap(a, b, search=OverlapSearch(threshold=0.75)).hits == ()


def test_words_are_held_against_words_in_every_script() -> None:
    (hit,) = find_overlap(texts("a", CHINESE), texts("b", CHINESE.replace("总", ""))).hits
    both = side_by_side(hit)
    assert [piece.text for piece in both.left if piece.op == "removed"] == ["总"]
    assert "".join(piece.text for piece in both.right) == hit.b[0].text


def test_a_table_of_the_hits(tmp_path: Path) -> None:
    found = find_overlap(texts("a", QUESTION, answers=["x"]), texts("b", f'"{QUESTION}"\n'))
    with write_overlap_csv(tmp_path / "hits.csv", found).open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["kind"], row["similarity"], row["same_answer"]) == ("normalised", "1.0000", "")
    assert (row["a_ids"], row["b_ids"], row["a_answers"]) == ("a1", "b1", "x")
    assert row["b_text"] == f'"{QUESTION}"\n'


def test_the_page_holds_hits_and_obeys_none_of_them() -> None:
    bad = f"<script>alert(1)</script> {QUESTION}"
    a, b = (
        texts("a", bad, QUESTION, answers=["yes", "no"]),
        texts("<b>", f"{bad} now", answers=["no"]),
    )
    page = render_overlap_page(find_overlap(a, b))
    assert "<script" not in page and "&lt;script&gt;" in page and "&lt;b&gt;" in page
    assert "now</ins>" in page and "answers differ" in page and "near 0.9" in page
    assert "No hits." in render_overlap_page(find_overlap(a, texts("c", OTHER)))


SAYS = "What is the value of a perpetual bond that pays 10 dollars if interest is at 8 percent?"
OTHER_BOND = (
    "What is the value of a perpetual bond that pays 99 dollars if interest is at 5 percent?"
)


class Topics:
    """Embeds by topic: texts that begin alike or are about bonds point the same way."""

    name = "minilm@test"

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, 2)."""
        return np.array([[3, 1] if "bond" in text else [-1, 3] for text in texts], np.float32)


def search_with_topics(**more: float) -> OverlapSearch:
    """Return a search with embeddings."""
    return OverlapSearch(embeds=Topics(), **more)


def test_a_paraphrase_is_a_hit_of_its_own_unless_its_numbers_are_others() -> None:
    a, b = (
        texts("a", QUESTION),
        texts("b", SAYS, OTHER_BOND, "unrelated words about the weather today"),
    )
    (hit,) = find_overlap(a, b, search=search_with_topics()).hits
    assert (hit.kind, hit.b[0].id, round(hit.similarity, 6)) == ("paraphrase", "b1", 1.0)
    assert find_overlap(a, b).hits == ()


def test_what_is_a_hit_anyhow_is_no_paraphrase() -> None:
    a, b = texts("a", QUESTION), texts("b", QUESTION, f"{QUESTION} Why?")
    assert [hit.kind for hit in find_overlap(a, b, search=search_with_topics()).hits] == [
        "exact",
        "near",
    ]


def test_documents_name_the_embeddings_and_warn_of_other_scripts() -> None:
    found = find_overlap(
        texts("a", QUESTION), texts("b", CHINESE, SAYS), search=search_with_topics()
    )
    document = overlap_document(found)
    assert document["settings"]["paraphrase"] == {"embeddings": "minilm@test", "threshold": 0.75}
    assert document["counts"]["paraphrase"] == 1
    assert document["notes"][-1].startswith("MiniLM was trained on English: paraphrases of the 1 ")
    assert "according to minilm@test" in render_overlap_page(found)
    silent = overlap_document(find_overlap(texts("a", QUESTION)))
    assert silent["settings"]["paraphrase"] is None and "paraphrase" not in silent["counts"]


def test_pairs_are_those_of_the_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "ROWS", 7)
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(60, 4)).astype(np.float32)

    class Given:
        name = "given"

        def __call__(self, texts: Sequence[str]) -> Vectors:
            return vectors[[int(text) for text in texts]]

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit[:25] @ unit[25:].T
    left, right = [str(i) for i in range(25)], [str(i) for i in range(25, 60)]
    found = {(i, j) for i, j, _ in find_paraphrases(left, right, Given(), 0.9)}
    whole = {tuple(pair) for pair in np.argwhere(cosines >= 0.9).tolist()}
    assert found == whole and whole
    within = [(i, j) for i, j, _ in find_paraphrases(left, None, Given(), 0.9)]
    assert all(i < j for i, j in within)
