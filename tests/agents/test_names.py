import pytest

from coreeval.agents.names import calendar, names, same_name, unknown_names
from coreeval.agents.support import readings


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
    ],
)
def test_names_are_capitals_inside_a_sentence(text: str, found: list[str]) -> None:
    assert names(text) == found


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
    assert same_name(one, other) is same


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
        ("When You Realize The Shop Is Closed", "When You Find A Big Fish", "", []),
    ],
)
def test_unknown_names(text: str, like: str, known: str, unknown: list[str]) -> None:
    assert unknown_names(text, like=like, known=readings(known)) == unknown


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
    assert calendar(text) == days
