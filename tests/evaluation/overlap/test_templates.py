"""Items of one template are told from copies: by what their numbers and names are."""

import random

import pytest

from coreeval.evaluation.overlap.search import HitKind, find_overlap
from coreeval.evaluation.overlap.templates import SlotAgreement, TextSlots
from tests.evaluation.overlap.kit import texts, unrelated

TRAIN = "{name} took the train from Lyon at {a} km per hour. How far is it after {b} hours?"
BONDS = "In {year}, {name} sold {a} bonds at {b} dollars each. What did {name} earn in total?"
NAMES = ["Amara", "Bruno", "Chidi", "Dagny", "Elena", "Farid", "Greta", "Hiroshi", "Ines", "Jonas"]


def questions(number: int, seed: int) -> list[str]:
    """Return questions of two templates with names and numbers of their own."""
    rng = random.Random(seed)
    return [
        rng.choice((TRAIN, BONDS)).format(
            name=rng.choice(NAMES),
            year=rng.randint(1950, 2020),
            a=rng.randint(20, 999),
            b=rng.randint(20, 999),
        )
        for _ in range(number)
    ]


def test_questions_of_a_template_are_not_the_same_item() -> None:
    a, b = texts("a", *questions(40, 1)), texts("b", *questions(40, 2))
    found = find_overlap(a, b)
    assert {hit.kind for hit in found.hits} == {"template"}
    assert found.items() == (0, 0) and found.items(("template",)) == (40, 40)
    assert len(found.hits) == 2  # one for each template, not one for each pair
    one = find_overlap(a)
    assert one.items() == (0,) and one.items(("template",)) == (40,)


def test_a_copy_is_found_among_questions_of_its_template() -> None:
    asked = questions(40, 1)
    copy = (
        asked[7].replace("How far is it", "How far did it go").replace("What did", "How much did")
    )
    found = find_overlap(texts("a", *asked), texts("b", *questions(40, 2), copy))
    same = [hit for hit in found.hits if hit.kind != "template"]
    assert [(hit.kind, hit.a[0].id, hit.b[0].id) for hit in same] == [("near", "a8", "b41")]


@pytest.mark.parametrize("number", [2, 3])
def test_two_items_are_enough_for_a_template(number: int) -> None:
    """Two questions that differ in their numbers are of a template even if nothing else is."""
    asked = [TRAIN.format(name="Amara", a=10 * at, b=3 + at) for at in range(1, 1 + number)]
    (hit,) = find_overlap(texts("a", *asked)).hits
    assert hit.kind == "template" and len(hit.a) + len(hit.b) == number


def test_an_instruction_before_some_items_makes_no_copies() -> None:
    instruction = "Read the passage with care, then answer in one sentence without guessing: "
    a, b = list(unrelated(60)), list(unrelated(60, seed=2))
    for side in (a, b):
        side[:8] = [instruction * 3 + text for text in side[:8]]
    assert find_overlap(texts("a", *a), texts("b", *b)).items() == (0, 0)


def test_an_item_that_one_side_has_often_is_no_boilerplate() -> None:
    item = unrelated(1, seed=9)[0]
    copies = [f"{item} {text[:12]}" for text in unrelated(20, seed=3)]
    found = find_overlap(
        texts("a", item, *unrelated(20)), texts("b", *copies[:9], *unrelated(90, seed=4))
    )
    assert found.items() == (1, 9)
    assert {hit.kind for hit in found.hits} == {"near"}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Ada paid 5 euros in 1990", "Ada paid 7 euros in 1995", "differ"),
        ("Ada met Bob in Rome", "Cem met Dia in Rome", "differ"),
        ("sales of 1,200 in 2019 and 90", "sales of 1200 in 2019 and 90.", "agree"),
        ("Ada paid twelve euros", "ADA PAID 12 EUROS", "agree"),
        ("a b c", "a b d", "silent"),
        ("2021 there were 130, 2000 and 210", "2019 there were 130, 2000 and 210", "agree"),
        ("of 0.19\uff0c2017年 and 0.24", "of 0.19 2006年 and 0.24, 0.25", "differ"),
        ("Ada paid 5 euros", "Ada paid euros", "silent"),
        ("U.S. Attorney Jimenez said", "U.S. Attorney Jimenes said", "silent"),
    ],
)
def test_numbers_and_names_tell_items_apart(one: str, other: str, expected: SlotAgreement) -> None:
    assert TextSlots([one, other]).compare(one, other) == expected


def test_a_word_that_is_written_small_elsewhere_is_no_name() -> None:
    slots = TextSlots(["Rates rose in Rome", "the rates fell", "Oslo saw none"])
    assert slots.mask("Rates rose in Rome, 1.5 points") == "Rates rose in X, 0 points"


def test_every_kind_but_a_template_is_the_same_item() -> None:
    kinds: set[HitKind] = {"exact", "normalised", "near", "contained", "paraphrase"}
    found = find_overlap(texts("a", *questions(9, 1)), texts("b", *questions(9, 2)))
    assert found.items() == found.items(tuple(kinds)) == (0, 0)
