import pytest

from coreeval.agents.checks import check_rewrite, clean_extraction
from coreeval.schema import Entity, Extraction, Rewrite, SemanticStatus

from ..builders import PAIRS, TWEETS, sample

ORIGINAL = "@user I was so sad when Ford cut 900 jobs on Monday, the whole town was in tears"
GOOD = "@user Monday broke my heart: 900 jobs gone at Ford and a town full of people crying"
FORD = Entity(
    span="Ford",
    field="text",
    kind="named",
    type="organisation",
    query_name="Ford Motor Company",
)


def check(new: str, *, reworded: bool = True) -> tuple[SemanticStatus, list[str]]:
    one = sample(ORIGINAL)
    found = clean_extraction(TWEETS, one, Extraction(entities=(FORD,)))
    rewrite = Rewrite(fields={"text": new}, reworded=reworded)
    status, defects = check_rewrite(TWEETS, one, found, rewrite)
    assert all((d.kind, d.route) == ("form", "compose") for d in defects)
    return status, [defect.check for defect in defects]


def test_other_words_for_the_same_facts() -> None:
    assert check(GOOD) == ("reworded", [])


def test_a_name_may_be_written_out() -> None:
    assert check(GOOD.replace("Ford", "Ford Motor Company")) == ("reworded", [])


@pytest.mark.parametrize(
    ("span", "new", "named"),
    [
        ("South Korean troops", "troops from South Korea stay out", True),
        ("South Korean troops", "troops from Korea stay out", False),
        ("President George Bush administration", "Bush, George, President: his government", True),
        ("court in Angers", "judges at Angers", True),
        ("April 2000 census", "counted in April 2000", True),
        ("iced tea", "a cold drink", False),
    ],
)
def test_a_name_is_kept_in_any_grammar(span: str, new: str, named: bool) -> None:
    entity = FORD.model_copy(update={"span": span, "query_name": span})
    rewrite = Rewrite(fields={"text": new}, reworded=True)
    extraction = Extraction(entities=(entity,))
    _, defects = check_rewrite(TWEETS, sample(f"It was the {span}"), extraction, rewrite)
    assert ("names" not in [defect.check for defect in defects]) is named


@pytest.mark.parametrize("new", [ORIGINAL, ORIGINAL.replace(",", " ;").upper()])
def test_the_same_text_is_unchanged_without_a_defect(new: str) -> None:
    assert check(new) == ("unchanged", [])


def test_a_rewriter_may_decline() -> None:
    assert check(GOOD, reworded=False) == ("unchanged", [])


@pytest.mark.parametrize(
    ("new", "found"),
    [
        (ORIGINAL.replace("tears", "pieces"), ["copied_original"]),
        (GOOD.replace("@user ", ""), ["lock", "mentions"]),
        (GOOD.replace("900", "many"), ["numbers"]),
        (GOOD.replace("900", "900 of 950"), ["numbers"]),
        (GOOD.replace("Monday", "It"), ["dates"]),
        (GOOD.replace("Ford", "the plant"), ["names"]),
        (GOOD.replace("Ford", "Ford, not Exxon,"), ["names"]),
        (" ", ["fields"]),
    ],
)
def test_what_is_lost_or_gained_is_a_defect(new: str, found: list[str]) -> None:
    assert check(new) == ("unchanged", found)


def test_one_changed_sentence_of_a_pair_is_not_enough_if_the_other_is_copied() -> None:
    pair = sample(
        "The company cut its staff in the north last year .",
        "Last year the company let people go in the north .",
    )
    fields = {
        "sentence1": "Northern staff lost their posts at that company last year .",
        "sentence2": pair.fields["sentence2"],
    }
    rewrite = Rewrite(fields=fields, reworded=True)
    status, defects = check_rewrite(PAIRS, pair, Extraction(), rewrite)
    assert status == "unchanged"
    assert [(d.check, "sentence2" in d.message) for d in defects] == [("copied_original", True)]
