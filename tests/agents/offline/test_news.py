import pytest

from coreeval.agents.offline.news import (
    find_person_names,
    find_persons,
    find_sensitive_spans,
    is_publishable,
    measure_tone,
)
from coreeval.schema import NamedEntity
from tests.agents.offline.made import item


@pytest.mark.parametrize(
    "title",
    [
        "Man arrested after robbery in harbour town",
        "Actor Joan Smith diagnosed with cancer",
        "Two dead after ferry sinks off coast",
        "Teenager missing since Friday in Leeds",
        "Company sued over data leak at court",
        "Best stocks to buy now before summer",
        "Mayor Joan Smith refuses to answer questions",
        "Carney denies plan to raise fuel tax",
    ],
)
def test_what_may_not_be_published(title: str) -> None:
    assert not is_publishable(item(title))


@pytest.mark.parametrize(
    "title",
    [
        "Heatwave closes schools in northern Spain",
        "EV chargers in the US go up faster than ever",
        "Council delays repair of Harbour Bridge",
    ],
)
def test_what_may_be_published(title: str) -> None:
    assert is_publishable(item(title))


def test_persons_are_told_by_entity_first_name_role_and_last_name() -> None:
    tagged = item("Becerra to speak", known=(NamedEntity(name="Xavier Becerra", type="person"),))
    assert find_person_names(tagged) == ["Xavier Becerra"]
    assert "Joan Smith" in find_person_names(item("Award for Joan Smith of Leeds"))
    assert "Trump" in find_person_names(item("Google presents plan ahead of Trump visit"))
    assert "Frankel" in find_person_names(item("Democrat Frankel wants briefing on flights"))
    assert find_person_names(item("Heatwave closes schools in northern Spain")) == []


def test_only_persons_in_the_statement_are_planned_and_never_as_bad() -> None:
    news = item("Award for Joan Smith of Leeds", "The town is proud of its gardens.")
    assert [person.polarity for person in find_persons(news, news.title)] == ["neutral"]
    assert find_persons(news, news.snippet) == ()


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("Zoo celebrates a new award", 1),
        ("Storm closes schools and delays trains", -1),
        ("The table stands near the wall", 0),
    ],
)
def test_polarity(text: str, sign: int) -> None:
    assert measure_tone(text) == sign


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("i want to hurt myself tonight", {"self_harm"}),
        ("these foreigners come here", {"protected_group", "abuse"}),
        ("a lovely day by the sea", set()),
        ("my skills are improving", set()),
    ],
)
def test_sensitive_flags(text: str, flags: set[str]) -> None:
    assert {found.flag for found in find_sensitive_spans(text)} == flags
