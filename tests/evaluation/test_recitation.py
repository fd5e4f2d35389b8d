"""Guided completion: halves, shares, the exact test, and targets with a known memory."""

import random
from collections.abc import Callable, Mapping

import pytest
from scipy.stats import binomtest  # type: ignore[import-untyped]

from coreeval.evaluation.recitation import (
    FEWEST_ITEMS,
    MOST_ITEMS,
    MOST_WORDS,
    RECITED,
    HalvedText,
    RecitationItem,
    choose_items,
    exact_p,
    halve_text,
    judge_recitation,
    measure_recited,
)
from coreeval.schema import AnswerKind, Arm

WORDS = [f"word{n}" for n in range(40)]


def make_text(seed: str, words: int = 16) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def make_items(number: int, *arms: Arm) -> list[RecitationItem]:
    every: tuple[Arm, ...] = ("original", *arms)
    samples = [
        (f"s{n:03}", {arm: {"text": make_text(f"{n} {arm}")} for arm in every})
        for n in range(number)
    ]
    return choose_items(samples, seed=7)


Answers = dict[tuple[str, Arm], tuple[AnswerKind, str]]


def answer_all(items: list[RecitationItem], recited: Mapping[Arm, float], seed: int) -> Answers:
    """Answer as one that recites a share of each arm with a slip in ten words, and else guesses."""
    chance, said = random.Random(seed), Answers()
    for item in items:
        for arm, text in item.texts.items():
            known = chance.random() < recited.get(arm, 0.0)
            words = text.rest.split() if known else chance.choices(WORDS, k=len(text.rest.split()))
            slips = [chance.choice(WORDS) if chance.random() < 0.1 else word for word in words]
            said[item.id, arm] = ("answered", " ".join(slips))
    return said


@pytest.mark.parametrize(
    "before",
    [
        "Sure, here is the rest of the text:\n",
        "Here it is: {beginning} ",
        "Of course! The text goes on as follows:\n\n",
        "I know this one. It goes on: {beginning}\n",
        "```text\n{beginning} ",
        'The complete text reads "{beginning} ',
        "Here is what follows, as I remember it, and I remember it well - ",
        "well " * 100 + ": ",
        "The {beginning} ",
        "Sure, the text\n{beginning} ",
        "Rest? {beginning} ",
        "I think of word1 word2 word3 word4 and " * 60,
        "Was it {rest_begins}? " * 60,
    ],
)
def test_words_before_the_text_hide_no_recitation(before: str) -> None:
    text = halve_text(make_text("introduced", 18))
    assert text is not None
    assert measure_recited(text, _fill(before, text) + text.rest) == 1


def _fill(before: str, text: HalvedText) -> str:
    return before.format(beginning=text.beginning, rest_begins=" ".join(text.rest.split()[:3]))


def test_a_text_whose_first_words_are_wrong_is_found_behind_other_words() -> None:
    text = halve_text(make_text("first words", 80))
    assert text is not None
    answer = "well " * 100 + "oh " * 6 + " ".join(text.rest.split()[6:])
    assert measure_recited(text, answer) == pytest.approx(34 / 40)


def test_who_stops_early_in_a_long_text_recites_it() -> None:
    text = halve_text(make_text("long", 2000))
    assert text is not None
    assert measure_recited(text, " ".join(text.rest.split()[:MOST_WORDS])) == 1
    assert measure_recited(text, " ".join(text.rest.split()[: MOST_WORDS // 2])) < RECITED


INVISIBLE = "\u2063\u200e\u202a\u034f\ufe0f\u180e\u2061\U000e0041\u115f\u3164\x1f"


def _put_into_words(sign: str) -> Callable[[list[str]], str]:
    return lambda words: " ".join(word[:1] + sign + word[1:] for word in words)


@pytest.mark.parametrize(
    "marked",
    [
        lambda words: "<p>" + "&nbsp;".join(words) + "</p>",
        lambda words: "\n".join(f"{n}. {word}" for n, word in enumerate(words, 1)),
        lambda words: "\n".join(f"({n}) {word}" for n, word in enumerate(words, 1)),
        lambda words: "\n".join(f"| {n} | {word} |" for n, word in enumerate(words, 1)),
        lambda words: "\n".join(f"**{n}:** {word}" for n, word in enumerate(words, 1)),
        lambda words: " ".join("\u200b".join(word) for word in words),
        lambda words: " ".join(word[:2] + "\u00ad" + word[2:] for word in words),
        *(_put_into_words(sign) for sign in INVISIBLE),
        lambda words: " ".join(words).translate({n: n + 0xFEE0 for n in range(33, 127)}),
        lambda words: "\r\n".join(words),
        lambda words: "\u2028".join(words),
    ],
)
def test_marks_hide_no_recitation(marked: Callable[[list[str]], str]) -> None:
    text = halve_text(make_text("marked", 24))
    assert text is not None
    assert measure_recited(text, marked(text.rest.split())) == 1


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"<user> word{n} <url>" for n in range(8)),
        "<br /><br />".join(" ".join(WORDS[n : n + 4]) for n in range(0, 24, 4)),
        "one two three four five six " + " ".join(f'<a href="a/b/{n}">x</a>' for n in range(9)),
        "Tom &amp; Jerry saw a ship of &lt;the old king&gt; and &lt;all of his men&gt; at sea",
        "\n".join(f"{n}. {word}" for n, word in enumerate(WORDS[:20], 1)),
        "for every x and y of the set we have x <b and so the sum of c and d f> g in the end",
        "soft\u00adly " * 8 + "zero\u200bwidth " * 8,
    ],
)
def test_marks_of_the_text_itself_hide_no_recitation(text: str) -> None:
    halves = halve_text(text)
    assert halves is not None
    assert measure_recited(halves, halves.rest) == 1
    assert measure_recited(halves, f"Sure:\n{text}") == 1


def test_a_text_of_tags_is_not_recited_by_its_few_other_words() -> None:
    halves = halve_text("one two three four five six " + '<img src="a/b/c"> ' * 4 + "end")
    assert halves is not None
    assert measure_recited(halves, "the end") < 0.2


def test_a_half_of_signs_is_too_short() -> None:
    assert halve_text("one two three four five six " + "&amp; " * 6) is None


def test_a_list_with_tags_may_be_recited_without_tags() -> None:
    halves = halve_text("\n".join(f"{n}. <b>{word}</b>" for n, word in enumerate(WORDS[:20], 1)))
    assert halves is not None
    answer = " ".join(f"{n}. {word}" for n, word in enumerate(WORDS[10:20], 11))
    assert measure_recited(halves, answer) == 1


@pytest.mark.parametrize(
    "said",
    [
        "",
        "...",
        "\U0001f642",
        "I don't know this text.",
        "I can't do that.",
        "Je ne connais pas ce texte.",
    ],
)
def test_who_says_nothing_or_declines_is_not_cleared(said: str) -> None:
    items = make_items(FEWEST_ITEMS, "semantic")
    answers: Answers = {(item.id, arm): ("answered", said) for item in items for arm in item.texts}
    assert judge_recitation(items, answers).verdict == "refusing"


def test_who_repeats_the_beginning_is_not_cleared() -> None:
    items = make_items(FEWEST_ITEMS, "semantic")
    answers: Answers = {
        (item.id, arm): ("answered", text.beginning)
        for item in items
        for arm, text in item.texts.items()
    }
    assert judge_recitation(items, answers).verdict == "refusing"


@pytest.mark.parametrize(
    "declined",
    [("answered", "I don't know this text."), ("answered", ""), ("refused", ""), ("truncated", "")],
)
def test_who_declines_twins_alone_recites(declined: tuple[AnswerKind, str]) -> None:
    items = make_items(FEWEST_ITEMS, "semantic")
    answers: Answers = {
        (item.id, arm): ("answered", text.rest) if arm == "original" else declined
        for item in items
        for arm, text in item.texts.items()
    }
    assert judge_recitation(items, answers).verdict == "recites"


def test_who_recites_some_and_declines_the_rest_recites() -> None:
    items = make_items(50, "semantic")
    answers: Answers = {
        (item.id, arm): ("answered", text.rest if arm == "original" and n < 20 else "Sorry, no.")
        for n, item in enumerate(items)
        for arm, text in item.texts.items()
    }
    assert judge_recitation(items, answers).verdict == "recites"


def test_refusals_of_both_alike_show_nothing() -> None:
    items = make_items(100, "semantic")
    answers = answer_all(items, {"original": 0.3, "semantic": 0.3}, 3)
    chance = random.Random(5)
    for key in answers:
        if chance.random() < 0.3:
            answers[key] = ("refused", "")
    assert judge_recitation(items, answers).verdict == "no_recitation"


def test_few_tried_originals_clear_nobody() -> None:
    items = make_items(30, "semantic")
    answers = answer_all(items, {}, 0)
    for item in items[:14]:
        answers[item.id, "original"] = ("truncated", "")
    found = judge_recitation(items, answers)
    assert (found.verdict, found.unanswered) == ("too_few", 14)
    assert "16 different texts have at least 12 words" in found.reason


def test_a_text_that_its_beginning_recites_is_not_asked_about() -> None:
    half = make_text("half", 10)
    assert halve_text(f"{half} {half}") is None
    assert halve_text(f"{half} {make_text('other', 10)}") is not None


def test_a_text_is_halved_between_words() -> None:
    text = "One two  three, four five six #seven eight nine ten eleven twelve. "
    assert halve_text(text) == HalvedText(
        "One two  three, four five six", "#seven eight nine ten eleven twelve."
    )
    assert halve_text(text.replace("twelve.", "")) is None
    assert halve_text("one two three four five six . ! ? ; : ,") is None
    assert halve_text("") is None


def test_the_longest_field_of_the_original_is_asked_for_in_every_arm() -> None:
    long, other = make_text("a"), make_text("b")
    arms: dict[Arm, dict[str, str]] = {
        "original": {"premise": long, "hypothesis": "Short."},
        "semantic": {"premise": long, "hypothesis": "Brief."},
        "updated": {"premise": other, "hypothesis": f"{long} {long}"},
    }
    (item,) = choose_items([("x", arms), ("y", {"original": arms["original"]})], seed=0)
    assert item.texts == {"original": halve_text(long), "updated": halve_text(other)}


def test_the_draw_of_items_depends_on_seed_and_ids_alone() -> None:
    many = make_items(MOST_ITEMS + 50, "semantic")
    assert len(many) == MOST_ITEMS
    samples = [
        (item.id, {arm: {"text": make_text(f"{int(item.id[1:])} {arm}")} for arm in item.texts})
        for item in reversed(many)
    ]
    assert choose_items(samples, seed=7) == many


def test_questions_about_one_text_are_one_item() -> None:
    def ask(passages: int) -> dict[str, dict[Arm, dict[str, str]]]:
        return {
            f"{n}-{number}": {
                "original": {"text": make_text(f"{n}"), "question": f"What is it? {number}"},
                "semantic": {"text": make_text(f"{n} {number}"), "question": "What?"},
            }
            for n in range(passages)
            for number in range(5)
        }

    asked = ask(FEWEST_ITEMS)
    items = choose_items(asked.items(), seed=7)
    assert sorted(item.id.partition("-")[0] for item in items) == sorted(
        f"{n}" for n in range(FEWEST_ITEMS)
    )
    two = judge_recitation(items, {
        (item.id, arm): ("answered", text.rest if (item.id[:2], arm) in known else f"No {item.id}")
        for known in [{("0-", "original"), ("1-", "original")}]
        for item in items
        for arm, text in item.texts.items()
    })  # fmt: skip
    assert (two.verdict, two.twins["semantic"].original) == ("no_recitation", 2)

    many = choose_items(ask(2 * MOST_ITEMS + 50).items(), seed=7)
    assert len({item.id.partition("-")[0] for item in many}) == len(many) == MOST_ITEMS
    assert choose_items(reversed(ask(2 * MOST_ITEMS + 50).items()), seed=7) == many


TEXT = HalvedText("Once upon a time there was", "a small red ferry on the lake of Lenn")


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("A small, red ferry on the lake of Lenn.", 1.0),
        ("Once upon a time there was a small red ferry on the lake of Lenn", 1.0),
        ("a small blue ferry on the lake of Lenn", 8 / 9),
        ("Lenn of lake the on ferry red small a", 1 / 9),
        ("nothing of this", 1 / 9),
        ("", 0.0),
        ("well " * 100 + "a small red ferry on the lake of Lenn", 1.0),
    ],
)
def test_the_share_is_of_missing_words_in_their_order(answer: str, share: float) -> None:
    assert measure_recited(TEXT, answer) == pytest.approx(share)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (7, 0), (5, 3), (2, 9), (40, 1)])
def test_the_exact_test_is_that_of_scipy(first: int, second: int) -> None:
    n = first + second
    expected = binomtest(first, n, 0.5, alternative="greater").pvalue if n else 1.0
    assert exact_p(first, second) == pytest.approx(expected)


def test_counts_by_hand() -> None:
    items = make_items(FEWEST_ITEMS, "semantic", "updated")
    said = answer_all(items, {}, 1)
    for item in items[:8]:
        said[item.id, "original"] = ("truncated", item.texts["original"].rest)
    for item in items[7:9]:
        said[item.id, "semantic"] = ("answered", item.texts["semantic"].rest)
    said[items[-1].id, "updated"] = ("refused", "")
    found = judge_recitation(items, said)
    twin = found.twins["semantic"]
    assert (twin.original, twin.twin, twin.only_original, twin.only_twin) == (8, 2, 7, 1)
    assert twin.p_value == pytest.approx(9 / 256)
    assert found.twins["updated"].items == FEWEST_ITEMS
    assert (found.asked, found.unanswered, found.verdict) == (FEWEST_ITEMS, 1, "no_recitation")
    overlap = found.twins["updated"].overlap_twin
    assert overlap.ci_low is not None and overlap.ci_high is not None
    assert overlap.ci_low < overlap.ci_high
    assert found.reason == "it recited 8 of 20 originals and 2 of their reworded twins (p = 0.035)"
    difference = found.twins["semantic"].overlap_difference
    assert difference.ci_low is not None and difference.ci_high is not None
    assert difference.ci_low < (difference.estimate or 0) < difference.ci_high


def test_planted_targets_are_found_and_clean_ones_are_not() -> None:
    """20 of each: a quarter recited, nothing, and a tenth of originals and twins alike."""
    items = make_items(100, "semantic", "updated")
    cases: dict[str, dict[Arm, float]] = {"planted": {"original": 0.25}, "clean": {},
             "fluent": {"original": 0.1, "semantic": 0.1, "updated": 0.1}}  # fmt: skip
    found = {
        name: [judge_recitation(items, answer_all(items, recited, seed)) for seed in range(20)]
        for name, recited in cases.items()
    }
    assert sum(each.verdict == "recites" for each in found["planted"]) >= 18
    for name in ("clean", "fluent"):
        assert {each.verdict for each in found[name]} == {"no_recitation"}


def test_few_texts_and_refusals_say_nothing() -> None:
    few = make_items(FEWEST_ITEMS - 1, "semantic")
    found = judge_recitation(few, answer_all(few, {"original": 1.0}, 0))
    assert (
        found.verdict == "too_few" and "19 different texts have at least 12 words" in found.reason
    )
    assert judge_recitation([], {}).verdict == "too_few"
    items = make_items(30, "semantic")
    mute = {key: ("refused", "") for key in answer_all(items, {}, 0)}
    found = judge_recitation(items, mute)  # type: ignore[arg-type]
    assert (found.verdict, found.reason) == ("refusing", "it tried to continue 0 of 30 originals")
    assert found.twins["semantic"].original == found.twins["semantic"].twin == 0


def test_a_twin_that_ends_as_the_original_does_is_none() -> None:
    """Whoever recites the original would recite such a twin too, and be cleared."""
    text = make_text("original", 24)
    last = text.split()[-1]
    near, far = f"Indeed {text} {last}", make_text("other words", 24)
    arms: dict[Arm, dict[str, str]] = {
        "original": {"text": text},
        "semantic": {"text": near},
        "updated": {"text": far},
    }
    (item,) = choose_items([("s", arms)], seed=7)
    assert set(item.texts) == {"original", "updated"}
    del arms["updated"]
    assert choose_items([("s", arms)], seed=7) == []


def test_without_reworded_texts_the_updated_ones_are_the_twins() -> None:
    items = make_items(40, "updated")
    found = judge_recitation(items, answer_all(items, {"original": 0.5}, 0))
    assert found.verdict == "recites" and "their updated twins" in found.reason
