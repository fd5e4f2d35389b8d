"""How alike two answers are: equal texts, equal options, shared words, near meanings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from coreeval.errors import UsageError
from coreeval.evaluation.metrics import CONSISTENCY, at_least, cosine, cosine_similarity

OPTIONS = {"A": "bond", "B": "share", "C": "future", "D": "option"}
SHUFFLED = {"A": "option", "B": " bond", "C": "share", "D": "future"}


@dataclass
class Twin:
    """What a model said to an item and to its modified twin."""

    original_output: str = ""
    modified_output: str = ""
    original_choice: str | None = None
    modified_choice: str | None = None
    original_options: Mapping[str, str] | None = None
    modified_options: Mapping[str, str] | None = None


def chosen(first: str, second: str) -> Twin:
    return Twin("x", "y", first, second, OPTIONS, SHUFFLED)


class Lengths:
    """Points a text to where its letters a and b would be."""

    name = "lengths"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[text.count("a"), text.count("b")] for text in texts], dtype=np.float32)


def test_exact_compares_whole_answers() -> None:
    twins = [Twin("Rise", " Rise\n"), Twin("Rise", "rise"), Twin("", "")]
    found = CONSISTENCY["exact"](twins)
    assert found.sums[:, 0].tolist() == [1, 0, 1]
    assert found.notes == ("1 of 3 pairs are two empty answers, counted as consistent",)


def test_option_follows_the_text_not_the_letter() -> None:
    twins = [chosen("A", "B"), chosen("A", "A"), chosen("D", "A")]
    assert CONSISTENCY["option"](twins).sums[:, 0].tolist() == [1, 0, 1]


def test_option_letters_match_in_any_case() -> None:
    small = {letter.lower(): text for letter, text in SHUFFLED.items()}
    twins = [chosen("a", "b"), Twin("x", "y", "A", "B", OPTIONS, small)]
    assert CONSISTENCY["option"](twins).sums[:, 0].tolist() == [1, 1]


@pytest.mark.parametrize("unclear", ["", "AB", "E", "none", "持"])
def test_an_unclear_choice_is_inconsistent_and_stays_in_the_denominator(unclear: str) -> None:
    found = CONSISTENCY["option"]([chosen(unclear, unclear), chosen("B", "C")])
    assert found.sums.tolist() == [[0, 1], [1, 1]]


def test_options_with_one_text_are_one_option() -> None:
    twin = Twin("", "", "A", "B", {"A": "1 %", "B": "1 %"}, {"A": "2 %", "B": "1  %"})
    assert CONSISTENCY["option"]([twin]).score == 1


def test_option_without_options_says_what_is_missing() -> None:
    with pytest.raises(UsageError, match="item 2 has no choices or no options"):
        CONSISTENCY["option"]([chosen("A", "B"), Twin("A", "B", "A", "B")])


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ("the rate rose", "the rate fell", 2 / 4),
        ("59%", " 59%", 1),
        ("", "", 1),
        ("", "a", 0),
        ("Rate", "rate", 0),
        ("a  b", "a b", 2 / 3),
        ("利率上升", "利率下降", 2 / 6),
        ("rate 利率", "rate 汇率", 2 / 4),
    ],
)
def test_jaccard(first: str, second: str, value: float) -> None:
    assert CONSISTENCY["jaccard"]([Twin(first, second)]).score == pytest.approx(value)


def test_cosine_counts_pairs_from_the_threshold_on() -> None:
    twins = [Twin("ab", "aabb"), Twin("a", "b"), Twin("aaab", "aaa"), Twin("", "")]
    similarity = cosine_similarity(twins, Lengths())
    assert similarity.tolist() == pytest.approx([1, 0, 3 / 10**0.5, 1])
    assert cosine(Lengths())(twins).score == 2 / 4
    assert cosine(Lengths(), threshold=0.9)(twins).score == 3 / 4
    assert at_least(np.array([0.95, 0.949]), 0.95).score == 0.5
