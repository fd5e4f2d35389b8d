"""N-grams and peakedness: places of a text, shares by hand, and targets with a known memory."""

import random
from collections.abc import Callable, Mapping

import pytest
from scipy.stats import binomtest  # type: ignore[import-untyped]

from coreeval.evaluation.recitation import FEWEST_ITEMS, HalvedText
from coreeval.evaluation.recitation_peakedness import (
    DRAWS,
    FEWEST_DRAWS,
    cut_half,
    judge_peakedness,
    measure_edits,
    measure_peakedness,
)
from coreeval.evaluation.recitation_shares import (
    MOST_PAIRS,
    MOST_STARTS,
    Place,
    ShareFinding,
    TextPair,
    choose_pairs,
    cut_ngrams,
    judge_ngrams,
    list_places,
    says_words,
)
from coreeval.schema import AnswerKind, Arm

WORDS = [f"word{n}" for n in range(40)]
Cut = Callable[[str], tuple[HalvedText, ...]]
Answers = dict[Place, tuple[AnswerKind, str]]


def make_text(seed: str, words: int = 24) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def make_samples(number: int, *twins: Arm) -> list[tuple[str, Mapping[Arm, Mapping[str, str]]]]:
    arms: tuple[Arm, ...] = ("original", *twins)
    return [
        (f"s{n:03}", {arm: {"text": make_text(f"{n} {arm}")} for arm in arms})
        for n in range(number)
    ]


def make_pairs(number: int, cut: Cut) -> list[TextPair]:
    samples = make_samples(number, "semantic")
    return choose_pairs(lambda: samples, cut, seed=7)


# -- which texts are asked about, and where -------------------------------------------------------


def test_starting_points_are_spread_over_the_text_and_do_not_overlap() -> None:
    words = [f"w{n}" for n in range(40)]
    places = cut_ngrams(" ".join(words))
    starts = [len(place.beginning.split()) for place in places]
    assert starts == [6, 13, 20, 27, 35] and len(places) == MOST_STARTS
    for start, place in zip(starts, places, strict=True):
        assert place.rest.split() == words[start : start + 5]
    assert [len(each.beginning.split()) for each in cut_ngrams(" ".join(words[:16]))] == [6, 11]
    assert cut_ngrams(" ".join(words[:15])) == ()


def test_marks_alone_are_no_words_of_an_ngram() -> None:
    text = "a b c d e f - g h , i j k ! l m n o p q"
    first, second = cut_ngrams(text)
    assert first == HalvedText("a b c d e f -", "g h , i j k")
    assert second == HalvedText("a b c d e f - g h , i j k ! l", "m n o p q")


def test_reworded_twins_are_preferred_where_enough_texts_have_one() -> None:
    few, many = make_samples(FEWEST_ITEMS - 1, "semantic", "updated"), make_samples(60, "updated")
    both = [*few, *many[len(few) :]]
    assert {pair.arm for pair in choose_pairs(lambda: both, cut_half, seed=0)} == {"updated"}
    enough = make_samples(FEWEST_ITEMS, "semantic", "updated")
    assert {pair.arm for pair in choose_pairs(lambda: enough, cut_half, seed=0)} == {"semantic"}
    found = choose_pairs(lambda: few, cut_half, seed=0)
    assert {pair.arm for pair in found} == {"semantic"} and len(found) == FEWEST_ITEMS - 1
    assert choose_pairs(list, cut_half, seed=0) == []


def test_the_draw_is_bounded_and_depends_on_seed_and_ids() -> None:
    samples = make_samples(MOST_PAIRS + 50, "semantic")
    found = choose_pairs(lambda: samples, cut_ngrams, seed=7)
    assert len(found) == MOST_PAIRS
    assert choose_pairs(lambda: samples[::-1], cut_ngrams, seed=7) == found
    assert choose_pairs(lambda: samples, cut_ngrams, seed=8) != found


def test_a_text_without_a_different_twin_is_not_asked_about() -> None:
    long = make_text("a")
    samples: list[tuple[str, Mapping[Arm, Mapping[str, str]]]] = [
        ("same", {"original": {"text": long}, "semantic": {"text": long}}),
        ("short", {"original": {"text": long}, "semantic": {"text": "too short"}}),
        ("alone", {"original": {"text": long}}),
    ]
    assert choose_pairs(lambda: samples, cut_ngrams, seed=0) == []


def test_questions_about_one_text_are_one_pair() -> None:
    samples: list[tuple[str, Mapping[Arm, Mapping[str, str]]]] = [
        (f"{name}-{arms['original']['text'][:9]}", {**arms, "semantic": {"text": make_text(name)}})
        for _, arms in make_samples(FEWEST_ITEMS)
        for name in "abc"
    ]
    for cut in (cut_ngrams, cut_half):
        assert len(choose_pairs(lambda: samples, cut, seed=0)) == FEWEST_ITEMS


# -- n-grams --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("a small red ferry on", True),
        ("A small, RED ferry on the lake", True),
        ("There was: a small red ferry on", True),
        ("a small red ferry", False),
        ("a small red boat on", False),
        ("a small red old ferry on", False),
        ("", False),
    ],
)
def test_an_ngram_is_said_exactly_or_not(answer: str, says: bool) -> None:
    assert says_words("a small red ferry on", answer) is says


def answer_ngrams(pairs: list[TextPair], knows: Callable[[Place], bool]) -> Answers:
    return {
        place: ("answered", text.rest if knows(place) else "something else")
        for place, text in list_places(pairs)
    }


def test_ngrams_by_hand() -> None:
    pairs = make_pairs(FEWEST_ITEMS, cut_ngrams)
    ids = [pair.id for pair in pairs]
    starts = len(pairs[0].texts["original"])
    assert starts == 3
    said = answer_ngrams(
        pairs,
        lambda place: (
            (place.side == "original" and place.id in ids[:8] and place.number < 2)
            or (place.side == "twin" and place.id in ids[7:9] and place.number < 2)
        ),
    )
    said[Place(ids[0], "original", 2)] = ("refused", "")
    found = judge_ngrams(pairs, said)
    assert (found.asked, found.items, found.unanswered) == (FEWEST_ITEMS, FEWEST_ITEMS, 1)
    assert (found.higher, found.lower, found.compared) == (7, 1, "semantic")
    assert found.p_value == pytest.approx(binomtest(7, 8, 0.5, alternative="greater").pvalue)
    assert found.original.estimate == pytest.approx((1 + 7 * 2 / 3) / FEWEST_ITEMS)
    assert found.twin.estimate == pytest.approx(2 * 2 / 3 / FEWEST_ITEMS)
    assert found.verdict == "no_recitation"
    assert found.reason == (
        "the original scores above its twin for 7 of 20 texts and below it for 1 (p = 0.035)"
    )


def test_who_remembers_a_fifth_of_the_originals_is_found_and_a_fluent_target_is_not() -> None:
    """20 targets of each kind."""
    pairs = make_pairs(100, cut_ngrams)

    def judge(seed: int, original: float, twin: float) -> ShareFinding:
        chance = random.Random(seed)
        shares = {"original": original, "twin": twin}
        known = {
            (pair.id, side): chance.random() < shares[side] for pair in pairs for side in shares
        }
        return judge_ngrams(
            pairs,
            answer_ngrams(
                pairs, lambda place: known[place.id, place.side] and chance.random() < 0.7
            ),
        )

    planted = [judge(seed, 0.2, 0.0).verdict for seed in range(20)]
    fluent = [judge(seed, 0.2, 0.2).verdict for seed in range(20)]
    clean = [judge(seed, 0.0, 0.0).verdict for seed in range(20)]
    assert planted.count("recites") >= 18
    assert fluent.count("recites") <= 1
    assert set(clean) == {"no_recitation"}


def test_few_texts_and_refusals_say_nothing() -> None:
    few = make_pairs(FEWEST_ITEMS - 1, cut_ngrams)
    found = judge_ngrams(few, answer_ngrams(few, lambda place: place.side == "original"))
    assert found.verdict == "too_few" and found.reason.startswith(
        "19 different texts are long enough"
    )
    none = judge_ngrams([], {})
    assert (none.verdict, none.compared, none.original.estimate) == ("too_few", None, None)
    pairs = make_pairs(30, cut_ngrams)
    declined: Answers = {
        place: ("answered", "I don't know this text.") for place, _ in list_places(pairs)
    }
    found = judge_ngrams(pairs, declined)
    assert (found.verdict, found.reason) == ("refusing", "it tried to continue 0 of 30 originals")


# -- peakedness -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "edits"),
    [
        ("a b c", "a b c", 0),
        ("a b c", "a x c", 1),
        ("a b c", "a c", 1),
        ("a b c", "b c d", 2),
        ("", "a b", 2),
        ("a b", "", 2),
        ("k i t t e n", "s i t t i n g", 3),
    ],
)
def test_edits_between_texts(first: str, second: str, edits: int) -> None:
    assert measure_edits(first.split(), second.split()) == edits


def test_peakedness_is_the_share_of_draws_within_a_twentieth_of_the_longest_answer() -> None:
    words = [f"w{n}" for n in range(20)]
    one_off, two_off = [*words[:-1], "x"], [*words[:-2], "x", "y"]
    assert measure_peakedness(words, [words, one_off, two_off, words]) == 0.75
    assert measure_peakedness(words[:19], [words[:19], [*words[:18], "x"]]) == 0.5
    longer = [f"v{n}" for n in range(40)]
    assert measure_peakedness(words, [two_off, longer]) == 0.5
    assert measure_peakedness(words * 5, [words * 6]) == 1.0


def answer_draws(pairs: list[TextPair], knows: Callable[[Place], bool], seed: int) -> Answers:
    """Answer as one that says known texts alike at each draw, and otherwise anything."""
    chance = random.Random(seed)
    return {
        place: (
            "answered",
            text.rest
            if knows(place._replace(draw=0)) and chance.random() < 0.6
            else " ".join(chance.choices(WORDS, k=12)),
        )
        for place, text in list_places(pairs, draws=DRAWS + 1)
    }


def test_who_says_originals_alike_is_peaked_and_one_who_says_all_alike_is_not() -> None:
    pairs = make_pairs(60, cut_half)
    known = {pair.id for pair in pairs[:20]}
    planted = judge_peakedness(
        pairs, answer_draws(pairs, lambda at: at.side == "original" and at.id in known, 1)
    )
    assert planted.verdict == "peaked" and planted.lower == 0
    assert planted.peaked == planted.higher <= 20 and planted.peaked_twin == 0
    assert planted.asked == planted.items == 60 and planted.unanswered == 0

    clean = judge_peakedness(pairs, answer_draws(pairs, lambda _: False, 2))
    assert (clean.verdict, clean.peaked, clean.p_value) == ("not_peaked", 0, 1.0)
    deaf: Answers = {
        place: ("answered", text.rest) for place, text in list_places(pairs, draws=DRAWS + 1)
    }
    same = judge_peakedness(pairs, deaf)
    assert (same.verdict, same.peaked, same.peaked_twin) == ("not_peaked", 60, 60)


def test_refused_originals_are_alike_and_no_sign_of_memory() -> None:
    pairs = make_pairs(60, cut_half)
    said = answer_draws(pairs, lambda _: False, 3)
    refused = {pair.id for pair in pairs[:25]}
    for place in said:
        if place.side == "original" and place.id in refused:
            said[place] = ("answered", "I don't know this text.")
    found = judge_peakedness(pairs, said)
    assert (found.verdict, found.items, found.peaked) == ("not_peaked", 35, 0)
    every = {place: ("answered", "I don't know this text.") for place in said}
    assert judge_peakedness(pairs, every).verdict == "refusing"  # type: ignore[arg-type]


def test_a_text_with_few_draws_has_no_peakedness() -> None:
    pairs = make_pairs(1, cut_half)
    said = answer_draws(pairs, lambda _: False, 4)
    for draw in range(1, DRAWS - FEWEST_DRAWS + 1):
        said[Place(pairs[0].id, "twin", 0, draw)] = ("refused", "")
    assert judge_peakedness(pairs, said).items == 1
    said[Place(pairs[0].id, "twin", 0, DRAWS)] = ("answered", " ")
    found = judge_peakedness(pairs, said)
    assert (found.items, found.unanswered) == (0, DRAWS - FEWEST_DRAWS + 1)
