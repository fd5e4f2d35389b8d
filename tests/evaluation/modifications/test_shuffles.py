"""Options and labels in another order, in which nothing stays in its place."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.evaluation.benchmarks.items import load_items
from coreeval.evaluation.benchmarks.options import bracketed_options, option_spans
from coreeval.evaluation.modifications import (
    Modified,
    Unmodified,
    derangement,
    shuffle_label_order,
    shuffle_options,
)
from coreeval.schema import Item
from tests.evaluation.recorded import CAP, beside

OPTIONS = {"A": "bond", "B": "share", "C": "future", "D": "swap"}


def item(text: str, output: str = "C", options: dict[str, str] | None = None) -> Item:
    given = OPTIONS if options is None else options
    return Item(id="x", split="test", input=text, output=output, options=given)


@given(st.lists(st.sampled_from("abcd"), max_size=7), st.integers(0, 50))
def test_no_place_has_its_text_again(texts: list[str], seed: int) -> None:
    order = derangement(texts, seed=seed, key="x")
    most = max(Counter(texts).values(), default=1)
    if order is None:
        assert 2 * most > len(texts)
    else:
        assert sorted(order) == [*range(len(texts))]
        assert all(texts[place] != texts[came] for place, came in enumerate(order))


def test_a_rare_order_is_found_too() -> None:
    texts = ["same"] * 13 + [str(n) for n in range(13)]
    order = derangement(texts, seed=7, key="x")
    assert order is not None
    assert sorted(order) == [*range(26)]
    assert all(texts[place] != texts[came] for place, came in enumerate(order))


def test_all_orders_are_drawn_evenly() -> None:
    drawn = Counter(tuple(derangement("abcd", seed=7, key=str(n)) or ()) for n in range(900))
    assert len(drawn) == 9  # the derangements of four
    assert min(drawn.values()) > 60 and max(drawn.values()) < 145


@pytest.mark.parametrize(
    "text",
    [
        "Which is a swap? ['A':bond, 'B': share, 'C':future, 'D':swap]\n Answer:",
        "Which is a swap?\nA. bond\nB. share\nC. future\nD. swap\nAnswer:",
        "Is (A) bond (B) share (C) future (D) swap right? A bond, a share.",
    ],
)
def test_the_answers_text_stays_and_its_letter_moves(text: str) -> None:
    found = shuffle_options(item(text), seed=7)
    assert isinstance(found, Modified)
    twin = found.item
    assert twin.options[twin.output] == "future"
    assert all(twin.options[letter] != OPTIONS[letter] for letter in OPTIONS)
    assert found.changes["C"] == twin.output
    spans = option_spans(twin.input, twin.options)
    assert spans is not None
    assert [twin.input[span.start : span.end] for span in spans.values()] == [
        *twin.options.values()
    ]
    assert sorted(twin.input) == sorted(text)


def test_an_empty_answer_stays_empty() -> None:
    found = shuffle_options(item("A. bond B. share C. future D. swap", ""), seed=7)
    assert isinstance(found, Modified)
    assert found.item.output == ""


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (item("What?", "x", {}), "it has no options"),
        (item("What?"), "the input does not show the options"),
        (item("A. a B. b", "E", {"A": "a", "B": "b"}), "none of the option letters"),
        (item("A. a B. a", "A", {"A": "a", "B": "a"}), "options are equal"),
        (item("A. a B. all of the others", "A", {"A": "a", "B": "all of the others"}), "by their"),
        (item("A. 债券 B. 以上都不对", "A", {"A": "债券", "B": "以上都不对"}), "by their place"),
        (item("A. a B. A and C", "A", {"A": "a", "B": "A and C"}), "by their place"),
    ],
)  # fmt: skip
def test_what_cannot_be_shuffled_says_why(one: Item, reason: str) -> None:
    found = shuffle_options(one, seed=7)
    assert isinstance(found, Unmodified)
    assert reason in found.reason


def test_an_amount_or_more_is_no_word_about_other_options() -> None:
    options = {"A": "5万元以上", "B": "50万元以下"}
    found = shuffle_options(item("A. 5万元以上 B. 50万元以下", "A", options), seed=7)
    assert isinstance(found, Modified)


def test_option_a_10_is_not_found_in_100() -> None:
    assert option_spans("A. 100 B. 20", {"A": "10", "B": "20"}) is None
    spans = option_spans("A. 10 is more than B. 20?\nA. 10\nB. 20", {"A": "10", "B": "20"})
    assert spans is not None
    assert spans["A"].start == 29


@beside
@pytest.mark.parametrize(("split", "shuffled", "size"), [("dev", 169, 170), ("val", 1129, 1151)])
def test_fineval(split: str, shuffled: int, size: int) -> None:
    items = load_items("fineval", CAP / "fineval", split).items
    found = {one.id: shuffle_options(one, seed=7) for one in items}
    twins = [one.item for one in found.values() if isinstance(one, Modified)]
    assert (len(items), len(twins)) == (size, shuffled)
    for one in items:
        twin = found[one.id]
        if isinstance(twin, Modified):
            assert bracketed_options(twin.item.input) == twin.item.options
            assert twin.item.options[twin.item.output] == one.options[one.output]
            assert not {*one.options.items()} & {*twin.item.options.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Say Rise or Fall.", "Say Fall or Rise."),
        ("Rise?\n1. fall\n2. rise\nOn the Fall", "Rise?\n1. rise\n2. fall\nOn the Fall"),
        ('One of "rise", "fall".', 'One of "fall", "rise".'),
    ],
)  # fmt: skip
def test_two_labels_change_places(text: str, expected: str) -> None:
    found = shuffle_label_order(item(text, "Rise", {}), ["Rise", "Fall"], seed=7)
    assert isinstance(found, Modified)
    assert (found.item.input, found.item.output) == (expected, "Rise")


def test_every_label_moves() -> None:
    labels = ["anger", "joy", "optimism", "sadness"]
    text = "Choose anger, joy, optimism or sadness.\nText: joy is all"
    found = shuffle_label_order(item(text, "joy", {}), labels, seed=7)
    assert isinstance(found, Modified)
    assert all(old != new for old, new in found.changes.items())
    assert {*found.changes} == {*found.changes.values()} == {*labels}
    assert found.item.input.endswith("\nText: joy is all")


@pytest.mark.parametrize("text", ["Say Rise.", "The rise of man and the fall", "falls or rises"])
def test_a_text_that_lists_no_labels(text: str) -> None:
    found = shuffle_label_order(item(text, "Rise", {}), ["Rise", "Fall"], seed=7)
    assert isinstance(found, Unmodified)
    assert found.reason == "the input does not list Rise, Fall"


def test_label_names_within_others() -> None:
    labels = ["irony", "not irony"]
    found = shuffle_label_order(item("irony / not irony", "irony", {}), labels, seed=7)
    assert isinstance(found, Modified)
    assert found.item.input == "not irony / irony"
