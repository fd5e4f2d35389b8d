"""Any text in a dated fact: its address stays its own, and a page gives facts or none."""

import json
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from coreeval.tools.gdelt.current_events import day_of_page, fact_url
from coreeval.tools.gdelt.page_text import without_unseen
from coreeval.tools.gdelt.rows import canonical, evidence_id
from coreeval.tools.gdelt.sync.facts import read_facts
from coreeval.tools.gdelt.sync.segment_rows import RowTally
from tests.support.wiki_server import page_html

DAYS = st.dates(date(1995, 1, 1), date(2099, 12, 31))
TEXTS = st.text(max_size=80)
PIECES = st.lists(
    st.one_of(TEXTS, st.sampled_from(("<li>", "</li>", "<ul>", "</ul>", "</div>", "<!--", "<b>",
                                      "<sup>", '<a class="external" href="//x">', "</a>"))),
    max_size=12,
)  # fmt: skip


@given(DAYS, TEXTS)
def test_an_address_is_plain_and_names_its_day(day: date, text: str) -> None:
    url = fact_url(day, text)
    assert url.isascii() and url.isprintable() and " " not in url
    assert day_of_page(url) == day
    assert canonical(url) == canonical(url.partition(":~:")[0])


@given(DAYS, TEXTS, TEXTS)
def test_two_sentences_have_two_ids(day: date, one: str, other: str) -> None:
    same = evidence_id(fact_url(day, one)) == evidence_id(fact_url(day, other))
    assert same == (one == other)


@given(PIECES)
def test_every_row_of_a_page_is_a_fact_or_counted(pieces: list[str]) -> None:
    page = {"title": "Portal:Current events/2026 June 10", "text": page_html("".join(pieces))}
    tally = RowTally()
    tables = list(read_facts([[json.dumps({"parse": page}).encode()]], tally))
    assert sum(map(len, tables)) == tally.articles
    for row in (row for table in tables for row in table.to_pylist()):
        assert without_unseen(row["title"]) == row["title"] and 0 < len(row["title"]) <= 500
