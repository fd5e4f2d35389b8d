"""The address of a fact: what it depends on, and what the rest of the store makes of it."""

from datetime import UTC, date, datetime

import pytest

from coreeval.tools.gdelt.current_events import day_of_page, fact_url, may_be_used, page_name
from coreeval.tools.gdelt.rows import canonical, date_in_url, evidence_id, host_of

DAY = date(2025, 9, 4)
SENTENCE = "Voters in Chile elect a well-known senate, officials say; 40% & more stay away."


def test_a_fact_has_an_address_of_its_own() -> None:
    url, other = fact_url(DAY, SENTENCE), fact_url(DAY, SENTENCE + " Twice.")
    assert url.startswith("https://en.wikipedia.org/wiki/Portal:Current_events/2025_September_4#")
    assert url.isascii() and url.isprintable()
    assert (
        len({evidence_id(each) for each in (url, other, fact_url(date(2025, 9, 5), SENTENCE))}) == 3
    )
    assert host_of(url) == "en.wikipedia.org"


def test_only_the_number_of_the_fragment_counts() -> None:
    url = fact_url(DAY, SENTENCE)
    bare = url.partition(":~:")[0]
    assert canonical(url) == canonical(bare)
    assert canonical(bare).partition("#")[2].startswith("fact-")
    assert canonical("https://news.example/a#fact-1") == "news.example/a"
    assert canonical("https://news.example/a#top") == "news.example/a"


def test_the_text_directive_escapes_what_would_end_it() -> None:
    directive = fact_url(DAY, "One-sided, new & old words here for all of us").partition(
        ":~:text="
    )[2]
    assert directive == "One%2Dsided%2C%20new%20%26%20old%20words%20here%20for%20all"


@pytest.mark.parametrize("day", [date(2025, 1, 1), date(2025, 5, 31), date(2024, 2, 29)])
def test_a_page_names_its_day(day: date) -> None:
    assert day_of_page(page_name(day)) == day
    assert day_of_page(page_name(day).replace("_", " ")) == day
    assert day_of_page(fact_url(day, SENTENCE)) == day
    seen = datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert date_in_url(fact_url(day, SENTENCE), seen) == seen


@pytest.mark.parametrize(
    "name",
    ["", "Portal:Current_events", "Portal:Current_events/2025_September_31", "Portal:Art/2025",
     "Portal:Current_events/September_2025", "https://news.example/2025/09/04/",
     "Portal:Current_events/Inclusion"],
)  # fmt: skip
def test_other_pages_are_of_no_day(name: str) -> None:
    assert day_of_page(name) is None


def test_licences_that_may_be_used() -> None:
    assert may_be_used("") and may_be_used("CC BY-SA 4.0 (Wikipedia)") and may_be_used("cc-by-sa")
    assert not may_be_used("CC BY-NC-SA 4.0")
    assert not may_be_used("All rights reserved")
