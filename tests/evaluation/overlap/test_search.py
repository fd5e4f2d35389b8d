"""Hits are told by kind, with all items that have the text, and shown side by side and safely."""

import csv
from pathlib import Path

from coreeval.evaluation.overlap.document import overlap_document, side_by_side, write_csv
from coreeval.evaluation.overlap.hits import Search
from coreeval.evaluation.overlap.page import page_of
from coreeval.evaluation.overlap.search import find_overlap
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
    (hit,) = find_overlap(a, b, search=Search(threshold=0.3)).hits
    assert 0.3 < hit.similarity < 0.7
    assert find_overlap(a, b, search=Search(threshold=0.75)).hits == ()


def test_words_are_held_against_words_in_every_script() -> None:
    (hit,) = find_overlap(texts("a", CHINESE), texts("b", CHINESE.replace("总", ""))).hits
    both = side_by_side(hit)
    assert [piece.text for piece in both.left if piece.op == "removed"] == ["总"]
    assert "".join(piece.text for piece in both.right) == hit.b[0].text


def test_a_table_of_the_hits(tmp_path: Path) -> None:
    found = find_overlap(texts("a", QUESTION, answers=["x"]), texts("b", f'"{QUESTION}"\n'))
    with write_csv(tmp_path / "hits.csv", found).open(encoding="utf-8", newline="") as file:
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
    page = page_of(find_overlap(a, b))
    assert "<script" not in page and "&lt;script&gt;" in page and "&lt;b&gt;" in page
    assert "now</ins>" in page and "answers differ" in page and "near 0.9" in page
    assert "There is none." in page_of(find_overlap(a, texts("c", OTHER)))
