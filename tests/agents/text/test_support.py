"""Names, and what the evidence supports."""

import pytest

from coreeval.agents.text.support import (
    Support,
    evidence_text,
    expand_words,
    find_calendar_words,
    find_names,
    find_unknown_names,
    is_quoted_in,
    is_same_name,
)
from tests.agents.builders import news


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The company Wal-Mart said Target fell .", ["Wal-Mart", "Target"]),
        ("Mr. Smith and Dr. Lee went. They left", ["Smith", "Lee"]),
        ("I know that I'm OK, @User #Tag", []),
        ("Great \U0001f602 Day at work", []),
        ("We met in June on Monday", []),
        ("U.S. sales in the U.S. fell", ["USA"]),
        ("5Stars and http://bit.ly/1G9uil5", []),
        ("RT @user Thinking of Anna", ["Anna"]),
        ("So true, RT @user @other Thinking of it", []),
        ("I thank @user Smith", ["Smith"]),
        ("the nation 's highest court", []),
    ],
)
def test_names_are_capitals_inside_a_sentence(text: str, found: list[str]) -> None:
    assert find_names(text) == found


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("venezuela", "venezuelan", True),
        ("republican", "republicans", True),
        ("iraq", "iraqi", True),
        ("paris", "parish", False),
        ("tim", "tims", False),
        ("johnson", "johns", False),
    ],
)
def test_same_name(one: str, other: str, same: bool) -> None:
    assert is_same_name(one, other) is same


@pytest.mark.parametrize(
    ("text", "like", "known", "unknown"),
    [
        ("we saw Apple rise", "we saw Ford", "Apple rises", []),
        ("we saw Apple rise", "we saw Ford", "pears", ["Apple"]),
        ("we are SO HAPPY now", "I am SO HAPPY", "", []),
        ("we sold NASA now", "I am with IBM", "", ["NASA"]),
        ("go, Bernie Sanders", "go", "#BernieSanders", []),
        ("the US fell", "x", "United States falls", []),
        ("the USA fell", "x", "tell us", ["USA"]),
        ("a French firm", "x", "France", []),
        ("that Depression-era law", "x", "the Depression", []),
        ("people from Canada and the Ukraine", "x", "Canadians met Ukrainians", []),
        ("Europe and its Germans", "x", "Europeans in Germany", []),
        ("they bought big SUVs", "x", "an SUV", []),
        ("they bought an SUV", "x", "many SUVs", []),
        ("they met CEOs of an AI firm", "x", "its chief", ["CEOs", "AI"]),
        ("in the Galerie d 'Apollon", "x", "the Galerie d'Apollon", []),
        ("in the Galerie d'Apollon of O'Neill", "x", "the Galerie d 'Apollon of O 'Neill", []),
        ("in the Galerie of O'Neill", "x", "the Galerie of O 'Hara", ["O'Neill"]),
        ("then Don left", "x", "They don't know Galeries", ["Don"]),
        ("When You Realize The Shop Is Closed", "When You Find A Big Fish", "", []),
    ],
)
def test_unknown_names(text: str, like: str, known: str, unknown: list[str]) -> None:
    assert find_unknown_names(text, like=like, known=expand_words(known)) == unknown


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on Tuesday , May 7", {"tuesday", "may"}),
        ("May or may not march", set()),
        ("protesters march; the March on Rome", set()),
        ("late March, Sept . 8, Oct 3", {"march", "september", "october"}),
        ("Mondays are sad", {"monday"}),
        ("an august body, the sun sat", set()),
        ("DEC. 5 is near", {"december"}),
        ("decent 5", set()),
    ],
)
def test_calendar(text: str, days: set[str]) -> None:
    assert find_calendar_words(text) == days


@pytest.mark.parametrize(
    ("quote", "title"),
    [
        ("limit of 1.5 \u00b0C", "Nations miss limit of 1. 5 \u00b0C"),
        ("cut \u2018deep\u2019", "They cut 'deep' again"),
        ("gold tops $4, 500", "Gold tops $4, 500 an ounce"),
    ],
)
def test_a_quotation_survives_odd_spelling(quote: str, title: str) -> None:
    assert is_quoted_in(quote, evidence_text(news(title)))


@pytest.mark.parametrize("quote", ["art", "of the", "gold tops $4,600", ""])
def test_what_is_no_quotation(quote: str) -> None:
    assert not is_quoted_in(quote, "Gold tops $4,500 in the wake of the party")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("gold rises month to date", "Gold rises MTD"),
        ("CEO quits", "Chief executive officer quits"),
        ("prices fell by two percent", "Prices fall 2%"),
        ("British firms", "Firms in Britain"),
        ("the United States grows", "US growing"),
        ("the government plans", "Govt planning"),
        ("a French \u20ac5 tax", "France: a tax of five euros"),
        ("The reopening comes days after a heist", "Reopened days after a heist"),
        ("waiting for #GTAVI", "Waiting for GTA VI"),
        ("the ruling of a court", "Court rules on it"),
        ("the ruling of a court", "A court ruled on it"),
    ],
)
def test_inflection_signs_and_short_forms_are_no_new_words(text: str, title: str) -> None:
    support = Support.from_evidence([news(title)])
    assert support.missing_words(text) == []
    assert support.missing_numbers(text) == []


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Kalu won the Turner Prize", "Kalu takes 2025 Turner Prize"),
        ("France beat England", "France edge England 48-46"),
        ("Gold is past $4,000", "Gold futures pass $4,000 an ounce"),
        ("Only the outer walls are left", "Only the exterior walls are left standing"),
    ],
)
def test_plain_words_for_those_of_news_are_no_new_words(text: str, title: str) -> None:
    assert Support([title]).missing_words(text) == []
    assert Support(["The committee met"]).missing_words(text) != []


def test_family_and_degrees_are_no_names() -> None:
    assert find_names("Miss Nan so much, and Gran's PhD on the wall") == []


def test_new_words_and_numbers_are_named() -> None:
    support = Support.from_evidence([news("Chevron cuts jobs", snippet="About 800 posts go.")])
    assert support.missing_words("Chevron cuts 800 jobs in Texas, sadly") == ["texas", "sadly"]
    assert support.missing_numbers("Chevron cuts 900 jobs") == ["900"]
    assert support.missing_words("my family", allowed=frozenset({"family"})) == []
    assert support.missing_words("a ruling comes, Chevron takes jobs") == ["ruling", "takes"]


def test_the_pronoun_us_is_not_a_country() -> None:
    assert "united" not in expand_words("join us")
    assert {"united", "states"} <= expand_words("join the U.S. team")
