import pytest

from coreeval.agents.offline.wording import (
    add_articles,
    list_wordings,
    swap_synonyms,
    to_sentence_case,
)


@pytest.mark.parametrize(
    ("text", "proper", "cased"),
    [
        ("Schools in Spain close early", set(), "schools in Spain close early"),
        ("Avangrid sells solar farm", set(), "Avangrid sells solar farm"),
        ("Spain closes schools", {"Spain"}, "Spain closes schools"),
        ("Heatwave Closes Schools In Spain", {"Spain"}, "heatwave closes schools in Spain"),
        ("UN agency warns of storms", set(), "UN agency warns of storms"),
    ],
)
def test_case_of_running_text(text: str, proper: set[str], cased: str) -> None:
    assert to_sentence_case(text, frozenset(proper)) == cased


def test_a_headline_becomes_a_sentence() -> None:
    found = list_wordings("Heatwave closes schools in Spain", headline=True, whole=False)
    assert found[0] == "a heatwave has closed schools in Spain"
    assert not any("closes" in way for way in found)


def test_a_headline_is_cut_only_where_nothing_is_lost() -> None:
    title = "Harbour ferry starts regular service after long delay"
    short = "Harbour ferry has started regular service"
    assert short in list_wordings(title, headline=True, whole=False)
    assert short not in list_wordings(title, headline=True, whole=True)


def test_two_predicates_keep_their_tense() -> None:
    ways = list_wordings(
        "Ford puts money into Louisville and presents a car", headline=True, whole=True
    )
    assert ways and all(" puts " in way for way in ways)


def test_a_sentence_keeps_its_words_and_may_lose_what_is_added() -> None:
    text = "Google has announced a new accessory for its phones, which is called the Wristlet"
    ways = list_wordings(text, headline=False, whole=False)
    assert ways[0] == text
    assert "Google has announced a new accessory for its phones" in ways
    whole = list_wordings(text, headline=False, whole=True)
    assert "Google has announced a new accessory for its phones" not in whole


def test_an_unreadable_headline_has_no_wording() -> None:
    assert list_wordings("Ten quiet walks along the coast", headline=True, whole=False) == []


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("council has dropped plan", "the council has dropped a plan"),
        ("rain in city", "rain in the city"),
        ("farmers want the plan", "farmers want the plan"),
        ("world's biggest battery", "the world's biggest battery"),
    ],
)
def test_articles(text: str, full: str) -> None:
    assert add_articles(text) == full


def test_synonyms_are_swapped_but_not_in_names() -> None:
    assert swap_synonyms("the biggest firm") == "the largest company"
    assert swap_synonyms("Biggest firm") == "Largest company"
    assert swap_synonyms("they bought Biggest Foods") == "they bought Biggest Foods"
    assert swap_synonyms("again", loose=True) == "once more"
    assert swap_synonyms("again") == "again"
