"""The quiz: items, letters, both orders, and targets with a known memory and known habits."""

import random
from collections.abc import Callable

import pytest
from scipy.stats import binomtest  # type: ignore[import-untyped]

from coreeval.evaluation.recitation import FEWEST_ITEMS, MOST_ITEMS
from coreeval.evaluation.recitation_quiz import (
    ORDERS,
    FirstText,
    QuizItem,
    choose_quiz_items,
    judge_quiz,
)
from coreeval.evaluation.scores import NO_SCORE
from coreeval.schema import AnswerKind, Arm

WORDS = [f"word{n}" for n in range(40)]
Answers = dict[tuple[str, FirstText], tuple[AnswerKind, str]]


def make_text(seed: str) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=12))


def make_items(number: int) -> list[QuizItem]:
    arms: tuple[Arm, ...] = ("original", "semantic")
    samples = [
        (f"s{n:03}", {arm: {"text": make_text(f"{n} {arm}")} for arm in arms})
        for n in range(number)
    ]
    return choose_quiz_items(samples, seed=7)


def answer_all(items: list[QuizItem], pick: Callable[[QuizItem, FirstText], str]) -> Answers:
    return {(item.id, first): ("answered", pick(item, first)) for item in items for first in ORDERS}


def find_letter(item: QuizItem, first: FirstText) -> str:
    """Return the letter of the original."""
    return next(letter for letter, text in item.order(first).items() if text == item.original)


def test_each_text_is_first_once() -> None:
    item = QuizItem("x", "the original", "the rewording")
    assert item.order("original") == {"A": "the original", "B": "the rewording"}
    assert item.order("reworded") == {"A": "the rewording", "B": "the original"}


def test_only_texts_with_another_wording_are_asked_about() -> None:
    long, other = make_text("a"), make_text("b")
    original: dict[Arm, dict[str, str]] = {"original": {"premise": long, "hypothesis": "Short."}}
    samples: list[tuple[str, dict[Arm, dict[str, str]]]] = [
        ("asked", {**original, "semantic": {"premise": other, "hypothesis": "Brief."}}),
        ("same", {**original, "semantic": {"premise": long.upper() + "!", "hypothesis": "x"}}),
        ("updated alone", {**original, "updated": {"premise": other, "hypothesis": "x"}}),
        ("short", {"original": {"premise": "a b c"}, "semantic": {"premise": "d e f"}}),
    ]
    assert choose_quiz_items(samples, seed=0) == [QuizItem("asked", long, other)]


def test_the_draw_is_bounded_and_depends_on_seed_and_ids() -> None:
    many = make_items(MOST_ITEMS + 50)
    assert len(many) == MOST_ITEMS
    samples: list[tuple[str, dict[Arm, dict[str, str]]]] = [
        (item.id, {"original": {"text": item.original}, "semantic": {"text": item.reworded}})
        for item in reversed(many)
    ]
    assert choose_quiz_items(samples, seed=7) == many


def test_questions_about_one_text_are_one_item() -> None:
    samples: list[tuple[str, dict[Arm, dict[str, str]]]] = [
        (f"{n}-{number}", {"original": {"text": text}, "semantic": {"text": make_text(f"s{n}")}})
        for n in range(3)
        for number, text in enumerate((make_text(f"{n}"), make_text(f"{n}").upper()))
    ]
    assert [item.id[0] for item in choose_quiz_items(samples, seed=0)] == ["0", "1", "2"]


def test_counts_by_hand() -> None:
    items = make_items(24)
    said = answer_all(items[:12], find_letter)
    for item in items[12:15]:
        said[item.id, "original"] = ("answered", "(B)")
        said[item.id, "reworded"] = ("truncated", "The answer is A.")
    for item in items[15:19]:
        said |= answer_all([item], lambda *_: "A")
    for item in items[19:21]:
        said |= answer_all([item], lambda *_: "B")
    said[items[21].id, "original"] = ("answered", "A")
    said[items[21].id, "reworded"] = ("refused", "B")
    said[items[22].id, "original"] = ("answered", "A and B are alike")
    found = judge_quiz(items, said)
    assert (found.asked, found.items, found.unanswered) == (24, 21, 5)
    assert (found.original, found.reworded, found.first, found.last) == (12, 3, 4, 2)
    assert found.p_value == pytest.approx(binomtest(12, 15, 0.5, alternative="greater").pvalue)
    assert found.picked.estimate == pytest.approx((12 + 6 / 2) / 21)
    assert found.verdict == "no_preference"
    assert (
        found.reason == "in both orders it picked 12 of 21 originals and 3 rewordings (p = 0.018)"
    )


def test_who_remembers_two_in_five_is_found_and_guesses_and_habits_are_not() -> None:
    """20 targets of each kind: planted memory, guesses, a preference for the first text."""
    items = make_items(100)

    def planted(chance: random.Random) -> Callable[[QuizItem, FirstText], str]:
        known = {item.id for item in items if chance.random() < 0.4}
        return lambda item, first: (
            find_letter(item, first) if item.id in known else chance.choice("AB")
        )

    def biased(chance: random.Random) -> Callable[[QuizItem, FirstText], str]:
        return lambda *_: "A" if chance.random() < 0.9 else "B"

    kinds = {
        "planted": planted,
        "guessing": lambda chance: lambda *_: chance.choice("AB"),
        "biased": biased,
    }
    found = {
        name: [judge_quiz(items, answer_all(items, make(random.Random(n)))) for n in range(20)]
        for name, make in kinds.items()
    }
    assert sum(each.verdict == "picks_originals" for each in found["planted"]) >= 18
    for name in ("guessing", "biased"):
        assert {each.verdict for each in found[name]} == {"no_preference"}
    for each in found["biased"]:
        assert each.picked.estimate == pytest.approx(0.5, abs=0.1)


def test_few_texts_and_answers_without_a_letter_say_nothing() -> None:
    few = make_items(FEWEST_ITEMS - 1)
    found = judge_quiz(few, answer_all(few, find_letter))
    assert found.verdict == "too_few" and found.reason.startswith(
        "19 different texts have at least 6 words"
    )
    none = judge_quiz([], {})
    assert (none.verdict, none.picked) == ("too_few", NO_SCORE)
    items = make_items(30)
    mute = judge_quiz(items, answer_all(items, lambda *_: "I cannot know that."))
    assert mute.verdict == "refusing"
    assert mute.reason == "it picked a text in both orders for 0 of 30 originals"
