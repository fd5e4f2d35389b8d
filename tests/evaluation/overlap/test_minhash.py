"""Normal form, shingles, MinHash: near texts are found, others are not, in every script."""

from itertools import combinations

import numpy as np
import pytest

from coreeval.evaluation.overlap import minhash
from coreeval.evaluation.overlap.minhash import (
    FINE,
    find_candidates,
    find_near_pairs,
    jaccard_index,
    sign_sets,
)
from coreeval.evaluation.overlap.shingles import cut_shingles, normal_key, normalise_words
from tests.evaluation.overlap.kit import CHINESE, QUESTION, unrelated


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello, World!", "hello world"),
        ("\uff21\uff22\uff23 \uff11\uff12", "abc12"),
        ("曲线 的斜率, 为____。", "曲线的斜率为"),
        ("Stra\u00dfe", "STRASSE"),
        ("😂 😂", "😂 😂\n"),
        ("\u0645\u064e\u0644\u0650\u0643", "\u0645\u0644\u0643"),
        ("\u05de\u05b6\u05dc\u05b6\u05da\u05be", "\u05de\u05dc\u05da"),
    ],
)
def test_form_case_signs_and_blanks_do_not_count(one: str, other: str) -> None:
    assert normal_key(one) == normal_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.5 %", "15 %"),
        ("2-1", "2+1"),
        ("😂", "🙃"),
        ("a b", "a c"),
        ("वह लड़का अच्छा है", "वह लड़की अच्छी है"),
        ("दिन", "दान"),
        ("เขา", "เข้า"),
    ],
)
def test_what_tells_texts_apart_stays(one: str, other: str) -> None:
    assert normal_key(one) != normal_key(other)


def test_shingles_are_four_characters_or_two_where_scripts_need_no_blanks() -> None:
    cut = cut_shingles(["abcdef", "", "斜率为", "ab", "为x y", "abcdef"])
    assert cut.sizes.tolist() == [3, 0, 2, 0, 1, 3]
    first, last = cut.rows(np.array([0]))[1], cut.rows(np.array([5]))[1]
    assert first.tolist() == last.tolist()
    assert len(cut_shingles([]).sizes) == 0


def test_the_index_is_that_of_the_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coreeval.evaluation.overlap.shingles.CHUNK", 30)
    found = ["the rate rises today", "the rate falls today", CHINESE, CHINESE[4:], "nothing else"]
    cut = cut_shingles(list(map(normalise_words, found)))

    def cut_by_hand(text: str) -> set[str]:
        words = normalise_words(text)
        width = 2 if "市" in words else 4
        return {words[at : at + width] for at in range(len(words) - width + 1)}

    for i, j in combinations(range(len(found)), 2):
        one, other = cut_by_hand(found[i]), cut_by_hand(found[j])
        index = jaccard_index(cut, np.array([i]), cut, np.array([j]))[0]
        assert index == pytest.approx(len(one & other) / len(one | other))


def test_signatures_estimate_the_index() -> None:
    words = unrelated(1)[0].split()
    cut = cut_shingles([" ".join(words), " ".join(words[:9])])
    one, other = sign_sets(cut, FINE)
    index = jaccard_index(cut, np.array([0]), cut, np.array([1]))[0]
    assert (one == other).mean() == pytest.approx(index, abs=0.1)  # 3 standard errors of 192


def test_near_texts_are_found_among_many_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minhash, "_SIGNATURE_WORK", 500)
    monkeypatch.setattr(minhash, "_BATCH", 3)
    monkeypatch.setattr(minhash, "_COMPARISON_WORK", 200)
    left = [*unrelated(300), QUESTION, CHINESE]
    right = [CHINESE.replace("多少", ""), *unrelated(300, seed=2), f"So: {QUESTION.upper()}"]
    found = find_near_pairs(left, right, 0.4)
    assert {(i, j) for i, j, _ in found.pairs} == {(300, 301), (301, 0)}
    assert all(0.8 < value < 1 for _, _, value in found.pairs)
    assert (found.short, found.crowded) == ((0, 0), 0)
    within = find_near_pairs([*left, *right], None, 0.4)
    assert {(i, j) for i, j, _ in within.pairs} == {(300, 603), (301, 302)}


def test_the_form_of_a_benchmark_is_not_a_likeness() -> None:
    asked = [f"Choose one of the options A, B, C, D and answer the question: {text[:25]}"
             for text in unrelated(40)]  # fmt: skip
    assert find_near_pairs(asked, None, 0.4).pairs == ()
    assert len(find_near_pairs(asked[:5], None, 0.4).pairs) == 10  # too few to know the form
    halves = find_near_pairs(asked[:20], asked[20:], 0.4)
    assert halves.pairs == ()


def test_short_texts_are_counted_and_left_alone() -> None:
    found = find_near_pairs(["so sad", "so sad!", QUESTION], ["so sad."], 0.4)
    assert (found.pairs, found.short) == ((), (2, 1))


def test_a_crowd_is_compared_with_its_first_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minhash, "CROWD", 20)
    alike = [f"{QUESTION} {number}" for number in range(5)]
    within = find_near_pairs([*alike, *unrelated(40)], None, 0.4)
    assert within.crowded
    assert {(0, other) for other in range(1, 5)} <= {(i, j) for i, j, _ in within.pairs}
    across = find_near_pairs([*alike, *unrelated(40)], alike, 0.4)
    assert across.crowded
    assert {i for i, _, _ in across.pairs} == {j for _, j, _ in across.pairs} == set(range(5))


def test_nothing_to_compare_is_no_fault() -> None:
    assert find_near_pairs([], [], 0.4).pairs == find_near_pairs(["a"], None, 0.4).pairs == ()
    none = sign_sets(cut_shingles([]), FINE)
    assert len(find_candidates(none, None, FINE, 0.3).left) == 0
